"""Decide whether a damage was noticed, is harmless, or is silent.

Used by the damage matrix. Noticed: a check, a read or a search says something that the undamaged store does not say.
Harmless: nothing is said, and every answer is that of the undamaged store. Silent is the rest, and must not exist.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tests.damage.answers import MADE_AGAIN, Answers
from tests.damage.damages import Damage
from tests.damage.store_table import files_of

Verdict = Literal["noticed", "harmless", "silent"]
Step = Callable[[Answers], None]


class Opinion(NamedTuple):
    """Verdict about a damage, and the words or the answer that show it."""

    verdict: Verdict
    why: str


class Judge:
    """Knows the answers of the undamaged store, and compares those of damaged copies."""

    def __init__(self, whole: Path, folder: Path) -> None:
        """Ask the undamaged store `whole`. Copies are made in `folder`, one at a time."""
        self._whole = whole
        self._copy = folder / "copy" / whole.name
        self._hashes = self._hashed()
        with self.copied() as root:
            self._sound = Answers(root)
            for step in self._steps(()):
                step(self._sound)
        left_over = ("is left over", "were lost")
        wrong = [said for said in self._sound.said if not any(words in said for words in left_over)]
        assert not wrong, f"the undamaged store is not whole: {wrong}"

    def _hashed(self) -> dict[str, str]:
        return {name: hashlib.sha256((self._whole / name).read_bytes()).hexdigest() for name in files_of(self._whole)}

    def assert_untouched(self) -> None:
        """Check that nothing changed the undamaged store through a link."""
        assert self._hashed() == self._hashes

    @contextmanager
    def copied(self, *, to_write: bool = False) -> Iterator[Path]:
        """Yield a copy of the store, at the same path each time: messages contain paths.

        Without `to_write` its files are links to those of the original: logs must not be opened in it.
        """
        shutil.rmtree(self._copy.parent, ignore_errors=True)
        shutil.copytree(self._whole, self._copy, copy_function=shutil.copyfile if to_write else _link)
        yield self._copy

    def of(self, *damages: Damage) -> Opinion:
        """Return the opinion about a copy of the store with these damages."""
        with self.copied() as root:
            for damage in damages:
                damage.apply(root)
            return self.opinion(root, damages)

    def opinion(self, root: Path, damages: Sequence[Damage] = ()) -> Opinion:
        """Return the opinion about a store in the place of the copies. `damages`: what is known of it."""
        answers = Answers(root)
        for step in self._steps(damages):
            step(answers)
            if new := answers.said - self._sound.said:
                return Opinion("noticed", min(new))
        for question, given in self._sound.given.items():
            missing = question not in answers.given
            if missing and (question.startswith(MADE_AGAIN) or _is_of_index(damages)):
                continue
            if missing or answers.given[question] != given:
                return Opinion("silent", question)
        return Opinion("harmless", "")

    @staticmethod
    def _steps(damages: Sequence[Damage]) -> Iterator[Step]:
        """Yield the questions, those first that are quick and most likely to notice."""
        places = {damage.file.split("/")[1] for damage in damages if damage.file.startswith("log/")}
        if _is_of_index(damages):
            yield Answers.use_index  # nothing else reads the index
            return
        if places:
            yield lambda answers: answers.check_logs(places, deep=False)
        yield Answers.check_all_logs
        yield Answers.read_logs
        yield Answers.read_descriptions
        yield Answers.use_index


def _is_of_index(damages: Sequence[Damage]) -> bool:
    """Return True if only files of the index are damaged: then only the index is asked."""
    return bool(damages) and all(damage.file.startswith("archive/") for damage in damages)


def _link(source: str, target: str) -> None:
    """Link a file into a copy; SQLite writes in place, so its file is copied."""
    if source.endswith(".sqlite"):
        shutil.copyfile(source, target)
    else:
        Path(target).hardlink_to(source)

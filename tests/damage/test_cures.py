"""The cure that the table names heals the damage: afterwards everything is as before, and the store can be used."""

import shutil
from pathlib import Path

import pytest

from everlog.events import EverlogError
from everlog.store import FileStore
from everlog.store.archive import Archive
from tests.damage.answers import Answers, embedder
from tests.damage.damages import Damage
from tests.damage.judge import Judge
from tests.damage.matrix import by_kind
from tests.damage.store_table import FileKind, kinds
from tests.support.cli.command_line import SECOND
from tests.support.seeds import chance, split
from tests.support.store.whole_store import StoreCommands

ROWS = [row for row in kinds() if any(pattern.at_rest for pattern in row.patterns)]
ROUNDS = [(row, how) for row in ROWS for how in ("delete", "zeros")]
LATER = 100_000
"""Ids, and seconds, after those of the store."""


@pytest.fixture(scope="module")
def judge(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(whole, tmp_path_factory.mktemp("cured"))


def cure(whole: Path, root: Path, file: str, row: FileKind) -> None:
    """Do what the last cell of the row says."""
    words = row.cells[-1]
    if words.startswith("a backup") or "people write it" in words:
        (root / file).unlink(missing_ok=True)
        shutil.copyfile(whole / file, root / file)
    elif "repair-register" in words:
        StoreCommands(root).ok("log", "repair-register", "--yes")
    elif words == "may be removed":
        (root / file).unlink(missing_ok=True)
    elif "archive rebuild" in words:
        _rebuild(root)
    elif "log seal" in words:
        StoreCommands(root).ok("log", "seal", "--all")


def _rebuild(root: Path) -> None:
    index = Archive(FileStore(root, lambda: 1), embedder())
    try:
        index.rebuild()
    except EverlogError:  # the metadata itself: the second cure of the row
        index.close()
        shutil.rmtree(root / "archive")
        index = Archive(FileStore(root, lambda: 1), embedder())
        index.follow()
    index.close()


def name_of(one: tuple[FileKind, str]) -> str:
    return f"{one[1]} {one[0].name}"


@pytest.mark.parametrize("one", split(ROUNDS, 1, label="healed", part="damage"), ids=name_of)
def test_the_named_cure_heals(whole: Path, judge: Judge, one: tuple[FileKind, str]) -> None:
    """After the damage and its cure nothing is said any more, every answer is as before, and an agent can be used."""
    row, how = one
    file = chance(f"cure {row.name}").choice(by_kind(whole)[row])
    with judge.copied(to_write=True) as root:
        if (root / file).stat().st_size or how == "delete":
            Damage(file, how).apply(root)
        cure(whole, root, file, row)
        opinion = judge.opinion(root)
        derived = "derived" in row.cells[-1] or "log seal" in row.cells[-1] or "next close" in row.cells[-1]
        assert opinion.verdict == "harmless" or (derived and opinion.verdict == "noticed"), opinion
        run = StoreCommands(root)
        run.ids.count, run.clock.at = LATER, run.clock.at + LATER * SECOND
        for name in ("sam", "ann", "kid"):
            run.ok("send", name, "still there?")
        run.ok("log", "seal", "--all")
        run.ok("log", "check", "--all", "--deep")
        run.ok("verify", "--all")
        run.ok("rebuild", "--all")
        run.ok("archive", "check")
        after = Answers(root)
        after.check_all_logs()
        assert not [said for said in after.said if "damaged" in said and "derived again when" not in said], after.said

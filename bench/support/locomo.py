"""Read LoCoMo's dev conversations and the questions about them.

Used by `bench.retrieval` and `bench.paper.deep_memory`, which must ask the same questions. The data set is not part of
the project.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.support.harness import ROOT
from everlog.actors.agent.conversation_import import ImportedMessage, conversation

DATA = ROOT.parent / "shared" / "data"
CATEGORIES = ("single-hop", "multi-hop", "temporal", "open-domain")
"""Categories of LoCoMo's questions that can be answered."""


class Question(msgspec.Struct):
    """A line of the data set."""

    question: str
    category: str
    evidence: list[str]
    answer: str | int | float = ""


def conversations(data: Path) -> list[Path]:
    """Return the files of the conversations in the folder `data`. Raises SystemExit if there are none."""
    folder = data / "locomo" / "dev"
    paths = sorted(path for path in folder.glob("*.jsonl") if not path.name.endswith(".questions.jsonl"))
    if not paths:
        raise SystemExit(f"no conversations in {folder}: set EVERLOG_DATA, or use --data DIR, the folder of locomo/dev")
    return paths


def said_in(path: Path) -> Sequence[ImportedMessage]:
    """Return the messages of a conversation."""
    return conversation(path.read_bytes().splitlines(), path.name)


def questions(path: Path, *, every: bool = False) -> Iterator[Question]:
    """Yield the questions about a conversation that have an answer and evidence. `every`: of all categories."""
    for line in path.with_suffix(".questions.jsonl").read_bytes().splitlines():
        one = msgspec.json.decode(line, type=Question)
        if one.evidence and (every or one.category in CATEGORIES):
            yield one

"""Run the MemGPT paper's nested key-value retrieval: 140 pairs; some values are keys of others, 0 to 4 levels deep.

`bench.retrieval` prints the figure too. docs/explanation/benchmarks.md explains it.

Each pair is a memory of an agent. The agent's model is a script that sees nothing but the requests: it searches for the
key with archival_memory_search, requests the next page while the key is not found, follows the value until no memory
has that value as a key, and sends it with send_message. Everything else is the normal agent: the loop, the log on the
disk, the archive with its vectors.
"""

import asyncio
import gzip
import json
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from bench.support.harness import ROOT, Figure, Line, noise, options, show, workspace
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system
from everlog.actors.ports.effects import ModelResponse

DATA = ROOT.parent / "shared" / "data" / "nested_kv"
LEVELS = range(5)
"""Levels 0 to 4, as in the paper."""
RECORDS, RECORDS_QUICK = 20, 1
"""Number of records of each level."""
AT_ONCE = 8
ASKED = "Which value does"
FUNCTION = "archival_memory_search"
WINDOW_TOKENS = 1_000_000
STEPS_MAX = 1000
"""Large, because a question takes a step for each page."""

_SHOWN = re.compile(r"Showing \d+ of \d+ results \(page (\d+)/(\d+)[^)]*\): (\[.*\])", re.DOTALL)
_PAIR = re.compile(r"memory: ([0-9a-f-]{36}): ([0-9a-f-]{36})$")
_KEY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Question(msgspec.Struct, frozen=True):
    """One record of one level."""

    pairs: Sequence[tuple[str, str]]
    key: str
    answer: str


class Asked(msgspec.Struct):
    """Outcome of a question."""

    answer: str = ""
    pages: int = 0
    by_words: int = 0
    """Number of pages for which the archive did not answer."""


class Follower:
    """The scripted model. It keeps no state: each request shows how far it has come."""

    name = "follower"

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        """Return one call: the next page, the next key, or the answer."""
        name, arguments = next_call(json.loads(request)["messages"])
        call = {"id": "call_0", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": "I follow the keys.", "tool_calls": [call]}
        usage = {"prompt_tokens": len(request) // 4, "completion_tokens": 20, "total_tokens": len(request) // 4 + 20}
        body = {"model": self.name, "choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}
        return ModelResponse(json.dumps(body), 1000)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def next_call(messages: Sequence[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Return the function that follows from the chat messages of a request, and its arguments."""
    asked = max(
        n for n, message in enumerate(messages) if message["role"] == "user" and "Which value" in message["content"]
    )
    found = _KEY.search(messages[asked]["content"])
    assert found is not None
    key, page = found[0], 0
    for message in messages[asked:]:
        if message["role"] != "tool":
            continue
        pages, pairs = read(json.loads(message["content"])["message"])
        if key in pairs:
            key, page = pairs[key], 0
        elif page < pages:
            page += 1
        else:
            return "send_message", {"message": key}
    return FUNCTION, {"query": key, "page": page, "request_heartbeat": True}


def read(result: str) -> tuple[int, dict[str, str]]:
    """Return the number of the last page, and the pairs that a page shows."""
    shown = _SHOWN.match(result)
    if shown is None:
        return 0, {}
    return int(shown[2]), dict(pair.groups() for line in json.loads(shown[3]) if (pair := _PAIR.search(line)))


def questions(level: int, count: int) -> list[Question]:
    """Return the first `count` records of a level: the value of each pair of the ordering is the key of the next."""
    orderings = DATA / f"random_orderings_100_samples_140_indices_{level + 1}_levels.jsonl"
    made = []
    with gzip.open(DATA / "kv-retrieval-140_keys.jsonl.gz", "rt") as records, orderings.open() as lines:
        for _, record, line in zip(range(count), records, lines, strict=False):
            pairs, ordering = json.loads(record)["ordered_kv_records"], json.loads(line)
            for here, there in pairwise(ordering):
                pairs[here][1] = pairs[there][0]
            made.append(Question([(key, value) for key, value in pairs], pairs[ordering[0]][0], pairs[ordering[-1]][1]))
    return made


async def answered(agent: AgentRef, question: Question) -> Asked:
    """Insert the pairs, ask, and read the outcome from the records."""
    await agent.archive.insert_many([f"{key}: {value}" for key, value in question.pairs])
    found = Asked()
    for record in await agent.send(f"{ASKED} the key {question.key} lead to? Follow values that are keys."):
        if record.type == "message_sent":
            found.answer = record.text or ""
        elif record.type == "function_result" and FUNCTION in record.payload:
            found.pages += 1
            found.by_words += "by words alone" in (record.text or "")
    return found


async def run(folder: Path, records: int, levels: Sequence[int] = LEVELS) -> list[list[tuple[Question, Asked]]]:
    """Ask every question of these levels, each with an agent of its own."""
    settings = Settings(model=Follower.name, window=WINDOW_TOKENS, steps_max=STEPS_MAX)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(system: AgentSystem, level: int, number: int, question: Question) -> tuple[Question, Asked]:
        async with room:
            agent = await system.agent(f"level-{level}-{number}", settings)
            asked = await answered(agent, question)
            await agent.unload()
            return question, asked

    async with open_system(
        folder, runtime="local", services=ServiceOptions(models=lambda *_: Follower(), patience="wait"), timers=False
    ) as system:
        return [
            await asyncio.gather(*(one(system, level, n, q) for n, q in enumerate(questions(level, records))))
            for level in levels
        ]


def nested_kv(quick: bool) -> dict[str, float]:
    """Return the accuracy of each level and of the worst, and the pages per question. Raises OSError without the
    data.
    """
    with workspace() as folder:
        levels = asyncio.run(run(folder / "store", RECORDS_QUICK if quick else RECORDS))
    found: dict[str, float] = {}
    for level, asked in enumerate(levels):
        found[f"nested_kv_{level}"] = sum(one.answer == question.answer for question, one in asked) / len(asked)
        found[f"pages_{level}"] = sum(one.pages for _, one in asked) / len(asked)
    accuracies = [found[f"nested_kv_{level}"] for level in LEVELS]
    by_words = sum(one.by_words for asked in levels for _, one in asked)
    return {"nested_kv": min(accuracies), **found, "pages_by_words": float(by_words)}


def report(*, quick: bool) -> None:
    """Measure and print."""
    with workspace() as folder:
        before = noise(folder)
    found = nested_kv(quick)
    figures = [Figure("nested_kv", found["nested_kv"], "ratio", 1.0)]
    rows = [
        Line("nested_kv", f"{found['nested_kv']:.3g} ratio", "1", "1.0 (GPT-4 alone: 0 at 3 levels)", "worst level")
    ]
    for level in LEVELS:
        pages = found[f"pages_{level}"]
        figures.append(Figure(f"pages_{level}", pages, "pages", float(level + 2)))
        rows.append(
            Line(f"pages_{level}", f"{pages:.3g} pages", f"{level + 2}", "", f"{found[f'nested_kv_{level}']:.0%} right")
        )
    rows.append(Line("found by words alone", f"{found['pages_by_words']:.0f} pages", "", "0"))
    show("nested", before, figures, rows)


def main(argv: Sequence[str] | None = None) -> int:
    args = options("nested", __doc__ or "", argv)
    if not DATA.is_dir():
        print(f"bench.nested needs {DATA}", file=sys.stderr)
        return 1
    report(quick=args.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())

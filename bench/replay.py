"""Measure how fast a sealed history is read as typed events, and how many bytes on disk a turn takes.

Run as `python -m bench.replay`; other benchmarks take their texts and histories from here. `tests/bench` checks the
keys of its figures.

One agent talks for a thousand turns and its log is sealed. Then three are measured in turns: its events, read from the
Parquet file and decoded; its payloads, decoded and nothing else; as many events of the library `eventsourcing`, from
SQLite. All times are CPU times of one process, so they are per core.
"""

import asyncio
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bench.support.harness import (
    ROOT,
    Figure,
    Line,
    Noise,
    among,
    line,
    median,
    noise,
    options,
    ratios,
    show,
    workspace,
)
from bench.support.peers import EVENTSOURCING, eventsourced
from bench.support.script import InstantModel, words
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import CATALOGUE, FunctionResult, MessageSent, ModelReply, UserMessage, event_of
from everlog.projections import DERIVER
from everlog.store import FileStore, PartitionReader

KEYS = ("replay_vs_decode", "replay_vs_eventsourcing", "amplification", "bytes_per_turn_sealed")
GOALS = (">= 0.35", ">= 10", "<= 1.3", "<= 600 (best peer: 630)")
AGENT = "sam"
MONOLOGUE_WORDS = 12
MESSAGE_WORDS = 20
REFERENCE_LEVEL = 3
Pair = tuple[str, str]
"""A user's message, and its answer."""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    runs: int = 15
    """Number of replays of each, in turns."""
    turns: int = 1000
    window: int = 8000
    """Context window in tokens."""


QUICK = Plan(runs=5)


class Sealed(msgspec.Struct, frozen=True):
    """The agent's sealed log on disk."""

    data: str
    """Source of the texts."""
    records: int
    files: dict[str, int]
    """Bytes by kind of file, of all files in the partition's folder."""
    columns: dict[str, int]
    """Compressed bytes of each column of the records."""
    reference: int
    """Bytes of the texts alone, compressed with zstd."""


class Replays(msgspec.Struct, frozen=True):
    """Microseconds of CPU for an event, of each replay."""

    ours: list[float]
    decode: list[float]
    """Decoding of the payloads, and nothing else."""
    read: list[float]
    """Reading of the records into Arrow, and nothing else."""
    peer: list[float]
    """Replays by `eventsourcing`; empty if the library is not installed."""


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    sealed: Sealed
    replays: Replays


def pairs(turns: int) -> tuple[str, list[Pair]]:
    """Return the source of the texts, and the texts: real conversations if the data set is available, else random
    words.
    """
    data = Path(os.environ.get("EVERLOG_DATA") or ROOT.parent / "shared" / "data")
    real = list(itertools.islice(talk_of(data / "locomo" / "dev"), turns))
    if len(real) == turns:
        return "LoCoMo", real
    chance = random.Random(7)
    return (
        f"random words, because there is no locomo/dev in {data}",
        [(words(chance, MESSAGE_WORDS), words(chance, MESSAGE_WORDS)) for _ in range(turns)],
    )


def talk_of(folder: Path) -> Iterator[Pair]:
    """Yield messages and answers in the conversations of a folder; nothing if there are none."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.name.endswith(".questions.jsonl"):
            continue
        said: list[str] = []
        for message in map(json.loads, path.read_text().splitlines()):
            if message["role"] == "user":
                said.append(message["content"])
            elif said:
                yield " ".join(said), message["content"]
                said = []


class Talker(InstantModel):
    """Answers at once with one `send_message` of the next answer, and a monologue of random words."""

    def __init__(self, answers: Iterable[str]) -> None:
        super().__init__()
        self._answers = itertools.cycle(answers)

    def _said(self) -> dict[str, object]:
        arguments = json.dumps({"message": next(self._answers)}, ensure_ascii=False)
        number = f"call_{self._chance.getrandbits(64):016x}"
        call = {"id": number, "type": "function", "function": {"name": "send_message", "arguments": arguments}}
        return {"role": "assistant", "content": words(self._chance, MONOLOGUE_WORDS), "tool_calls": [call]}


async def grow(store: FileStore, said: Sequence[Pair], window: int) -> None:
    """Create an agent that received and answered all messages; seal its log."""
    system = LocalSystem(store, models=lambda _: Talker(answer for _, answer in said))
    async with system.agent(AGENT, Settings(model="instant", window=window), command="bench.replay") as agent:
        for text, _ in said:
            await agent.receive(UserMessage(text=text))
            await agent.run()
        assert agent.turn == len(said)
    log = store.open(AGENT, "bench.replay")
    log.seal(DERIVER)
    log.close()


def sealed(store: FileStore, data: str) -> Sealed:
    """Return the disk usage of the sealed agent."""
    reader = store.reader(AGENT)
    folder = store.root / "log" / reader.partition
    files: dict[str, int] = {}
    columns: dict[str, int] = {}
    for path in folder.iterdir():
        kind = path.suffix or path.name.split("-")[0]
        files[kind] = files.get(kind, 0) + path.stat().st_size
        if kind == ".parquet":
            _add_columns(columns, pq.read_metadata(path))
    records = list(reader.read(AGENT))
    stream = "\n".join(text for record in records for text in _words_of(event_of(record))).encode()
    reference = pa.Codec("zstd", compression_level=REFERENCE_LEVEL).compress(stream).size
    return Sealed(data, len(records), files, columns, reference)


def _words_of(event: object) -> list[str]:
    """Return user text, monologue, arguments, results and answers of an event."""
    match event:
        case ModelReply():
            return [event.text, *(call.arguments for call in event.calls)]
        case UserMessage() | FunctionResult() | MessageSent():
            return [event.text]
    return []


def _add_columns(columns: dict[str, int], metadata: pq.FileMetaData) -> None:
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            columns[column.path_in_schema] = columns.get(column.path_in_schema, 0) + column.total_compressed_size


def decoding(reader: PartitionReader) -> Callable[[], object]:
    """Return the floor: a function that decodes the same payloads, held in memory as text, with msgspec's decoders."""
    table = reader.table(AGENT)
    decoders = {kind: msgspec.json.Decoder(cls).decode for kind, cls in CATALOGUE.items()}
    work = [
        (decoders[kind], payload)
        for kind, payload in zip(table["type"].to_pylist(), table["payload"].to_pylist(), strict=True)
    ]
    return lambda: [decode(payload) for decode, payload in work]


def replays(folder: Path, reader: PartitionReader, plan: Plan, records: int) -> Replays:
    """Measure all of them in turns, after one round that warms the caches."""
    works = {
        "ours": lambda: list(reader.events(AGENT)),
        "decode": decoding(reader),
        "read": lambda: reader.table(AGENT),
        "peer": eventsourced(folder, list(reader.read(AGENT))),
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(plan.runs + 1):
        for name, work in works.items():
            if work is not None:
                cpu = time.process_time()
                work()
                if number:
                    found[name].append((time.process_time() - cpu) / records * 1e6)
    return Replays(**found)


def measure(plan: Plan) -> Seen:
    """Grow, seal, measure and replay, on the current folder's file system."""
    with workspace() as folder:
        before = noise(folder)
        clock = RealClock()
        store = FileStore.create(folder / "store", clock.now, RealIds().new(clock.now()))
        data, said = pairs(plan.turns)
        asyncio.run(grow(store, said, plan.window))
        found = sealed(store, data)
        return Seen(before, found, replays(folder, store.reader(AGENT), plan, found.records))


def figures(seen: Seen, plan: Plan) -> list[Figure]:
    """Return the figures; that of the peer is left out if the library is not installed."""
    times, log = seen.replays, seen.sealed
    size = sum(log.files.values())
    found = [Figure(KEYS[0], median(ratios(times.decode, times.ours)), "ratio", 1.0)]
    if times.peer:
        found.append(Figure(KEYS[1], median(ratios(times.peer, times.ours)), "ratio", 1.0))
    return [
        *found,
        Figure(KEYS[2], size / log.reference, "ratio", 1.0),
        Figure(KEYS[3], size / plan.turns, "bytes", log.reference / plan.turns),
    ]


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    times, log = seen.replays, seen.sealed
    goals = dict(zip(KEYS, GOALS, strict=True))
    runs = {KEYS[0]: among(ratios(times.decode, times.ours))}
    rates = {"sealed to typed": times.ours, "decode alone": times.decode, "read into Arrow": times.read}
    if times.peer:
        runs[KEYS[1]] = among(ratios(times.peer, times.ours))
        rates[EVENTSOURCING] = times.peer
    else:
        goals[KEYS[1]] += f"; left out: {EVENTSOURCING} is not installed"
    rows = [line(figure, goals[figure.key], runs.get(figure.key, "")) for figure in found]
    if not times.peer:
        rows.insert(1, Line(KEYS[1], "none", "", goals[KEYS[1]]))
    files = ", ".join(f"{kind} {size / plan.turns:,.1f}" for kind, size in sorted(log.files.items()))
    largest = sorted(log.columns.items(), key=lambda column: -column[1])[:4]
    columns = ", ".join(f"{name} {size / plan.turns:,.1f}" for name, size in largest)
    return [
        *rows,
        *(Line(name, f"{1e6 / median(cpu):,.0f}/s", "", "", among(cpu) + " us") for name, cpu in rates.items()),
        Line("records", f"{log.records:,} in {plan.turns:,} turns", "", "", log.data),
        Line("bytes by file", files),
        Line("bytes by column", columns),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen, plan)
    show("replay", seen.noise, found, lines(seen, found, plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("replay", "How fast a sealed history is read as typed events, and how large it is.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())

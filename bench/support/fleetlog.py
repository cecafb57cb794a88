"""Write a fleet's sealed logs without the fleet: records made by the column, written by the store's own Parquet writer.

Used by `bench.analytics`.

Each agent repeats a turn of four records (a user's message, the reply, the function's result, the answer), after its
creation and its configuration. The chains in the manifest are placeholders: no question here reads them.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import GENESIS
from everlog.store import SCHEMA, FileStore
from everlog.store.partition.manifest import EMPTY, SEALED, FileEntry, succeed
from everlog.store.partition.partition import sealed_name
from everlog.store.sealed.parquet_file import save
from everlog.store.sealed.rare_kinds import rare_kinds

SHARDS = 8
PHRASE = "lighthouse keeper"
PHRASES_IN = 500
"""One text in so many contains the phrase."""
DAY_US = 86_400_000_000
BEGAN_US = 1_767_225_600_000_000
DAYS = 30
WORDS = 12
TEXTS = 20_000
FUNCTIONS = ("send_message", "core_memory_append", "archival_memory_insert", "conversation_search", "http_request")
FAILING = 0.04
WINDOW = 8000
PRESSED = 0.75
ROWS_A_FILE = 320_000


class Fleet(msgspec.Struct, frozen=True):
    """Size of a fleet."""

    agents: int
    events: int
    """Number of events of each agent: at least 2."""


def make(folder: Path, fleet: Fleet, seed: int = 7) -> FileStore:
    """Create a store of that fleet, in sealed files."""
    clock = RealClock()
    store = FileStore.create(folder, clock.now, RealIds().new(clock.now()), shards=SHARDS)
    names = [f"agent-{number:05}" for number in range(fleet.agents)]
    store.register_many(names, shared=True)
    homes: dict[str, list[str]] = {}
    for name in names:
        homes.setdefault(store.partition_of(name), []).append(name)
    work = [(store, home, sorted(mine), fleet, seed + number) for number, (home, mine) in enumerate(homes.items())]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda one: _write(*one), work))
    return store


def _write(store: FileStore, home: str, names: list[str], fleet: Fleet, seed: int) -> None:
    """Write the partition `home`, of these agents."""
    partition = store.partition(home)
    partition.path.mkdir(parents=True, exist_ok=True)
    maker = Maker(fleet, np.random.default_rng(seed))
    entries: list[FileEntry] = []
    commit = 1
    for number, table in enumerate(maker.files(names), 1):
        last = commit + table.num_rows - 1
        commits = pa.array(np.arange(commit, last + 1))
        table = table.set_column(SCHEMA.get_field_index("commit"), SCHEMA.field("commit"), commits)
        parquet, sha256 = save(partition, sealed_name(commit, last, 1, number, "parquet"), table)
        head = int(pc.max(table["seq"]).as_py())
        entries.append(
            FileEntry(
                parquet.name,
                SEALED,
                commit,
                last,
                parquet.bytes,
                sha256,
                chains={name: (head, GENESIS.hex()) for name in names},
                records=table.num_rows,
                rare=rare_kinds(table),
                text_bytes=sum(pc.sum(pc.binary_length(table[name])).as_py() or 0 for name in ("text", "payload")),
                parquet=parquet,
            )
        )
        commit = last + 1
    succeed(partition, EMPTY, 1, entries)


class Maker:
    """Makes the records of many agents at once."""

    def __init__(self, fleet: Fleet, chance: np.random.Generator) -> None:
        self._fleet = fleet
        self._chance = chance
        self._texts = pa.array(_texts(chance))
        self._schemas = json.dumps({"x" * 64: "{" + "s" * 400 + "}"})

    def files(self, names: list[str]) -> Iterator[pa.Table]:
        """Yield all records of these agents, one table for each file, with a range of their seqs."""
        each = max(1, ROWS_A_FILE // len(names))
        for start in range(1, self._fleet.events + 1, each):
            seqs = np.arange(start, min(start + each, self._fleet.events + 1))
            yield self._table(names, seqs)

    def _table(self, names: list[str], seqs: np.ndarray) -> pa.Table:
        seq = np.tile(seqs, len(names))
        rows = len(seq)
        agent = np.repeat(np.arange(len(names), dtype=np.int32), len(seqs))
        place = (seq - 3) % 4
        kind = np.where(seq == 1, 4, np.where(seq == 2, 5, place)).astype(np.int32)
        turn = np.where(seq > 2, (seq - 3) // 4 + 1, 0)
        span = DAYS * DAY_US // (self._fleet.events + 1)
        at = BEGAN_US + seq * span + self._chance.integers(0, span, rows)
        parts = {number: np.flatnonzero(kind == number) for number in range(6)}
        payloads = self._payloads({n: len(i) for n, i in parts.items()})
        order = np.argsort(np.concatenate([parts[n] for n in range(6)]), kind="stable")
        payload = pa.concat_arrays([payloads[n] for n in range(6)]).take(pa.array(order))
        said = np.isin(kind, (0, 1, 2, 3))
        text = self._texts.take(pa.array(self._chance.integers(0, TEXTS, rows), mask=~said))
        columns: dict[str, Any] = {
            "agent_id": pa.array(names).take(pa.array(agent)),
            "seq": pa.array(seq),
            "commit": pa.array(seq),
            "event_id": self._ids(rows),
            "recorded_at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "said_at": pa.nulls(rows, pa.timestamp("us", "UTC")),
            "type": pa.array(KINDS).take(pa.array(kind)),
            "turn": pa.array(turn),
            "step": pa.array(np.isin(kind, (1, 2, 3)).astype(np.int32)),
            "cause": self._ids(rows),
            "version": pa.array(np.ones(rows, dtype=np.int32)),
            "text": text,
            "payload": payload,
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _ids(self, count: int) -> pa.Array:
        return pa.ExtensionArray.from_storage(
            pa.uuid(), pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(self._chance.bytes(16 * count))])
        )

    def _hex(self, count: int, digits: int) -> pa.Array:
        data = self._chance.bytes(count * digits // 2).hex().encode()
        offsets = np.arange(count + 1, dtype=np.int32) * digits
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))

    def _numbers(self, low: int, high: int, count: int) -> pa.Array:
        return pa.array(self._chance.integers(low, high, count)).cast(pa.string())

    def _payloads(self, counts: dict[int, int]) -> dict[int, pa.Array]:
        fixed = {0: "{}", 3: '{"call_id":"call_1"}', 4: '{"persona":"sam"}', 5: self._configuration()}
        found = {
            number: pa.array([text]).take(pa.array(np.zeros(counts[number], np.int32)))
            for number, text in fixed.items()
        }
        found[1], found[2] = self._replies(counts[1]), self._results(counts[2])
        return found

    def _configuration(self) -> str:
        return f'{{"model":"gpt-4o","window":{WINDOW},"renderer":1,"schemas":{self._schemas}}}'

    def _replies(self, count: int) -> pa.Array:
        prompt = self._chance.integers(500, int(WINDOW * 0.9), count)
        completion = self._chance.integers(20, 200, count)
        names = pa.array(FUNCTIONS).take(pa.array(self._chance.integers(0, len(FUNCTIONS), count)))
        words = self._texts.take(pa.array(self._chance.integers(0, TEXTS, count)))
        return pc.binary_join_element_wise(
            '{"calls":[{"id":"call_1","name":"', names, '","arguments":"{\\"message\\":\\"', words,
            '\\"}"}],"finish_reason":"tool_calls","usage":{"prompt":', pa.array(prompt).cast(pa.string()),
            ',"completion":', pa.array(completion).cast(pa.string()),
            ',"total":', pa.array(prompt + completion).cast(pa.string()),
            '},"model":"gpt-4o","latency_us":', self._numbers(200_000, 4_000_000, count),
            ',"context_sha256":"', self._hex(count, 64), '","context_bytes":', self._numbers(2000, 40_000, count),
            ',"raw":"{\\"id\\":\\"chatcmpl-', self._hex(count, 24),
            '\\",\\"object\\":\\"chat.completion\\",\\"choices\\":'
            '[{\\"index\\":0,\\"message\\":{\\"role\\":\\"assistant\\",\\"content\\":\\"', words, '\\"}}]}"}', "",
        )  # fmt: skip

    def _results(self, count: int) -> pa.Array:
        names = pa.array(FUNCTIONS).take(pa.array(self._chance.integers(0, len(FUNCTIONS), count)))
        failed = self._chance.random(count) < FAILING
        ends = pa.array(["}", ',"ok":false}']).take(pa.array(failed.astype(np.int32)))
        return pc.binary_join_element_wise('{"call_id":"call_1","name":"', names, '"', ends, "")


KINDS = ("user_message", "model_reply", "function_result", "message_sent", "agent_created", "agent_configured")


def _texts(chance: np.random.Generator) -> list[str]:
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(chance.choice(letters, size)) for size in chance.integers(2, 10, 4000)]
    texts = [" ".join(words[w] for w in chance.integers(0, len(words), WORDS)) for _ in range(TEXTS)]
    return [f"{text} {PHRASE}" if number % PHRASES_IN == 0 else text for number, text in enumerate(texts)]

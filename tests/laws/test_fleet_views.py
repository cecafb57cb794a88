"""The views of the fleet over random logs (1,000 in the deep suite) equal a plain fold over the records, and the
projections of each single agent.
"""

import io
import random
import typing
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everlog.events import CATALOGUE, Draft, Event, Record, UnknownEvent, draft, place, tombstone, upcast_record, uuid7
from everlog.projections import HEAD, Projections
from everlog.projections.fleet_views import VIEWS, FleetViews, QueryLimits
from everlog.projections.sql_catalogue import fleet_query
from everlog.store import FIGURES, MemoryStore, batch_of
from everlog.store.sealed.parquet_file import encode
from everlog.store.sealed.rare_kinds import rare_kinds
from tests.laws.fleet_reference import PRICES, Row, fold, told
from tests.support.seeds import split

ENGINES = 10
FILE_ROWS = 40
"""Records of a sealed file: so few that some files have no rare ones."""
LOGS = 100
"""Number of logs in each engine."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDS = ["", "a", "b", "c", "I sail", "é\N{SNOWMAN}", '"ok":false', '{"erased":true', "\\", "a\nb", "'"]
FREQUENT = [
    "user_message",
    "model_reply",
    "function_result",
    "message_sent",
    "memory_edited",
    "summary",
    "system_alert",
    "agent_configured",
    "turns_hidden",
    "heartbeat",
]
ONE_THREAD = QueryLimits(threads=1)
ANY = [kind for kind in CATALOGUE if kind != "agent_forked"]
"""Every kind except those that only begin a stream."""


def value_of(kind: Any, chance: random.Random) -> Any:
    """Return a value of a field's type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return chance.choice(args)
    if origin is list:
        return [value_of(args[0], chance) for _ in range(chance.randrange(3))]
    if origin is dict:
        return {}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return some(kind, chance)
    plain = {
        str: lambda: chance.choice(WORDS),
        int: lambda: chance.choice([0, 1, 2, 3, chance.randrange(-5, 9000), 2**53]),
        float: lambda: chance.choice([0.5, 0.75, 1e9]),
        bool: lambda: chance.random() < 0.5,
    }
    return plain[kind]() if kind in plain else None  # an `int | None`


def some(kind: type[Any], chance: random.Random) -> Any:
    """Return an event of a kind, or a part of one; fields with a default are sometimes left out."""
    hints = typing.get_type_hints(kind)
    fields = {name: value_of(hints[name], chance) for name in kind.__struct_fields__}
    must = {field.name for field in msgspec.structs.fields(kind) if field.required}
    return kind(**{name: value for name, value in fields.items() if name in must or chance.random() < 0.7})


def log_of(agent_id: str, chance: random.Random) -> list[Record]:
    """Return a log of any events in any order, with tombstones, unknown kinds and several incarnations."""
    records: list[Record] = []
    at = chance.randrange(10**15)
    for seq in range(1, chance.randrange(2, 40)):
        event = an_event(chance)
        at += chance.randrange(0, 10**11)
        made = draft(
            event, event_id=uuid7(at, seq), recorded_at=at, turn=chance.randrange(4), step=chance.randrange(3),
            said_at=chance.choice([None, at - 5]), cause=chance.choice([None, uuid7(at, 7)]),
        )  # fmt: skip
        record = place(made, agent_id, seq, seq)
        records.append(tombstone(record) if chance.random() < 0.08 else record)
    return records


def an_event(chance: random.Random) -> Event | UnknownEvent:
    if chance.random() < 0.05:
        return UnknownEvent(kind="of_tomorrow", version=1, text="x", payload=chance.choice(['{"a":1}', "no json", ""]))
    kind = chance.choice(FREQUENT if chance.random() < 0.7 else ANY)
    event: Event = some(CATALOGUE[kind], chance)
    if kind == "agent_configured":
        event = msgspec.structs.replace(event, window=chance.choice([0, 8000]))
    return event


def logs(seed: int) -> list[Record]:
    """Return the records of many agents and of a source, and one erasure, as every store has it."""
    chance = random.Random(seed)
    names = [f"agent {number} {chance.choice(WORDS)}" for number in range(LOGS - 1)]
    found = [record for name in [*names, "source:notes"] for record in log_of(name, chance)]
    erased = CATALOGUE["records_erased"](from_seq=1, to_seq=2)
    return [*found, place(draft(erased, event_id=uuid7(1, 1), recorded_at=1, turn=0, step=0), "z", 1, 1)]


def rows_of(views: FleetViews, name: str) -> list[Row]:
    """Return the rows of a view with times in microseconds, and without days, which follow from the times."""
    rows = views.table(f"SELECT * FROM {name}").to_pylist()
    for row in rows:
        day = row.pop("day", None)
        for column, value in row.items():
            if isinstance(value, datetime):
                row[column] = (value - EPOCH) // timedelta(microseconds=1)
        if day is not None:
            at = row["said_at"] if name == "messages" else row["recorded_at"]
            assert day == (EPOCH + timedelta(microseconds=at)).date()
    return rows


def same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """Check that rows and columns are equal, in any order of rows."""
    keys = [sorted(sorted((k, repr(v)) for k, v in row.items()) for row in rows) for rows in (found, expected)]
    for one, other in zip(*keys, strict=False):
        assert one == other
    assert len(found) == len(expected)


@pytest.mark.parametrize("seed", split(range(ENGINES), 2, label="fleet", part="laws"))
def test_every_view_is_the_fold_of_the_records(seed: int, tmp_path: Path) -> None:
    """Over 100 random logs, half of them sealed, each view has exactly the rows of the fold. Records that change how
    others are read are looked for in the files that are said to have them, which are some of the files. Every third
    file was sealed before the last column of `FIGURES` was added.
    """
    records = logs(seed)
    half = len(records) // 2
    paths, rare, older = [], [], []
    for start in range(0, half, FILE_ROWS):
        table = pa.Table.from_batches([batch_of(records[start : min(start + FILE_ROWS, half)])])
        paths.append(str(tmp_path / f"sealed-{start}.parquet"))
        content = encode("", table)[0]
        Path(paths[-1]).write_bytes(content)
        if len(paths) % 3 == 0:
            pq.write_table(pq.read_table(io.BytesIO(content)).drop_columns(FIGURES.names[-1]), paths[-1])
            older += paths[-1:]
        rare += paths[-1:] if rare_kinds(table) else []
    assert 0 < len(rare) < len(paths)
    expected = fold(records)
    assert set(expected) == set(VIEWS)
    fresh = pa.Table.from_batches([batch_of(records[half:])])
    assert older
    with FleetViews(paths, fresh, rare=rare, older=older, limits=ONE_THREAD, prices=lambda: PRICES) as views:
        for name in VIEWS:
            same(rows_of(views, name), expected[name])
            assert expected[name], f"no log has any {name}"
        check_console_listing(views)


def check_console_listing(views: FleetViews) -> None:
    """Fail unless the list of the console says what the views say that it replaces, of every agent."""
    since = views.table("SELECT median(epoch_us(recorded_at))::BIGINT AS at FROM failures").column("at")[0].as_py() or 0
    listed = {row["agent_id"]: row for row in views.table(fleet_query("listing")).to_pylist()}
    pressure = {row["agent_id"]: row for row in views.table("SELECT * FROM pressure").to_pylist()}
    turns = views.table("SELECT agent_id, life FROM turns WHERE status = 'open'").to_pylist()
    failed = views.table(
        f"SELECT agent_id, epoch_us(recorded_at) AS at FROM failures WHERE epoch_us(recorded_at) > {since}"
    ).to_pylist()
    found = views.table(fleet_query("console_listing").format(since=since)).to_pylist()
    assert [row["agent_id"] for row in found] == [*listed]
    for row in found:
        agent, full = row["agent_id"], pressure[row["agent_id"]]
        expected = listed[agent] | {name: full[name] for name in ("used", "fraction", "warned")}
        expected["open_turns"] = turns.count({"agent_id": agent, "life": full["life"]})
        times = [one["at"] for one in failed if one["agent_id"] == agent]
        assert row == expected | {"failures": len(times), "failed_at": max(times, default=None)}


SHARED = {
    "turns": ("duration_us",),
    "steps": (),
    "model_calls": ("failure", "cost"),
    "function_calls": ("duration_us",),
    "memory_history": ("turn",),
}
"""Views with the rows of a projection of the same name, and the columns that the projection does not have."""


def test_the_views_agree_with_the_projections_of_one_agent() -> None:
    """For the current incarnation of 60 random agents, rows and columns equal those of `projections/sql`, and so do the
    figures.
    """
    records = [upcast_record(record) for record in logs(99) if record.type != "of_tomorrow"][:1200]
    names = sorted({record.agent_id for record in records})
    with (
        FleetViews([], pa.Table.from_batches([batch_of(records)]), limits=ONE_THREAD) as views,
        Projections() as engine,
    ):
        engine.load(pa.Table.from_batches([batch_of(records)]))
        found = {name: rows_of(views, name) for name in VIEWS}
        lives = {row["agent_id"]: row["life"] for row in found["agents"] if row["current"]}
        assert len(lives) > 30
        for agent_id in (name for name in names if name in lives):
            for name, extra in SHARED.items():
                mine = [row for row in found[name] if (row["agent_id"], row["life"]) == (agent_id, lives[agent_id])]
                theirs = [plain(row) for row in engine.rows(name, agent_id)]
                same([{k: v for k, v in row.items() if k not in (*extra, "life")} for row in mine], theirs)
            (pressure,) = [row for row in found["pressure"] if row["agent_id"] == agent_id]
            for row in engine.rows("memory_pressure", agent_id):
                keys = ("tokens", "window", "fraction", "warned", "summary_seq")
                assert {key: row[key] for key in keys} == {key: pressure[key] for key in keys}
            (agent,) = [row for row in found["agents"] if row["agent_id"] == agent_id and row["current"]]
            (theirs,) = engine.rows("agents", agent_id)
            assert (agent["events"], agent["messages"], agent["head"]) == (
                theirs["events"], theirs["messages"], theirs["head"],
            )  # fmt: skip
            said = [row for row in found["messages"] if (row["agent_id"], row["life"]) == (agent_id, lives[agent_id])]
            recall = engine.rows("recall_memory", agent_id)
            assert sorted((row["seq"], row["text"], row["role"]) for row in said) == sorted(
                (row["seq"], row["text"], row["role"]) for row in recall
            )


def plain(row: Row) -> Row:
    """Return a row of a projection in the form of the views, whose name for the beginning is the same everywhere."""
    return {{"asked_at": "started_at"}.get(key, key): value for key, value in row.items() if key != "as_of"}


def test_as_of_a_time_is_the_fold_of_what_was_recorded_by_then() -> None:
    """A view as of a time contains no later record, no later incarnation, and no figure of them."""
    records = logs(5)
    upto = sorted(record.recorded_at for record in records)[len(records) // 2]
    by_then = [record for record in records if record.recorded_at <= upto]
    with FleetViews(
        [], pa.Table.from_batches([batch_of(records)]), upto=upto, limits=ONE_THREAD, prices=lambda: PRICES
    ) as views:
        for name, expected in fold(by_then).items():
            same(rows_of(views, name), expected)


class Family:
    """A store of agents, their forks and forks of those; names are reused, and records are erased."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.at = 10**15
        self.count = 0
        self.store = MemoryStore(now=lambda: self.at)
        for number in range(6):
            self.store.register(f"root {number}")
            self.live(f"root {number}", self.chance.randrange(2, 25))
        for number in range(24):
            parent = self.chance.choice(self.store.agents())
            head = self.store.reader(parent).head(parent).seq
            self.store.fork(parent, self.chance.randrange(1, head + 1), f"fork {number}", event_id=self.tick())
            self.live(f"fork {number}", self.chance.choice([0, 0, 1, 3, 12]))
            self.live(parent, self.chance.choice([0, 2]))

    def tick(self) -> str:
        self.at += self.chance.randrange(1, 10**10)
        self.count += 1
        return uuid7(self.at, self.count)

    def live(self, name: str, events: int) -> None:
        """Let an agent write a record; sometimes create it again, and erase some of its records."""
        log = self.store.open(name, "law")
        head = log.head(name).seq
        for seq in range(head, head + events):
            log.append(name, seq, [self.said(self.event())])
        if events > 5:
            first = head + self.chance.randrange(1, events)
            erased = CATALOGUE["records_erased"](from_seq=first, to_seq=first + 1)
            log.append(name, head + events, [self.said(erased)])
            log.seal()
        log.close()

    def said(self, event: Event) -> Draft:
        turn, step = self.chance.randrange(4), self.chance.randrange(3)
        return draft(event, event_id=self.tick(), recorded_at=self.at, turn=turn, step=step)

    def event(self) -> Event:
        if self.chance.random() < 0.04:
            event: Event = some(CATALOGUE["agent_created"], self.chance)
            return event
        kinds = ("agent_configured", "model_reply", "summary", "system_alert", "turns_hidden", "user_message")
        event = some(CATALOGUE[self.chance.choice(kinds)], self.chance)
        if event.kind == "agent_configured":
            event = msgspec.structs.replace(event, window=self.chance.choice([0, 8000, 9000]))
        if event.kind == "system_alert":
            event = msgspec.structs.replace(event, source="memory_pressure")
        return event

    def records(self) -> list[Record]:
        """Return each record once, from the agent that wrote it."""
        return [r for name in self.store.agents() for r in self.store.reader(name).read(name) if r.agent_id == name]


@pytest.mark.parametrize("seed", split(range(4), 1, label="families", part="laws"))
def test_views_over_forks_equal_the_fold_and_the_projections(seed: int) -> None:
    """For 24 forks, some of forks and of reused names, every view equals the fold of the records: now, as of a time,
    and for one agent alone. `pressure` agrees with each `memory_pressure`, and `agents` with the parent.
    """
    family = Family(seed)
    records = family.records()
    assert any(one.life > 1 for one in told(records)) and any("erased" in record.payload for record in records)
    table = pa.Table.from_batches([batch_of(records)])
    with FleetViews([], table, limits=ONE_THREAD, prices=lambda: PRICES) as views, Projections() as engine:
        for name, expected in fold(records).items():
            same(rows_of(views, name), expected)
        agents = {(row["agent_id"], row["life"]): row for row in rows_of(views, "agents")}
        check_console_listing(views)
        pressure = {row["agent_id"]: row for row in rows_of(views, "pressure")}
        assert sorted(pressure) == family.store.agents()
        for name in family.store.agents():
            engine.load(family.store.reader(name).table(name))
            row = agents[name, 1]
            parent = family.store.parent_of(name)
            assert (row["parent"], row["parent_seq"]) == (parent or (None, None))
            assert all(agents[key]["parent"] is None for key in agents if key[0] == name and key[1] > 1)
        found = {row["agent_id"]: row for row in engine.batch("memory_pressure", [(name, HEAD) for name in pressure])}
        nothing = {"tokens": 0, "window": None, "fraction": 0.75, "warned": False, "summary_seq": None}
        for name, row in pressure.items():
            assert {key: row[key] for key in nothing} == {key: found.get(name, nothing)[key] for key in nothing}
    later = [row for name, row in pressure.items() if name.startswith("fork")]
    assert sum(row["window"] is not None for row in later) >= 5, "few forks were configured: the figures prove little"
    upto = sorted(record.recorded_at for record in records)[len(records) * 2 // 3]
    with FleetViews([], table, upto=upto, limits=ONE_THREAD, prices=lambda: PRICES) as views:
        for name, expected in fold([record for record in records if record.recorded_at <= upto]).items():
            same(rows_of(views, name), expected)
    for name in family.chance.sample(sorted(pressure), 4):
        with FleetViews([], table, agent_id=name, limits=ONE_THREAD, prices=lambda: PRICES) as views:
            assert rows_of(views, "pressure") == [pressure[name]]
            same(rows_of(views, "agents"), [row for key, row in agents.items() if key[0] == name])

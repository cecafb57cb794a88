"""Stand-ins in plain Python for an agent's projections and turns, which are slow: also a second implementation of the
SQL.

An agent with them opens in a millisecond, so that thousands of worlds can be simulated. The text of an input decides
its turn: `[steps=3]` is the number of commits, `[fail]` lets the model fail, `[pause=2]` is a pause of heartbeats in
minutes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self
from unittest.mock import patch

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.events import HeartbeatsPaused, MessageSent, ModelError, ModelFailed, Record
from everlog.store import records_of
from tests.support.agent_world import SECOND

INPUTS = ("user_message", "heartbeat")
Row = Mapping[str, Any]
Wait = Callable[[], Any]


def told(text: str, what: str, default: int = 0) -> int:
    """Return the number of a command such as `[steps=3]` in an input's text, 1 without a number, or the default."""
    found = re.search(rf"\[{what}(?:=(\d+))?\]", text)
    return int(found[1] or 1) if found else default


def payload(record: Record) -> dict[str, Any]:
    return _decoded(record.payload)


@cache
def _decoded(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text)


def living(records: Sequence[Record]) -> list[Record]:
    """Return the records since the agent was last created."""
    born = max((r.seq for r in records if r.type == "agent_created"), default=1)
    return [r for r in records if r.seq >= born]


def timers(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the timers that will still send a heartbeat, with their due times, from all records of one agent."""
    found: dict[str, dict[str, Any]] = {}
    until = 0
    for record in living(records):
        what = payload(record)
        if record.type == "heartbeats_paused":
            until = what["until"]
        elif record.type == "timer_set":
            due, every = what["due_at"], what.get("every_s", 0)
            found[what["timer"]] = {
                "timer": what["timer"], "seq": record.seq, "text": record.text or "", "due_us": due, "every_s": every,
            }  # fmt: skip
        elif record.type == "timer_cancelled":
            found.pop(what["timer"], None)
        elif record.type == "heartbeat" and what["reason"] == "timer" and what["timer"] in found:
            timer = found[what["timer"]]
            every = timer["every_s"] * SECOND
            if not every:
                del found[what["timer"]]
            elif record.recorded_at >= timer["due_us"]:
                timer["due_us"] += every * ((record.recorded_at - timer["due_us"]) // every + 1)
    return [{**timer, "due_us": max(timer["due_us"], until)} for timer in found.values()]


def turn_ended(records: Sequence[Record]) -> bool:
    """Return True if the turn of these records, which a PlainTurns ran, has ended."""
    steps = told(records[0].text or "", "steps", 1)
    done = sum(r.type == "message_sent" for r in records)
    return done >= steps or any(r.type == "model_failed" for r in records)


def turns(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Return the records of each turn, its input first."""
    found: dict[int, list[Record]] = {}
    for record in living(records):
        if record.turn in found and record.step:
            found[record.turn].append(record)
        elif record.type in INPUTS:
            found[record.turn] = [record]
    return found


def waking(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the facts for an agent's activation from all its records. Inputs of open turns are marked as waiting."""
    born = living(records)[0].seq
    waiting = {of[0].seq for of in turns(records).values() if not turn_ended(of)}
    return [
        {
            "seq": r.seq, "living": r.seq >= born, "turn": r.turn, "step": r.step, "type": r.type,
            "cause": r.cause, "input": r.seq in waiting, "owed": None, "text": r.text,
            "configuration": r.payload if r.type == "agent_configured" else None,
        }
        for r in records
    ]  # fmt: skip


class PlainProjections:
    """The few projections that hosting needs, over a list of records."""

    def __init__(self, **_: Any) -> None:
        self._records: dict[str, list[Record]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            self._records.setdefault(record.agent_id, []).append(record)

    pending: frozenset[str] = frozenset()

    def flush(self) -> None:
        """Insert nothing: `add` has done so."""

    def load(self, table: Any) -> None:
        self.add(list(records_of(table)))

    def batch(self, name: str, wanted: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
        return [{"agent_id": agent_id, **row} for agent_id, _ in wanted for row in self.rows(name, agent_id)]

    def answers(self, name: str, wanted: Sequence[tuple[str, int]]) -> list[list[dict[str, Any]]]:
        return [self.rows(name, agent_id) for agent_id, _ in wanted]

    def known(self, name: str, one: tuple[str, int]) -> None:
        """Keep no contexts."""

    def forget(self, agent_id: str) -> None:
        self._records.pop(agent_id, None)

    def forget_many(self, agents: Sequence[str]) -> None:
        for agent_id in agents:
            self.forget(agent_id)

    def surplus(self, bytes_max: int) -> list[str]:
        """Return no agents: these projections hold little."""
        return []

    def rest(self) -> None:
        pass

    def close(self) -> None:
        pass

    def rows(self, name: str, agent_id: str, as_of: int = 0) -> list[dict[str, Any]]:
        records = self._records.get(agent_id, [])
        life = living(records)
        match name:
            case "timers":
                return timers(records)
            case "open_turns":
                return [
                    {"turn": turn, "started_at": of[0].recorded_at}
                    for turn, of in turns(records).items()
                    if not turn_ended(of)
                ]
            case "waking":
                return waking(records) if records else []
            case "standing":
                deleted = any(r.type == "agent_deleted" for r in life)
                last = max((r.turn for r in life), default=0)
                return [{"head": records[-1].seq, "turn": last, "deleted": deleted}] if records else []
        raise AssertionError(name)


class PlainTurns:
    """Runs turns as the texts of their inputs say."""

    def __init__(self, agent: Agent, wait: Wait) -> None:
        self._agent = agent
        self._wait = wait

    async def run(self, turn: int, cause: str) -> None:
        journal: Any = self._agent._journal
        engine = journal.projections if isinstance(journal, ShardJournal) else journal._projections
        done = turns(engine._records[self._agent.agent_id])[turn]
        words = done[0].text or ""
        for step in range(len([r for r in done if r.type == "message_sent"]) + 1, told(words, "steps", 1) + 1):
            await self._wait()
            if step == told(words, "fail"):
                await self._agent.commit(
                    [ModelFailed(text="No.", failure="server")], turn=turn, step=step, cause=done[0].event_id
                )
                raise ModelError("No.", kind="server")
            said: list[Any] = [MessageSent(text=f"{step} of {words}", call_id="")]
            if step == 1 and told(words, "pause"):
                minutes = told(words, "pause")
                now = self._agent._clock.now()
                said.append(HeartbeatsPaused(minutes=minutes, until=now + minutes * 60 * SECOND))
            await self._agent.commit(said, turn=turn, step=step, cause=done[0].event_id)


class PlainSystem(LocalSystem):
    """A system of plain agents. It lists no agents, because their logs would not verify."""

    def agents(self) -> list[str]:
        return []


@contextmanager
def plain(wait: Wait) -> Iterator[None]:
    """Let agents that are opened while the block runs be plain ones; `wait()` is awaited before each of their steps."""

    def activate(projections: PlainProjections, reader: Any, agent_id: str) -> None:
        projections.add(list(reader.read(agent_id)))

    def activate_many(projections: PlainProjections, reader: Any, agents: Sequence[str]) -> None:
        for agent_id in agents:
            assert agent_id not in projections._records, f"{agent_id} is there already"
            activate(projections, reader, agent_id)

    def make(agent: Agent, *_: object, **__: object) -> PlainTurns:
        return PlainTurns(agent, wait)

    with (
        patch("everlog.actors.hosting.agent_factory.LocalSystem", PlainSystem),
        patch("everlog.actors.agent.activation.Projections", PlainProjections),
        patch("everlog.actors.agent.activation.activate", activate),
        patch("everlog.actors.hosting.shard_journal.Projections", PlainProjections),
        patch("everlog.actors.hosting.shard_journal.activate", activate),
        patch("everlog.actors.hosting.shard_journal.activate_many", activate_many),
        patch("everlog.actors.hosting.pending_work.Projections", PlainProjections),
        patch("everlog.actors.agent.agent.TurnRunner", make),
    ):
        yield

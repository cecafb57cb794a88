"""Checks after a simulated run, based on the logs and the callers' answers only."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from everlog.actors.ports.agent_constants import RESENDS_MAX
from everlog.events import Record
from tests.support import virtual_time
from tests.support.agents import fast_stand_ins

if TYPE_CHECKING:
    from tests.support.cluster.sim_world import Hearing, Said, World


class StandInWorld(Protocol):
    """Simulated world whose agents are stand-ins."""

    async def think(self) -> None: ...

    async def live(self) -> None: ...

    def check(self) -> None: ...


WorldT = TypeVar("WorldT", bound=StandInWorld)

LATELY_US = 120_000_000
"""Microseconds before the end: a turn that began later may still be open."""


def check(world: "World") -> None:
    """Check everything. Raises AssertionError."""
    from tests.support.cluster.sim_world import AGENTS

    cluster = world.cluster
    for key, pids in cluster.acknowledged.items():
        assert len(pids) == 1, f"{key}: acknowledged by the processes {pids}"
    assert cluster.most_starting <= cluster.activations_max
    expected = (
        "died; unfinished turns continue",
        "in a row",
        "no room",
        "the name is taken",
        "is open in process",
        "No.",
    )
    strange = [note for note in cluster.notes if not any(words in note for words in expected)]
    assert not strange, strange
    assert not world.prepared, f"nothing ended the prepared processes {world.prepared}"
    for agent_id in AGENTS:
        records = world.log(agent_id)
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        check_turns(world, records)
        check_heartbeats(records, world.ended_at)
        if cluster.idle_s <= 30 and not fast_stand_ins.timers(records):
            assert agent_id not in world.active, f"nobody has let go of {agent_id}"
    for client in world.clients:
        losses = client.runtime.losses
        assert client.told_of_losses * (1 + RESENDS_MAX) <= losses, f"{losses} losses, and not sent again as often"
        for said in client.said:
            check_said(said, world.log(said.agent_id))


def check_log(world: Any, agent_id: str) -> list[Record]:
    """Check the log of an agent of a world with visitors, and what they have said to it. Return its records."""
    records = list(world.store.reader(agent_id).read(agent_id))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    check_turns(world, records)
    for visitor in world.visitors:
        for said in visitor.said:
            if said.agent_id == agent_id:
                check_said(said, records)
    return records


def lived(world: WorldT) -> WorldT:
    """Simulate a world whose agents are stand-ins, check it, and return it."""
    with fast_stand_ins.plain(world.think):
        virtual_time.run(world.live, collect=False)
    world.check()
    return world


def error_of(simulate: Callable[[int], object], seed: int, broken: AbstractContextManager[Any]) -> str:
    """Return the error of a seed's world while `broken` removes a guard; an empty string if there is none."""
    with broken:
        try:
            simulate(seed)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the seed found it
            return f"{type(error).__name__}: {error}"
    return ""


def check_turns(world: "World", records: list[Record]) -> None:
    """Check that every turn has ended, and that no step happened twice."""
    for turn, of in fast_stand_ins.turns(records).items():
        if of[0].recorded_at > world.ended_at - LATELY_US:
            continue
        done = [r.text for r in of if r.type == "message_sent"]
        assert len(done) == len(set(done)) or world.real, f"turn {turn} did a step twice: {done}"
        if world.real:
            assert of[-1].type in ("message_sent", "model_failed", "function_result"), f"turn {turn} has not ended"
        else:
            assert fast_stand_ins.turn_ended(of), f"turn {turn} of {of[0].agent_id} has not ended: {of[0].text}, {done}"


def check_heartbeats(records: list[Record], now: int) -> None:
    """Check that each timed heartbeat was due when it was recorded, that there is one for each due time, and that none
    is missing.
    """
    for number, record in enumerate(records):
        what = fast_stand_ins.payload(record)
        if record.type == "heartbeat" and what["reason"] == "timer":
            due = {timer["timer"]: timer for timer in fast_stand_ins.timers(records[:number])}
            assert what["timer"] in due, f"seq {record.seq}: nobody had set {what['timer']!r}, or it had gone off"
            timer = due[what["timer"]]
            assert record.recorded_at >= timer["due_us"], f"seq {record.seq} came before it was due"
            assert record.text == timer["text"]
    owed = [timer for timer in fast_stand_ins.timers(records) if timer["due_us"] < now - 60_000_000]
    assert not owed, f"{records[0].agent_id} is owed {owed} at {now}"


def check_said(said: "Said", records: list[Record]) -> None:
    """Check that an input is in the log at most once, and that each caller that listened to the end got its whole turn
    in order.
    """
    inputs = [record for record in records if record.event_id == said.event_id]
    texts = Counter(r.text for r in records if r.type == "user_message")
    assert texts[said.text] == len(inputs) <= 1, f"{said.text}: {texts[said.text]} times in the log"
    for preview_for in said.hearings:
        check_hearing(said, preview_for, inputs, records)


def check_hearing(said: "Said", preview_for: "Hearing", inputs: list[Record], records: list[Record]) -> None:
    seqs = [record.seq for record in preview_for.records]
    assert seqs == sorted(set(seqs)), f"{said.text}: heard {seqs}"
    for record in preview_for.records:
        assert record == records[record.seq - 1], f"{said.text}: heard what is not in the log"
    if not preview_for.done:
        return
    assert inputs, f"{said.text}: done, and not in the log"
    turn = inputs[0].turn
    own = [r.seq for r in records if r.turn == turn and (r.step or r.event_id == said.event_id)]
    heard = [r.seq for r in preview_for.records if r.turn == turn and (r.step or r.event_id == said.event_id)]
    assert heard == own, f"{said.text}: heard {heard} of {own}"
    failed = any(r.turn == turn and r.type == "model_failed" for r in records)
    assert preview_for.failed == failed, f"{said.text}: the caller was not told that the model failed"

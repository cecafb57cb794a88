"""The schedule with many agents: cost, concurrency, and no lost or doubled heartbeat."""

import asyncio
import tracemalloc
from collections import Counter
from heapq import heapify, heappush

import pytest

from everlog.actors.agent.commands import FireTimer
from everlog.actors.hosting import timer_schedule as schedules
from everlog.actors.hosting.timer_schedule import DeliveryCallback, DueTimer, HeartbeatBatch, TimerSchedule
from everlog.actors.ports.agent_constants import HEARTBEATS_IN_FLIGHT_MAX
from tests.support import virtual_time
from tests.support.agent_world import SECOND
from tests.support.agents.virtual_time_runtime import due
from tests.support.virtual_time import WallClock


class Sent:
    """The target of a schedule: it records what was sent, and each agent's next timer is due `every_s` later."""

    def __init__(self, every_s: int = 60, takes_s: float = 0.001) -> None:
        self.every_s = every_s
        self.takes_s = takes_s
        self.calls = self.most_at_once = self.most_tasks = 0
        self.sent: list[tuple[str, FireTimer]] = []
        self.clock = Looked()
        self.schedule = TimerSchedule(self.send, clock=self.clock)

    async def send(self, beats: HeartbeatBatch, over: DeliveryCallback) -> None:
        self.calls += 1
        self.sent += beats
        self.most_at_once = max(self.most_at_once, self.schedule.firing)
        self.most_tasks = max(self.most_tasks, len(asyncio.all_tasks()))
        await asyncio.sleep(self.takes_s)
        for agent_id, command in beats:
            if self.every_s:
                due = DueTimer(command.due_at + self.every_s * SECOND, command.timer, self.every_s, 1)
                self.schedule.know(agent_id, [due])
            over(agent_id)


class Looked(WallClock):
    """A clock that counts how often it is read."""

    looks = 0

    def now(self) -> int:
        self.looks += 1
        return super().now()


def scheduled(sent: Sent, known: dict[str, list[DueTimer]], for_s: float) -> None:
    """Run the schedule for `for_s` seconds."""

    async def main() -> None:
        for agent_id, timers in known.items():
            sent.schedule.know(agent_id, timers)
        running = asyncio.create_task(sent.schedule.run())
        await asyncio.sleep(for_s)
        running.cancel()
        await asyncio.wait([running])

    virtual_time.run(main)


def test_the_cost_of_a_heartbeat_does_not_depend_on_the_number_of_agents() -> None:
    """With a thousand agents and a heartbeat each ten minutes, the work for each heartbeat does not depend on the
    number of agents.
    """
    sent = Sent(every_s=600)
    compared = Counter[str]()

    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            compared["hash"] += 1
            return str.__hash__(self)

        __eq__ = str.__eq__

    scheduled(sent, {Name(f"agent-{n}"): [due(n * 0.6)] for n in range(1000)}, 1199.8)
    counts = Counter(agent for agent, _ in sent.sent)
    assert len(counts) == 1000 and set(counts.values()) == {2}
    assert compared["hash"] < 60 * len(sent.sent)
    assert sent.clock.looks < 8 * len(sent.sent)
    assert len(sent.schedule._heap) < 3000


def test_a_timer_that_stays_due_is_retried_after_a_minute() -> None:
    """A timer that is still due after its heartbeat was sent is tried again a minute later, marked late and with a new
    id.
    """
    sent = Sent(every_s=0)
    scheduled(sent, {"sam": [due(10)]}, 310)
    assert [command.late for _, command in sent.sent] == [False, True, True, True, True]
    assert len({command.id for _, command in sent.sent}) == 5, "an old id would be refused as stale one day"


def test_a_change_just_before_a_heartbeat_counts() -> None:
    """An agent may lose its last timer at the moment it is due: the schedule continues with the others."""
    sent = Sent()

    async def main() -> None:
        schedule = sent.schedule
        schedule.know("sam", [due(10)])
        schedule.know("ada", [due(20)])
        running = asyncio.create_task(schedule.run())
        await asyncio.sleep(9)
        asyncio.get_running_loop().call_at(10, lambda: asyncio.get_running_loop().call_soon(schedule.know, "sam", ()))
        await asyncio.sleep(15)
        schedule.know("sam", [due(30)])
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.wait([running])

    virtual_time.run(main)
    assert [agent for agent, _ in sent.sent][-2:] == ["ada", "sam"]


def test_ten_thousand_in_one_second_do_not_start_as_many_tasks() -> None:
    """Ten thousand due timers are sent in batches with a bounded number in flight; each is sent once."""
    sent = Sent(every_s=3600, takes_s=5)
    scheduled(sent, {f"agent-{n}": [due(10 + n / 10_000)] for n in range(10_000)}, 600)
    assert Counter(agent for agent, _ in sent.sent) == Counter({f"agent-{n}": 1 for n in range(10_000)})
    assert sent.most_at_once == HEARTBEATS_IN_FLIGHT_MAX
    assert sent.most_tasks < 1000
    assert sent.calls < 1000


def test_a_hanging_heartbeat_delays_no_other() -> None:
    """A delivery that never ends delays no other agent, not even those of the same batch."""

    async def main() -> Counter[str]:
        sent = Sent()
        counts: Counter[str] = Counter()

        async def send(beats: HeartbeatBatch, over: DeliveryCallback) -> None:
            for agent_id, command in beats:
                counts[agent_id] += 1
                if agent_id != "slow":
                    sent.schedule.know(agent_id, [DueTimer(command.due_at + 60 * SECOND, "tea", 60, 1)])
                    over(agent_id)
            await asyncio.sleep(1000 if any(agent_id == "slow" for agent_id, _ in beats) else 0)

        sent.schedule._send = send
        for name in ("ada", "slow", "sam"):
            sent.schedule.know(name, [due(10)])
        running = asyncio.create_task(sent.schedule.run())
        await asyncio.sleep(600)
        running.cancel()
        await asyncio.wait([running])
        return counts

    assert virtual_time.run(main) == {"ada": 10, "sam": 10, "slow": 1}


def test_a_hosts_report_is_newer_than_a_read_of_the_log() -> None:
    """Timers that a host reports replace those that are read from the log, whichever arrives first."""
    sent = Sent()

    async def main() -> None:
        schedule = sent.schedule
        schedule.know("sam", [])
        schedule.know("ada", [due(20)])
        for name in ("sam", "ada", "ben"):
            schedule.load_timers(name, [due(10)])
        schedule.finish_loading()
        running = asyncio.create_task(schedule.run())
        await asyncio.sleep(30)
        running.cancel()
        await asyncio.wait([running])

    virtual_time.run(main)
    assert [(agent, command.due_at) for agent, command in sent.sent] == [
        ("ben", due(10).at),
        ("ada", due(20).at),
    ]


def test_a_timer_due_at_time_zero_fires() -> None:
    """A timer that is due at time 0 fires: no due time has a special meaning."""
    sent = Sent(every_s=0)
    scheduled(sent, {"sam": [DueTimer(0, "tea")]}, 30)
    assert [agent for agent, _ in sent.sent] == ["sam"]


def test_too_many_timers_are_reported() -> None:
    """Agents beyond the limit are counted, and one note reports them; when there is room again, they are scheduled."""
    notes: list[str] = []

    async def main() -> None:
        schedule = TimerSchedule(Sent().send, clock=WallClock(), agents_max=2, note=notes.append)
        for name in ("ada", "ben", "sam", "sue"):
            schedule.know(name, [due(10)])
        assert (len(schedule), schedule.left_out) == (2, 2)
        schedule.know("ada", [])
        schedule.know("sam", [due(10)])
        assert (len(schedule), schedule.left_out) == (2, 2)

    virtual_time.run(main)
    assert len(notes) == 1 and "'sam'" in notes[0]


@pytest.mark.long
@pytest.mark.hosts
def test_a_hundred_thousand_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 100,000 timers fires once an hour, also across a restart. A timer takes less than 500 bytes, and each is
    pushed once onto the heap while loading.
    """
    pushed: list[object] = []
    ordered: list[object] = []
    tracemalloc.start()
    names = [f"agent-{n}" for n in range(100_000)]
    before = tracemalloc.get_traced_memory()[0]
    sent = Sent(every_s=3600)
    with monkeypatch.context() as patch:
        patch.setattr(schedules, "heappush", lambda heap, item: (pushed.append(None), heappush(heap, item)))
        patch.setattr(schedules, "heapify", lambda heap: (ordered.append(None), heapify(heap)))
        for n, name in enumerate(names):
            sent.schedule.load_timers(name, [DueTimer(due(n * 36 // 1000).at, f"timer-{n % 7}", 3600, 2)])
        sent.schedule.finish_loading()
    assert (len(pushed), len(ordered)) == (len(names), 0)
    pushed.clear()
    assert (tracemalloc.get_traced_memory()[0] - before) / len(names) < 500
    tracemalloc.stop()
    halves: list[Sent] = [sent, Sent(every_s=3600)]

    async def main() -> None:
        for half in halves:  # the second starts with the timers of the first
            half.schedule._began = half.clock.now()
            for name, kept in [] if half is sent else list(sent.schedule._kept.items()):
                half.schedule.load_timers(name, kept.timers)
            running = asyncio.create_task(half.schedule.run())
            await asyncio.sleep(5400)
            running.cancel()
            await asyncio.wait([running])

    virtual_time.run(main)
    told = Counter((agent, command.due_at) for half in halves for agent, command in half.sent)
    assert set(told.values()) == {1}
    assert len(told) == 3 * len(names)

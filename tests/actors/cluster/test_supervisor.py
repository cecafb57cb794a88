"""The supervisor: which hosts it starts, when and in which order, after any crash."""

import asyncio
from collections.abc import Collection, Sequence

import pytest

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.cluster.placement import HostedPartition, HostHandle, dedicated
from everlog.actors.hosting.pending_work import PendingWork
from everlog.actors.ports.agent_constants import RESTARTS_MAX, STARTS_WAITING_MAX
from everlog.events import ClusterError, EverlogError, UnknownAgent
from tests.support.agents.supervisor_world import Run, names
from tests.support.agents.virtual_time_runtime import due, run_plain

SAM, SHARD = dedicated("sam"), HostedPartition("shard-000")
LENT = SessionCapabilities(base_url="http://127.0.0.1:9")


def test_a_host_that_cannot_be_started_is_tried_again() -> None:
    """A host whose start failed is started again, and its unfinished turns are finished."""

    async def main() -> None:
        async with Run() as (supervisor, places, _):
            await supervisor.place("sam")
            places.fail = 2
            places.die(SAM)
            await asyncio.sleep(300)
            assert places.started == ["sam"] * 4
            assert places.performed == ["ResumeTurns"]

    run_plain(main)


def test_a_running_host_is_not_started_again() -> None:
    """A caller that lost the connection to a running host gets the same host again, also from a restarted
    supervisor.
    """

    async def main() -> None:
        async with Run() as (supervisor, places, _), Run() as (another, _, _):
            placed = await supervisor.place("sam")
            another._places = places
            assert await another.place("sam", lost=placed.key) is placed
            assert places.started == ["sam"]

    run_plain(main)


def test_turns_are_finished_by_the_first_process_that_notices_the_death() -> None:
    """If a caller reports a dead host before the supervisor notices, the host is restarted and its unfinished turns are
    finished.
    """

    async def main() -> None:
        async with Run() as (supervisor, places, _):
            placed = await supervisor.place("sam")
            del places.living[SAM]
            await supervisor.place("sam", lost=placed.key)
            await asyncio.sleep(10)
            assert places.performed == ["ResumeTurns"]

    run_plain(main)


@pytest.mark.parametrize("place", [SAM, SHARD])
def test_a_host_that_crashes_repeatedly_is_restarted_less_and_less_often(place: HostedPartition) -> None:
    """The time between two restarts grows, one note reports that, and a due timer restarts the host once a minute."""

    async def main() -> None:
        run = Run(PendingWork("sam", unfinished=True, timers=[]), place_of=lambda _: place)
        run.places.deadly = True
        async with run as (supervisor, places, notes):
            await asyncio.sleep(4000)
            assert 1 + RESTARTS_MAX < len(places.started) <= 8
            assert len([note for note in notes if "in a row" in note]) == 1
            assert len(notes) <= 1 + RESTARTS_MAX
            before = len(places.started)
            supervisor.schedule.know("sam", [due(0)])
            await asyncio.sleep(600)
            assert 10 <= len(places.started) - before <= 20
            places.deadly = False
            await asyncio.sleep(100)
            assert set(places.performed) == {"FireTimer"}

    run_plain(main)


def test_a_supervisor_that_has_ended_starts_nothing() -> None:
    """A closed supervisor refuses callers, starts no host and leaves no task behind."""

    async def main() -> None:
        async with Run(PendingWork("sam", unfinished=True, timers=[due(0)])) as (supervisor, places, _):
            await asyncio.sleep(1.5)
        with pytest.raises(ClusterError):
            await supervisor.place("ada")
        assert len(places.started) == 1

    run_plain(main)


async def nothing_unfinished(_: Sequence[str]) -> Collection[str]:
    return ()


def test_a_host_that_left_nothing_unfinished_is_not_started_again() -> None:
    """Forty hosts die with their machine. Hosts with unfinished turns are started, the most recently used first; the
    other hosts are started by the next command or timer. One note reports this.
    """

    async def main() -> None:
        async def unfinished(agents: Sequence[str]) -> Collection[str]:
            return set(agents) & {"agent-7", "agent-30", "agent-12"}

        async with Run(unfinished=unfinished) as (supervisor, places, notes):
            for name in names(40):
                await supervisor.place(name)
            places.started.clear()
            places.die(*list(places.living))
            await asyncio.sleep(200)
            assert places.started == ["agent-30", "agent-12", "agent-7"]
            assert len(notes) == 1 and "37 others died" in notes[0]
            assert supervisor.status.recoveries_waiting == 0
            supervisor.schedule.know("agent-3", [due(300)])
            await asyncio.sleep(200)
            await supervisor.place("agent-5")
            assert places.started[3:] == ["agent-3", "agent-5"]

    run_plain(main)


def test_late_records_of_a_lost_host_are_finished() -> None:
    """A partitioned host may append after its log was read, so the log is read again and new unfinished turns are
    finished.
    """

    async def main() -> None:
        wrote: set[str] = set()

        async def unfinished(agents: Sequence[str]) -> Collection[str]:
            return wrote & set(agents)

        async with Run(unfinished=unfinished) as (supervisor, places, _):
            await supervisor.place("sam")
            places.die(SAM)
            await asyncio.sleep(30)
            wrote.add("sam")
            await asyncio.sleep(100)
            assert places.performed == ["ResumeTurns"]

    run_plain(main)


def test_callers_go_before_recoveries_and_recoveries_before_timers() -> None:
    """Starts for waiting callers come first, then starts for unfinished turns, then starts for heartbeats."""

    async def main() -> None:
        unfinished = [PendingWork(f"hot-{n}", unfinished=True, timers=[], at=n) for n in range(4)]
        timed = [PendingWork(f"timed-{n}", unfinished=False, timers=[due(0)]) for n in range(4)]
        async with Run(*timed, *unfinished, activations_max=1) as (supervisor, places, _):
            await asyncio.sleep(0.5)
            asked = [asyncio.create_task(supervisor.place(name)) for name in ("ada", "timed-3")]
            await asyncio.gather(*asked)
            await asyncio.sleep(20)
            hot = ["hot-2", "hot-1", "hot-0"]
            assert places.started == ["hot-3", "ada", "timed-3", *hot, "timed-0", "timed-1", "timed-2"]

    run_plain(main)


def test_the_number_of_callers_waiting_for_a_host_is_limited() -> None:
    """A caller beyond the limit is refused and told when to try again; a caller of a running host is never refused."""

    async def main() -> None:
        async with Run() as (supervisor, places, _):
            await supervisor.place("sam")
            many = names(STARTS_WAITING_MAX + 10)
            reached = await supervisor.place_many([*many, "sam"])
            refused = [error for error in reached.placed.values() if isinstance(error, EverlogError)]
            assert len(refused) == 8 and isinstance(reached.placed[SAM.name], HostHandle)
            assert all(isinstance(e, ClusterError) and "try again in about 500 s" in str(e) for e in refused)
            again = await supervisor.place_many(many)
            assert all(isinstance(placed, HostHandle) for placed in again.placed.values())
            assert len(places.started) == 1 + len(many)

    run_plain(main)


def test_thousands_of_agents_are_placed_in_one_call() -> None:
    """Two thousand agents on two shards cost two host starts, and the reply maps each agent to its shard."""

    async def main() -> None:
        shards = [HostedPartition("shard-000"), HostedPartition("shard-001")]
        async with Run(place_of=lambda agent: shards[int(agent[-1]) % 2]) as (supervisor, places, _):
            reached = await supervisor.place_many(names(2000), LENT)
            assert sorted(places.started) == ["shard-000", "shard-001"] == sorted(reached.placed)
            assert reached.place_of["agent-1999"] == "shard-001"
            lost = reached.placed["shard-000"]
            assert isinstance(lost, HostHandle)
            places.die(shards[0])
            again = await supervisor.place_many(names(2000), LENT, {"shard-000": lost.key})
            assert again.placed["shard-000"] != lost
            assert again.placed["shard-001"] == reached.placed["shard-001"]
            await asyncio.sleep(10)
            assert len(places.performed) == 1 and "agent-1998" in places.performed[0]
            assert supervisor.status.lent == 2000

    run_plain(main)


def test_capabilities_are_in_the_commands_of_the_supervisor() -> None:
    """Resumed turns and heartbeats get the capabilities of the last caller, also after a crash; empty capabilities
    replace them.
    """

    async def main() -> None:
        async with Run() as (supervisor, places, _):
            await supervisor.place("sam", LENT)
            supervisor.schedule.know("sam", [due(0)])
            await asyncio.sleep(10)
            places.die(SAM)
            await asyncio.sleep(10)
            assert places.capabilities == [LENT, LENT]
            await supervisor.place("sam", SessionCapabilities())
            assert supervisor.status.lent == 0

    run_plain(main)


def test_heartbeats_of_one_partition_are_one_call() -> None:
    """Timers of one shard that are due together are sent in one call; a deleted agent is dropped, and a failed
    heartbeat is retried a minute later.
    """

    async def main() -> None:
        timed = [PendingWork(name, unfinished=False, timers=[due(5)]) for name in names(500)]
        async with Run(*timed, place_of=lambda _: SHARD) as (supervisor, places, notes):
            places.wrong = {"agent-1": UnknownAgent("no such agent"), "agent-2": ClusterError("not now")}
            await asyncio.sleep(30)
            assert (places.calls, places.started) == ([500], ["shard-000"])
            assert len(supervisor.schedule) == 499 and len(notes) == 1
            await asyncio.sleep(60)
            assert places.calls[1:] == [499], "nobody told that they are not due any more"

    run_plain(main)


def test_heartbeats_for_cold_hosts_do_not_pile_up() -> None:
    """Of four hundred heartbeats that would each start a host, at most a hundred wait for a start; the others are late,
    and all are sent.
    """

    async def main() -> None:
        timed = [PendingWork(name, unfinished=False, timers=[due(5)]) for name in names(400)]
        async with Run(*timed, activations_max=4, unfinished=nothing_unfinished) as (supervisor, places, notes):
            await asyncio.sleep(6.5)
            status = supervisor.status
            assert status.starting == 4 and 90 <= status.waiting_for["timer"] <= 100
            waiting = asyncio.create_task(supervisor.place("ada"))
            await asyncio.sleep(3)
            assert waiting.done()
            await asyncio.sleep(400)
            assert len(set(places.started)) == 401
            assert not notes

    run_plain(main)


def test_callers_follow_an_agent_that_was_moved() -> None:
    """Callers and a pending heartbeat go to the agent's new partition after its old host was lost."""

    async def main() -> None:
        where = {"sam": SAM}
        async with Run(place_of=lambda agent: where[agent]) as (supervisor, places, _):
            await supervisor.place("sam")
            supervisor.schedule.know("sam", [due(5)])
            await asyncio.sleep(5.5)
            where["sam"] = SHARD
            places.die(SAM)
            await asyncio.sleep(10)
            assert (await supervisor.place("sam")).key == places.living[SHARD].key
            assert places.calls == [1]

    run_plain(main)


def test_the_status_has_current_numbers() -> None:
    """The status has the current numbers of hosts, starts, deaths and timers, and the delay of the timers."""

    async def main() -> None:
        async with Run(PendingWork("sam", unfinished=False, timers=[due(1000)])) as (supervisor, places, _):
            asking = asyncio.create_task(supervisor.place_many(names(5)))
            await asyncio.sleep(0.5)
            status = supervisor.status
            assert (status.living, status.starting, status.waiting, status.waiting_for["caller"]) == (0, 2, 3, 3)
            assert (status.timers, status.next_due, status.lag_s) == (1, due(1000).at, 0)
            await asking
            places.die(dedicated("agent-0"))
            await asyncio.sleep(0.5)
            status = supervisor.status
            assert (status.living, status.deaths, status.recovering, status.recoveries) == (4, 1, 1, 0)
            await asyncio.sleep(200)
            status = supervisor.status
            assert (status.living, status.deaths, status.recovering, status.recoveries) == (5, 1, 0, 1)

    run_plain(main)


def test_no_state_is_kept_of_closed_hosts() -> None:
    """The supervisor keeps no state and no task of hosts that have closed."""

    async def main() -> None:
        async with Run() as (supervisor, places, _):
            for name in names(50):
                placed = await supervisor.place(name)
                assert supervisor.left(dedicated(name), placed.key) is placed
                places.die(dedicated(name))
            assert not supervisor._table._known
            await asyncio.sleep(1)
            assert not [task for task in supervisor._tasks if "_watch" in repr(task)]

    run_plain(main)

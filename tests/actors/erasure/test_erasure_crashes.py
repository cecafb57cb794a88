"""An erasure of all that says a phrase, in forks, a shared block and a moved agent, with a crash at each step."""

import asyncio
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.erasure.erase_planned import erase_planned
from everlog.actors.erasure.erasure_plan import plan_erasure
from everlog.actors.erasure.selection import Selection
from everlog.projections import DERIVER
from everlog.store import FileStore, check, check_moves
from tests.store.streams.test_move_service import CHANGES
from tests.support.agent_world import say
from tests.support.agents.shared_block_agents import CLOCK, PORTS, Team, append
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
SECRET, EARLIER = "XylophoneQuagmire", "GazeboTurmeric"
"""Words that the interrupted erasure is to erase, and words that an erasure before it had erased."""


def tell(disk: FaultyDisk) -> None:
    """Make a store in which Sam, a fork of it and a fork of that, a shared block and Kim, who copied it, all say the
    secret. Sam is moved, and everything is sealed in between.
    """
    store = FileStore.create(ROOT, CLOCK.now, "sim", shards=1, disk=disk)

    async def story() -> None:
        team = Team(store)
        await team.people.create("team", f"The word is {SECRET}", limit=500)
        async with team.opened("kim") as kim:
            await team.follow(kim)
            await team.tell(kim)
        async with team.opened("sam") as sam:
            await team.follow(sam)
            await team.tell(sam, say(f"Noted, {EARLIER}."), text=f"Remember {EARLIER}.")
            await team.tell(sam, append(f"and {SECRET}", "human"), say(f"So {SECRET}."), text=f"Remember {SECRET}.")
        team.system.move("sam", shared=True)
        async with team.opened("sam") as sam:
            await team.tell(sam, say(f"Still {SECRET}."), text="And now?")
        for parent, name in (("sam", "tom"), ("tom", "ann")):
            team.system.fork(parent, name)
            async with team.opened(name) as fork:
                await team.tell(fork, say(f"{name} says {SECRET}."), text="Who are you?")

    asyncio.run(story())
    for name in ("sam", "kim", "tom", "ann", "block:team"):
        log = store.open(name, "test")
        log.seal(DERIVER)
        log.close()
    erase(store, EARLIER)


def erase(store: FileStore, phrase: str) -> int:
    """Erase all that says the phrase. Return the number of records."""
    plan = plan_erasure(store, "sam", Selection(match=[phrase]), derived=True)
    return erase_planned(LocalSystem(store, ports=PORTS), plan).erased


def holding(disk: FaultyDisk, phrase: str) -> list[str]:
    """Return the names of the files that hold a phrase. Parquet files are decoded first, because they are
    compressed.
    """
    found = []
    for path, file in disk.files.items():
        content = bytes(file.content)
        if path.suffix in (".parquet", ".state", ".checkpoints"):
            # A file that the crash left half written has no rows to read.
            with suppress(pa.ArrowInvalid):
                content += repr(pq.read_table(BytesIO(content)).to_pylist()).encode()
        if phrase.encode() in content:
            found.append(path.name)
    return found


class Told(NamedTuple):
    """A store whose agents say the secret, and the same store after the erasure of the secret."""

    before: FaultyDisk
    after: FaultyDisk


@pytest.fixture(scope="module")
def told() -> Told:
    """Return the store; tests change copies."""
    before = FaultyDisk()
    tell(before)
    after = before.killed()
    assert erase(FileStore(ROOT, CLOCK.now, disk=after), SECRET) > 10
    return Told(before, after)


def assert_gone(disk: FaultyDisk, store: FileStore) -> None:
    assert holding(disk, SECRET) == holding(disk, EARLIER) == []
    assert check_moves(store) == []
    for partition in store.partitions():
        assert check(store.partition(partition), derive=DERIVER).ok


@pytest.mark.parametrize("count", few_and_all(2, part="commands"))
def test_p18_the_same_erasure_after_a_crash_at_any_step_leaves_no_copy(told: Told, count: int | None) -> None:
    """After a kill or a power loss at a change of the disk, the same erasure removes every copy from every stream, and
    what an earlier erasure had removed stays gone at every moment.
    """
    assert holding(told.before, SECRET) and not holding(told.before, EARLIER)
    assert_gone(told.after, FileStore(ROOT, CLOCK.now, disk=told.after))
    changes = [step for step, (what, *_) in enumerate(told.after.log) if what in CHANGES]
    assert len(changes) > 80
    for step in pick(changes, count, label="steps of an erasure with all that followed"):
        check_crash_at(told.before, step)


def check_crash_at(before: FaultyDisk, step: int) -> None:
    """Erase the secret with a crash at a step, then once more, and check that no copy is left."""
    crashing = before.killed()
    crashing.crash_at = step
    with pytest.raises(Crash):
        erase(FileStore(ROOT, CLOCK.now, disk=crashing), SECRET)
    crashing.crash_at = None
    disk = crashing.power_loss() if step % 2 else crashing.killed()
    assert holding(disk, EARLIER) == []
    store = FileStore(ROOT, CLOCK.now, disk=disk)
    erase(store, SECRET)
    assert_gone(disk, store)


def test_p18_files_that_the_last_step_replaced_are_removed_by_the_same_erasure(told: Told) -> None:
    """After a crash between the last manifest and the removal of the files that it replaced, no record is left to
    erase; the same erasure removes the files all the same.
    """
    log = told.after.log
    published = [step for step, (what, name) in enumerate(log) if what == "remove" and "manifest" in str(name)]
    last = max(step for step in published if str(log[step][1]).endswith(".tmp"))
    check_crash_at(told.before, last)

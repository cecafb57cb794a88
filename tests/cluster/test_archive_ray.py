"""The archive of a cluster: search by meaning in a process of its own, and recovery after a kill."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.api import open_system
from everlog.actors.archive.archive_index import index_of
from everlog.actors.cluster import ray_api
from everlog.actors.ports.real_clock import RealClock
from everlog.events import Record
from everlog.store import FileStore
from tests.cluster.process_kills import host_of, kill
from tests.contract.agent_functions import results
from tests.contract.contract_agents import SCRIPTED, alive, assert_sound, calls, log, says, scripted, texts

pytestmark = pytest.mark.ray

KEEPS = calls("archival_memory_insert", {"content": "The dog is called Rex"})
SEARCHES = calls("archival_memory_search", {"query": "animal companion"})
"""Queries that share no word with the stored texts."""
HEAVY = {"lancedb", "openai"}


@pytest.fixture
def opens(folder: Path) -> Any:
    return lambda **options: open_system(folder, runtime="ray", **options)


def told(records: list[Record]) -> str:
    """Return the results of the functions of a turn."""
    return " ".join(result.text for result in results(records))


def archive_of(folder: Path) -> Any:
    return ray_api.find_actor(str(folder.resolve()), "archive")


def environment_of(pid: int) -> list[bytes]:
    """Return the environment with which a process was started."""
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@alive
async def test_memories_are_found_by_meaning_in_the_archive_process(opens: Any, folder: Path) -> None:
    """A memory is found although it shares no word with the query: by its own process, and by the archive after the
    agent was loaded from its log. The agent's process has not imported the index. The archive's process has one heap,
    and its status has its sizes with their limits.
    """
    async with scripted(opens, KEEPS, SEARCHES, says("Done."), SEARCHES, says("Done.")) as (system, agent):
        assert "Rex" in told(await agent.send("go"))
        assert await system.runtime.unload(agent.agent_id)
        assert "Rex" in told(await agent.send("again"))
        assert packages(await host_of(system).modules.remote()).isdisjoint(HEAVY)
        assert {"lancedb", "tokenizers"} <= packages(await archive_of(folder).modules.remote())
        assert b"MALLOC_ARENA_MAX=1" in environment_of(await archive_of(folder).ready.remote())
        sizes = (await system.runtime.status()).archive
        assert 0 < sizes.versions < sizes.files
        assert 0 < sizes.row_cache_bytes < sizes.row_cache_bytes_max
        assert 0 < sizes.table_cache_bytes < sizes.table_cache_bytes_max
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_the_first_search_of_messages_in_a_cluster_is_by_meaning_too(opens: Any, folder: Path) -> None:
    """The host compares messages itself: no page says that words alone found it, and no archive is started."""
    search = calls("conversation_search", {"query": "animal companion"})
    async with scripted(opens, says("Nice."), search, says("Done.")) as (system, agent):
        await agent.send("My dog is called Rex")
        found = told(await agent.send("go"))
        assert "Rex" in found and "by words alone" not in found
        assert archive_of(folder) is None
        assert "lancedb" not in packages(await host_of(system).modules.remote())
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_killed_archive_is_back_with_all_that_was_kept(opens: Any, folder: Path) -> None:
    """After a SIGKILL of the archive between two turns of an agent that was loaded from its log, a new process answers
    the next search, and the index equals the log.
    """
    searches = (SEARCHES, says("Done."))
    async with scripted(opens, KEEPS, *searches, *searches, *searches) as (system, agent):
        await agent.send("go")
        assert await system.runtime.unload(agent.agent_id)
        await agent.send("and now")
        archive = archive_of(folder)
        kill(await archive.ready.remote())
        assert "Rex" in told(await agent.send("again"))
        assert_sound(system)
        clock = RealClock()
        index = index_of(FileStore(folder, clock.now))
        index.follow()
        assert index.check() == []
        index.close()
        assert len([record for record in log(system) if record.type == "archival_inserted"]) == 1


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize("dies", [False, True], ids=["hangs", "hangs and dies"])
@alive
async def test_searches_that_an_archive_leaves_without_an_answer_hold_up_no_other_agent(
    opens: Any, folder: Path, *, dies: bool
) -> None:
    """Two agents of a host search together while the archive hangs: each gets what words find, and reads that it is by
    words; if the archive is killed meanwhile, its successor answers. An agent of the same host is answered before that.
    Afterwards the archive answers.
    """
    kept = (KEEPS, says("Kept."))
    by_words = calls("archival_memory_search", {"query": "Rex"})
    replies = (*kept, *kept, SEARCHES, says("Done."), by_words, by_words, says("Done."), says("Done."), SEARCHES)
    async with scripted(opens, *replies, says("Done."), placement="shared", shards=1) as (system, sam):
        bob, eve = await system.agent("bob", SCRIPTED), await system.agent("eve")
        for agent in (sam, bob):
            await agent.send("go")
            assert await system.runtime.unload(agent.agent_id)
        await sam.send("the archive starts")
        archive = await archive_of(folder).ready.remote()
        os.kill(archive, signal.SIGSTOP)
        try:
            searching = [asyncio.ensure_future(agent.send("search")) for agent in (sam, bob)]
            assert texts(await eve.send("Good morning!"), "message_sent")
            assert not any(search.done() for search in searching)
            if dies:
                kill(archive)
            for found in await asyncio.gather(*searching):
                assert "Rex" in told(found)
                assert ("by words alone" in told(found)) is not dies
        finally:
            if not dies:
                os.kill(archive, signal.SIGCONT)
        assert "Rex" in told(await sam.send("again"))
        for name in ("sam", "bob", "eve"):
            assert_sound(system, name)

"""Commands over many agents or files: each fork is an agent of its own, with its parent's state at the fork point."""

import asyncio
from pathlib import Path

from everlog.actors.hosting.pending_work import pending_work
from everlog.events import ModelError, TimerSet, UserMessage
from everlog.projections import DERIVER
from everlog.store import FileStore, partition_of
from everlog.testing import ManualClock
from tests.interfaces.erase.test_erase_command import store_of
from tests.support.agent_world import World, say
from tests.support.cli.command_line import Line, completion, says


def test_sources_that_were_attached_at_the_cut_are_the_forks_too(cli: Line, tmp_path: Path):
    """A fork can search its parent's sources as of the fork point; later attachments and detachments affect one agent
    only.
    """
    for name, source in (("sam", "book"), ("max", "map")):
        (tmp_path / f"{source}.txt").write_text(f"The {source} is about whales.")
        cli.ok("load", name, str(tmp_path / f"{source}.txt"), "--source", source)
    cli.ok("fork", "sam", "--new-name", "tom")
    cli.ok("attach", "tom", "map")
    cli.ok("detach", "sam", "book")
    cli.ok("fork", "tom", "--new-name", "ann")
    who = {row["source"]: row["agents"] for row in cli.json("sources")}
    assert who == {"book": ["ann", "tom"], "map": ["ann", "max", "tom"]}
    for name, count in (("sam", 0), ("tom", 2), ("ann", 2)):
        found = cli.json("archive", "search", name, "whales")["results"]
        assert len(found) == count


def test_a_fork_searches_memories_by_words_and_by_meaning(cli: Line):
    """A fork finds the parent's memories up to the fork point, its own changes, and messages of both; the parent finds
    its own only.
    """
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", "The wifi password is tulip")
    bread = cli.json("archive", "insert", "sam", "Bread is bought on Mondays")["memory"]
    cli.script.answers = [says("I like whales.")]
    cli.ok("send", "sam", "What do you like?")
    cli.ok("fork", "sam", "--new-name", "tom")
    assert cli.json("archive", "insert", "tom", "Bread is bought on Mondays")["memory"] == bread
    cli.ok("archive", "insert", "sam", "The wifi is slow")
    (memory,) = [row["ref"] for row in cli.json("archive", "list", "tom")["results"] if "wifi" in row["text"]]
    cli.ok("archive", "update", "tom", memory, "The wifi password is rose")
    for words in ([], ["--words"]):
        texts = {
            name: [hit["text"] for hit in cli.json("archive", "search", name, "wifi", *words)["results"]]
            for name in ("sam", "tom")
        }
        assert "The wifi password is rose" in texts["tom"] and "The wifi is slow" not in texts["tom"]
        assert {"The wifi password is tulip", "The wifi is slow"} <= set(texts["sam"])
        recall = cli.json("search", "tom", "whales", *words)
        assert recall["results"][0]["text"] == "I like whales." and recall["by_meaning"] is (not words)


def test_files_of_forks_are_looked_after_like_all_others(cli: Line):
    """Check, stats and seal work for forks; a fork in a shard whose parent was in a shard is whole."""
    cli.ok("create", "sam", "--shards", "2", "--placement", "shared")
    cli.ok("send", "sam", "one")
    cli.ok("fork", "sam", "--new-name", "tom", "--placement", "shared")
    cli.ok("move", "sam", "--placement", "dedicated")
    cli.ok("fork", "sam", "--new-name", "ann")
    for name in ("tom", "ann"):
        cli.ok("send", name, "two")
    for _ in range(2):
        assert cli.json("log", "check", "tom", "--deep")["errors"] == []
        cli.ok("log", "check", "--all", "--deep")
        cli.ok("log", "stats", "--all")
        cli.ok("log", "seal", "--all")
    assert "no difference" in cli.ok("rebuild", "--all")
    assert sorted(row["agent"] for row in cli.json("agents")) == ["ann", "sam", "tom"]


def test_log_check_names_a_fork_that_lost_its_parent(cli: Line):
    """The exit code is 1, with --deep for one agent and with --all for any; the other checks pass."""
    cli.ok("create", "sam")
    cli.ok("fork", "sam", "--new-name", "tom")
    folder = store_of(cli).partition(partition_of("sam")).path
    folder.rename(folder.parent.parent / "elsewhere")
    for argv in (["tom", "--deep"], ["--all"]):
        code, _, err = cli("log", "check", *argv)
        assert code == 1
        assert "sam" in err and "is missing" in err


async def waiting(folder: Path) -> FileStore:
    """Create Sam with a timer and a waiting input, Tom (a fork of Sam) and Ann (an earlier fork of Sam, with a timer of
    her own).
    """
    store = FileStore.create(folder, ManualClock(tick_us=1000).now, "test", shards=1)
    world = World(after=say("Yes."), store=store)
    for name, parent in (("sam", ""), ("ann", "sam")):
        if parent:
            world.system.fork(parent, name)
        async with world.system.agent(name, world.settings) as agent:
            timer = TimerSet(text="Look.", timer=f"timer of {name}", due_at=10**15)
            await agent.commit([timer], turn=agent.turn, step=0)
            if name == "sam":
                await agent.receive(UserMessage(text="Hello"))
    world.system.fork("sam", "tom")
    return store


def test_pending_work_of_forks_is_known_to_their_supervisor(tmp_path: Path) -> None:
    """A turn that was open at the fork point is pending in the parent only. A timer that was set before is pending in
    both. The same holds when the parent or the fork has a state.
    """
    store = asyncio.run(waiting(tmp_path / "store"))
    notes: list[str] = []
    for name in ("", "sam", "tom"):
        if name:
            log = store.open(name, "test")
            log.seal(DERIVER)
            log.close()
        found = list(pending_work(store, notes.append))
        assert {one.agent_id: (one.unfinished, sorted(timer.timer for timer in one.timers)) for one in found} == {
            "sam": (True, ["timer of sam"]),
            "tom": (False, ["timer of sam"]),
            "ann": (False, ["timer of ann", "timer of sam"]),
        }
    assert notes == []


def test_a_fork_inside_a_turn_is_no_failure(cli: Line):
    """The view `failures` leaves out the turn that a fork closes, with its call; a failure of the model counts."""
    cli.script.answers = [
        completion(("archival_memory_search", {"query": "x", "request_heartbeat": True})),
        says("No."),
    ]
    cli.ok("send", "sam", "Look", "--model", "script")
    (reply,) = [row["seq"] for row in cli.lines("events", "sam", "--type", "model_reply")][1:2]
    cli.ok("fork", "sam", "--as-of", str(reply), "--new-name", "tom")
    assert cli.lines("events", "tom", "--type", "turn_abandoned") != []
    assert cli.json("sql", "SELECT * FROM failures")["rows"] == []
    cli.script.answers = [ModelError("gone", kind="rejected")]
    cli("send", "sam", "Hi")
    kinds = cli.json("sql", "SELECT agent_id, what FROM failures")["rows"]
    assert ["sam", "model"] in kinds

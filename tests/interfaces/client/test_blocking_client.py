"""The blocking client: the API of `everlog.open`, for a server in another thread."""

from pathlib import Path

import pytest

import everlog
from everlog.actors.loop_thread import LoopThread
from everlog.events import BadInput, ClusterError, UnknownAgent
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Served, served


@pytest.fixture
def server(tmp_path: Path):
    """Return a server that runs while the test does."""
    with LoopThread() as loop, loop.holding(served(tmp_path / "store", Script([says("Ahoy"), says("Bye")]))) as server:
        yield server


def test_a_script_talks_reads_and_forks(server: Served):
    """A script opens an agent, asks, reads its memory at a moment, forks it, and sends to many."""
    with everlog.connect(server.address) as system:
        sam = system.agent("sam")
        assert str(sam.ask("Hello")) == "Ahoy"
        assert "".join(sam.stream_text("Go")) == "Bye"
        sam.add_block("notes", "one")
        with system.view("sam") as now, system.view("sam", as_of=7) as born:
            assert now.memory()["notes"] == "one"
            assert "notes" not in born.memory()
        made = system.fork("sam", "tom", at=7)
        assert (made.parent, made.parent_seq, system.agents()) == ("sam", 7, ["sam", "tom"])
        sent = list(system.send_many([("sam", "One"), ("tom", "Two")]))
        assert sorted(one.agent_id for one in sent) == ["sam", "tom"]
        assert all(one.ok for one in sent)
        with pytest.raises(UnknownAgent, match="nobody"):
            system.agent("nobody", create=False)


def test_queries_blocks_sources_and_files(server: Served, tmp_path: Path):
    """SQL, shared blocks, sources, exports and restores go through the server, with the values of `everlog.open`."""
    with everlog.connect(server.address) as system:
        created = list(system.create_many(["sam", "tom"]))
        assert all(one.value.born for one in created)
        assert system.sql("SELECT count(*) AS n FROM agents").to_pylist() == [{"n": 2}]
        block = system.shared.create("rules", "Be kind", limit=50)
        assert system.shared.set("rules", "Be brief", base=block.version).value == "Be brief"
        sam = system.agent("sam")
        assert sam.attach_block("rules")
        assert not sam.attach_block("rules")
        assert system.shared.attached_agents()["rules"][0].agent == "sam"
        with pytest.raises(BadInput, match="no shared block 'none'"):
            system.shared.show("none")
        loaded = system.sources.load("docs", [everlog.Document(name="a.txt", text="Tea is green.")])
        assert (loaded.new, system.sources.names()) == (["a.txt"], ["docs"])
        assert sam.attach_source("docs")
        file = tmp_path / "sam.everlog"
        header = system.export("sam", file)
        assert header.own.to_seq == sam.configure(everlog.Settings()).head
        with pytest.raises(BadInput, match="already"):
            system.export("sam", file)
        assert [each.written for each in system.restore(file).streams] == [0]
        system.rename("sam", "sammy")
        with system.view("sammy") as view:
            assert view.agent_id == "sam"


def test_erased_records_leave_the_copies(server: Served):
    """After an erasure nothing of the erased text can be read through a client that had read it before."""
    with everlog.connect(server.address) as system:
        sam = system.agent("sam")
        sam.ask("My secret is plums")
        with system.view("sam") as before:
            assert any("plums" in row["text"] for row in before.rows("recall_memory"))
        assert system.erase("sam", everlog.Selection(match=["plums"])).erased >= 1
        with system.view("sam") as after:
            assert not any("plums" in row["text"] for row in after.rows("recall_memory"))
        folders = Path(system._wrapped.store.root).parent
        assert not [p for p in system._wrapped.store.root.rglob("*") if p.is_file() and b"plums" in p.read_bytes()]
        assert folders.exists()


def test_nothing_of_a_server_that_is_gone(server: Served):
    """A client whose system was closed says so, and an address without a server is a ClusterError."""
    with everlog.connect(server.address) as system:
        pass
    with pytest.raises(everlog.UsageError, match="closed"):
        system.agents()
    with pytest.raises(ClusterError), everlog.connect("http://127.0.0.1:9"):
        pass

"""From Python, the name of a deleted agent leads to the fork that took it."""

import pytest

import everlog
from everlog.testing import ScriptedModel, SyncScriptedSystem, system


def twice(agents: SyncScriptedSystem) -> None:
    """Make Sam, and two forks of Sam that have the name tom one after the other; the first is deleted."""
    agents.agent("sam").ask("Hi")
    agents.fork("sam", "tom")
    tom = agents.agent("tom", create=False)
    tom.ask("I am the first")
    tom.archive.insert("The gold is under the oak.")
    agents.delete("tom")
    assert agents.fork("sam", "tom").agent_id == "tom@gen2"


def said(agents: SyncScriptedSystem, name: str) -> list[str | None]:
    return [record.text for record in agents.log(name) if record.type == "user_message"]


def test_every_method_that_takes_a_name_finds_the_newest_agent_of_it() -> None:
    """Messages, views, searches, exports, reruns, comparisons and deletions go to the newest agent only."""
    with system(ScriptedModel(after="Yes.")) as agents:
        twice(agents)
        tom = agents.agent("tom", create=False)
        assert tom.agent_id == "tom@gen2"
        tom.ask("I am the second")
        assert [(one.agent_id, one.error) for one in agents.send_many([("tom", "Many")])] == [("tom@gen2", None)]
        assert [one.agent_id for one in agents.create_many(["tom", "new"])] in (
            ["tom@gen2", "new"],
            ["new", "tom@gen2"],
        )
        assert said(agents, "tom") == ["Hi", "I am the second", "Many"]
        assert said(agents, "tom@gen1") == ["Hi", "I am the first"]
        assert tom.archive.search("gold").total == 0
        with agents.view("tom") as view, agents.view("tom@gen1") as first:
            assert (view.agent_id, first.agent_id) == ("tom@gen2", "tom")
        assert agents.compare("sam", "tom").fork == "tom@gen2"
        assert agents.cancel("tom") == [] and agents.unload("tom")
        assert {row["agent_id"] for row in agents.sql("FROM records", agent="tom").to_pylist()} == {"tom@gen2"}
        agents.erase("tom", everlog.Selection(match=["second"]))
        assert said(agents, "tom") == ["Hi", None, "Many"] and "I am the first" in said(agents, "tom@gen1")
        assert agents.delete("tom") == ["tom@gen2"]
        agents.assert_verified("tom")
        agents.assert_verified("tom@gen1")


def test_a_rerun_can_be_made_again_under_its_name() -> None:
    """After the deletion of the fork the same rerun succeeds, as the next generation."""
    with system(ScriptedModel(after="Yes.")) as agents:
        agents.agent("sam").ask("Hi")
        first = next(record.seq for record in agents.log("sam") if record.type == "user_message")
        what = everlog.RerunOptions(agent_id="sam", from_seq=first, fork="again")
        names = []
        for _ in range(3):
            names.append(agents.rerun(what).comparison.fork)
            with pytest.raises(everlog.BadInput, match="already"):
                agents.rerun(what)
            agents.delete("again")
        assert names == ["again", "again@gen2", "again@gen3"]
        assert said(agents, "again") == ["Hi"]


def test_a_parent_is_deleted_with_forks_that_took_names_again() -> None:
    """`with_forks` deletes the living agents of each name, descendants first, and no other."""
    with system(ScriptedModel(after="Yes.")) as agents:
        twice(agents)
        agents.fork("tom", "ann")
        with pytest.raises(everlog.BadInput, match="ann, tom@gen2"):
            agents.delete("sam")
        assert agents.delete("sam", with_forks=True) == ["ann", "tom@gen2", "sam"]


def test_names_of_streams_are_taken_as_they_are_on_request(tmp_path: object) -> None:
    """With `exact_names` a program that has the names of streams reaches each of them."""
    with everlog.open(str(tmp_path), runtime="local") as agents:
        agents.agent("sam")
        agents.fork("sam", "tom")
        agents.delete("tom")
        agents.fork("sam", "tom")
    with everlog.open(str(tmp_path), runtime="local", exact_names=True) as agents:
        for name in ("tom", "tom@gen2"):
            with agents.view(name) as view:
                assert view.agent_id == name


def test_a_deleted_agent_comes_back_from_its_export(tmp_path: object) -> None:
    """`restore` names the agent as which it came back, which the name leads to."""
    with everlog.open(f"{tmp_path}/store", runtime="local") as agents:
        agents.agent("sam").ask("I sail")
        agents.export("sam", f"{tmp_path}/sam.everlog")
        agents.delete("sam")
        assert agents.restore(f"{tmp_path}/sam.everlog").revived == "sam@gen2"
        assert agents.agent("sam", create=False).agent_id == "sam@gen2"

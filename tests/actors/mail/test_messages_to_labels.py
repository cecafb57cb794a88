"""Messages of an agent to all agents with a label, in virtual time: each arrives once, or none is sent."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import DeleteAgent, DeliverLetter
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.mail import mail_functions
from everlog.actors.postbox.postbox import Postbox
from everlog.events import EverlogError, Record
from everlog.interfaces.cli.main import main
from everlog.store import FileStore
from tests.support import virtual_time
from tests.support.agents.writing_agents import Town


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `main` in virtual time."""
    return virtual_time.run(main)


def store_in(folder: Path) -> FileStore:
    """Return a new store: labels are read from files."""
    return FileStore.create(folder, virtual_time.WallClock().now, "0" * 32)


def test_a_message_to_a_label_reaches_each_agent_with_it_once(tmp_path: Path) -> None:
    """The sender, agents without the label, deleted agents and those of another tenant do not get it."""

    async def main() -> None:
        town = Town(store_in(tmp_path))
        sam, *_ = [await town.person(name, ["crew"]) for name in ("sam", "ann", "bob", "acme~eve")]
        await town.person("tom", ["guests"])
        gone = await town.person("old", ["crew"])
        await gone._sender.perform(DeleteAgent)
        await sam.send("shout crew (dinner)")
        await asyncio.sleep(10)
        heard = {name: town.heard(name) for name in ("sam", "ann", "bob", "tom", "acme~eve", "old")}
        assert {name for name, words in heard.items() if words} == {"ann", "bob"}
        assert heard["ann"] == heard["bob"] == [("sam", "dinner")]
        assert town.results("sam") == ["Sent to 2 agents: ann, bob."]
        assert town.states("sam") == ["delivered", "delivered"]
        await town.leave()

    run(main)


def test_messages_that_are_tried_again_are_told_together(tmp_path: Path) -> None:
    """While other processes hold the receivers, one note for each attempt says how many messages wait."""

    async def main() -> None:
        town = Town(store_in(tmp_path))
        sam, *_ = [await town.person(name) for name in ("sam", "tom")]
        for name in ("ann", "bob"):
            await (await town.person(name, ["crew"]))._sender.runtime.unload(name)
        async with LocalSystem(town.store).agent("ann"), LocalSystem(town.store).agent("bob"):
            await sam.send("shout crew (dinner)")
            await asyncio.sleep(10)
            assert town.states("sam") == ["pending", "pending"]
            (note,) = [note for note in town.notes if "tried again" in note]
            assert "2 messages, the first to 'ann', are tried again in a minute" in note
        await town.leave()

    run(main)


def test_a_message_to_a_label_that_cannot_be_sent_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label without agents, a blank one, too many bytes, and a broadcast that another one caused are refused."""

    async def main() -> None:
        town = Town(store_in(tmp_path))
        sam, *_ = [await town.person(name, ["crew"]) for name in ("sam", "ann", "bob")]
        await sam.send("shout nobody (hi) shout crew (LONG)")
        monkeypatch.setattr(mail_functions, "BROADCAST_BYTES_MAX", 19)
        await sam.send("shout crew (" + "y" * 10 + ")")
        refusals = [
            "No other agent has the label 'nobody'. Nothing was sent.",
            "A message has 1 to 20000 characters, not 20001. Nothing was sent.",
            "2 agents have the label 'crew': a message to a label goes to 1000 agents",
        ]
        for text, refusal in zip(town.results("sam"), refusals, strict=True):
            assert refusal in text
        assert town.states("sam") == []
        await sam.send("tell ann (shout crew (hi))")
        await asyncio.sleep(10)
        assert "not because of another agent's message" in town.results("ann")[0]
        assert town.heard("bob") == []
        await town.leave()

    run(main)


@pytest.mark.parametrize("agents", [8, pytest.param(200, marks=[pytest.mark.long, pytest.mark.effects])])
def test_a_storm_of_messages_to_a_label_drains(tmp_path: Path, agents: int) -> None:
    """Agents that all write to all at once: each message arrives once, and nothing is left to deliver."""

    async def main() -> None:
        town = Town(store_in(tmp_path))
        names = [f"a{one:03}" for one in range(agents)]
        crew = [await town.person(name, ["crew"]) for name in names]
        await asyncio.gather(*(one.send("shout crew (hi)") for one in crew))
        await asyncio.sleep(120 if agents < 100 else 3600)
        for name in names:
            assert sorted(sender for sender, _ in town.heard(name)) == [other for other in names if other != name]
            assert set(town.states(name)) == {"delivered", "received"}
        await town.leave()

    run(main)


def test_labels_are_listed_changed_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`configure` replaces all labels, `agents` lists who has all that are given, and a bad label changes nothing."""

    def command(*words: str) -> str:
        code = main([*words, "--store", str(tmp_path)])
        shown = capsys.readouterr()
        assert (code == 0) == (not shown.err), shown
        return shown.out + shown.err

    for name in ("ann", "bob"):
        command("create", name)
    command("configure", "ann", "--label", "crew", "--label", "night owl")
    assert [row["agent"] for row in json.loads(command("agents", "--label", "night owl", "--json"))] == ["ann"]
    command("configure", "bob", "--label", "crew")
    assert [row["agent"] for row in json.loads(command("agents", "--label", "crew", "--json"))] == ["ann", "bob"]
    both = command("agents", "--label", "crew", "--label", "night owl", "--json")
    assert [row["agent"] for row in json.loads(both)] == ["ann"]
    assert "given twice" in command("configure", "bob", "--label", "crew", "--label", "crew")
    assert "1 to 64 printable characters" in command("configure", "bob", "--label", " crew")
    assert json.loads(command("agents", "--label", "it's", "--json")) == []
    assert command("agents", "--label", "crw") == "No agent has the label 'crw'.\n"
    command("configure", "ann", "--label", "none")
    assert [row["agent"] for row in json.loads(command("agents", "--label", "crew", "--json"))] == ["bob"]


def test_a_delivery_to_a_label_that_dies_half_way_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends when some agents have the message and the sender's log says of none; then each has it once."""

    async def main() -> None:
        town, names = Town(store_in(tmp_path)), ("sam", "ann", "bob", "eve")
        sam, *_ = [await town.person(name, ["crew"]) for name in names]
        deliver = Postbox.deliver

        async def half(box: Postbox, agent: Agent) -> Record | None:
            async def dying(letters: Sequence[tuple[str, DeliverLetter]]) -> Sequence[EverlogError | None]:
                await letters_of(letters[:2])
                raise asyncio.CancelledError

            letters_of = box._send
            assert letters_of is not None
            monkeypatch.setattr(box, "_send", dying)
            return await deliver(box, agent)

        monkeypatch.setattr(Postbox, "deliver", half)
        await sam.send("shout crew (hi)")
        await asyncio.sleep(5)
        assert [len(town.heard(name)) for name in names] == [0, 1, 1, 0]
        assert town.states("sam") == ["pending"] * 3
        monkeypatch.setattr(Postbox, "deliver", deliver)
        await town.leave()
        town = Town(FileStore(tmp_path, virtual_time.WallClock().now))
        for name in names:
            await town.person(name, ["crew"])
        await asyncio.sleep(100)
        assert [town.heard(name) for name in names[1:]] == [[("sam", "hi")]] * 3
        assert town.states("sam") == ["delivered"] * 3
        await town.leave()

    run(main)

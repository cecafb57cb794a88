"""The law of agent files: an agent that is written as a Letta agent file and read again has its blocks and words."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import strategies as st

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.events import MessageSent, UserMessage
from everlog.events.times import moment, since_epoch
from everlog.interfaces.imports.letta_file_export import LettaAgentFile, letta_file_of
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.interfaces.imports.read_conversations import read_agents
from tests.laws.test_rerun_identity import lived
from tests.support.agent_world import World, completion, say
from tests.support.agents.random_edited_agent import edited
from tests.support.law import law
from tests.support.seeds import split


def said_in(world: World, agent: str = "sam") -> list[tuple[Any, ...]]:
    """Return what user and agent said: role, name, words and time in microseconds."""
    with closing(world.system.view(agent)) as view:
        rows = view.rows("recall_memory")
    return [(row["role"], row["name"], row["text"], row["time"]) for row in rows if row["text"].strip()]


def blocks_in(world: World, agent: str = "sam") -> set[tuple[Any, ...]]:
    with closing(world.system.view(agent)) as view:
        rows = view.rows("core_memory")
    return {(r["label"], r["value"], r["limit"], r["description"], r["read_only"]) for r in rows}


def written(world: World, agent: str = "sam") -> LettaAgentFile:
    with closing(world.system.view(agent)) as view:
        return letta_file_of(view)


def again(file: LettaAgentFile) -> PastConversation:
    (past,) = read_agents(file.encode(), "sam.af")
    return past


def words_of(past: PastConversation) -> list[tuple[Any, ...]]:
    roles = {"user_message": "user", "message_sent": "assistant"}
    return [
        (roles[one.event.kind], getattr(one.event, "name", ""), one.event.text, since_epoch(one.said_at))
        for one in past.messages
    ]


def shapes(blocks: Any) -> set[tuple[Any, ...]]:
    return {(one.label, one.value, one.limit, one.description, one.read_only) for one in blocks}


def check(world: World) -> None:
    """Check the law, that the file is the same each time, and that each call has an id and a result of its own."""
    file = written(world)
    past = again(file)
    assert words_of(past) == said_in(world)
    assert shapes(past.blocks) == blocks_in(world)
    assert written(world) == file
    (agent,) = file.content["agents"]
    ids = [message["id"] for message in agent["messages"]]
    assert len(set(ids)) == len(ids)
    assert set(agent["in_context_message_ids"]) <= set(ids)
    messages = agent["messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert len(set(calls)) == len(calls)
    for number, message in enumerate(messages):
        wanted = [call["id"] for call in message.get("tool_calls") or ()]
        answers = [one.get("tool_call_id") for one in messages[number + 1 : number + 1 + len(wanted)]]
        assert answers == wanted


@pytest.mark.parametrize("seed", split(range(40), 3, label="agent files", part="laws"))
def test_an_agent_that_did_everything_comes_back_with_its_words(seed: int) -> None:
    """After anything that an agent can do, its file has its blocks and all that was said, with names and times."""
    check(lived(seed)[0])


@pytest.mark.parametrize("seed", split(range(40), 1, label="edited agent files", part="laws"))
def test_an_agent_whose_past_was_edited_comes_back_with_its_words(seed: int) -> None:
    """Undone turns, edited thoughts, imports, summaries and an earlier agent of the name change nothing in that."""
    check(edited(seed))


def bad_call(arguments: Any) -> str:
    """Return a reply whose call of `send_message` fails."""
    return completion("I try.", [("send_message", arguments)])


WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip),
    st.sampled_from(["login", "heartbeat", "system_alert", "user_message", "other"]).map(
        lambda kind: json.dumps({"type": kind, "message": "Hi", "time": "2024-01-01 10:00:00 AM UTC+0000"})
    ),
    st.sampled_from(['{"type": 1}', '{"message": "x"}', "[1]", '"text"', "null", '{"status": "Failed"}', "{"]),
)
"""Words of people, among them all that looks like what Letta packs into JSON."""
SAID = st.tuples(st.booleans(), WORDS, st.sampled_from(["", "Ann", "Bo"]), st.integers(-(10**15), 4 * 10**15))
REPLIES: Sequence[Callable[[str], list[Any]]] = (
    lambda text: [bad_call("{]"), bad_call({"message": 7}), say(text)],
    lambda text: [completion(f"A thought: {text}")],
    lambda text: [say(text), say("Not asked for.")],
)
"""Replies of the model to the first messages: calls that fail and then one that works, a thought without a call, and an
answer.
"""
LABELS = st.text(st.sampled_from("abcxyz-_019"), min_size=1, max_size=8)
BLOCKS = st.dictionaries(
    LABELS, st.tuples(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40), st.booleans()), max_size=4
)


@law(st.lists(SAID, max_size=8), BLOCKS, few=2, many=400)
def test_any_words_and_blocks_come_back(said: list[tuple[bool, str, str, int]], blocks: Any) -> None:
    """Any words of any time come back as they were, also those that look like messages of a system."""
    world = World()
    own = [
        InitialBlock(label, value, description=value[:20] if value[:20].isprintable() else "", read_only=read_only)
        for label, (value, read_only) in blocks.items()
    ]
    world.settings = Settings(model="scripted", blocks=own)
    kinds = (MessageSent, UserMessage)
    past = [
        ImportedMessage(kinds[is_user](text=text, name=name, imported=True), moment(at))
        for is_user, text, name, at in said
    ]

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            if past:
                await agent.import_messages(past)
            for number, (is_user, text, name, _) in enumerate(said[:3]):
                world.model.lines = REPLIES[number](text)
                await agent.receive(UserMessage(text=text, name=name if is_user else ""))
                await agent.run()

    asyncio.run(life())
    check(world)


def test_words_that_look_packed_come_back() -> None:
    """Words of people that look like messages of Letta itself, each kind of them, are words of people again."""
    kinds = ["login", "heartbeat", "system_alert", "user_message", "other", 7]
    texts = [json.dumps({"type": kind, "message": "Hi"}) for kind in kinds] + ["{}", "[1]", '"a"', "null"]
    world = World()

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.import_messages(
                [ImportedMessage(UserMessage(text=text, imported=True), moment(n)) for n, text in enumerate(texts)]
            )

    asyncio.run(life())
    check(world)
    assert [text for _, _, text, _ in words_of(again(written(world)))] == texts

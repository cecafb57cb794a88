"""The model of a derivation: each answer is recorded first, read once, and paid for once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.models.daily_usage import spent_in
from everlog.events import BadReply, DerivationReplied, MemoriesDerived, ModelError, UserMessage, event_of
from tests.support.agent_world import Line, World, completion

ASKED = [("system", "Name the sea."), ("user", "The Baltic is a sea.")]


def read(text: str) -> str:
    """Return an answer of one word; others are unusable."""
    if " " in text:
        raise BadReply("The answer has several words.")
    return text


async def with_agent(world: World, work: Callable[[Agent], Awaitable[object]]) -> object:
    async with world.system.agent("sam", world.settings) as agent:
        if not any(kind == UserMessage.kind for kind in world.kinds()):
            await agent.commit([UserMessage(text="The Baltic is a sea.")], turn=0, step=0)
        return await work(agent)


async def ask(agent: Agent, purpose: str = "facts") -> tuple[str | None, str]:
    return await DerivationModel(agent, "facts", "wise", 2).ask(purpose, ASKED, read, [3])  # type: ignore[arg-type]


def replies(world: World) -> list[DerivationReplied]:
    events = [event_of(record) for record in world.log()]
    return [event for event in events if isinstance(event, DerivationReplied)]


def test_an_answer_is_recorded_with_its_request_before_it_is_returned() -> None:
    """The record has the model, what it was shown, the digest and size of the request, the body, and no fault."""
    world = World(summaries=[completion("Baltic")])
    found, event_id = asyncio.run(with_agent(world, ask))  # type: ignore[misc]
    (reply,) = replies(world)
    assert (found, reply.fault, reply.model, reply.generation, reply.sources) == ("Baltic", "", "wise", 2, [3])
    assert event_id == world.log()[-1].event_id and reply.raw == completion("Baltic")
    assert reply.context_bytes == len(world.model.seen[-1].raw) and len(reply.context_sha256) == 64


def test_a_recorded_answer_is_read_again_instead_of_asking_twice() -> None:
    """A derivation that lost its process after the answer sends nothing the second time."""
    world = World(summaries=[completion("Baltic")])
    first = asyncio.run(with_agent(world, ask))
    again = world.restarted()
    assert asyncio.run(with_agent(again, ask)) == first
    assert not again.model.seen and len(replies(again)) == 1


def test_an_answer_from_before_the_cursor_is_not_read_again() -> None:
    """All that a committed cursor covers is over: the same request later is a new question. So is another purpose."""

    async def work(agent: Agent) -> None:
        await ask(agent)
        await ask(agent, "questions")
        cursor = MemoriesDerived(derivation="facts", from_seq=1, to_seq=2, deriver="wise", generation=2)
        await agent.commit([cursor], turn=0, step=0)
        await ask(agent)

    world = World(summaries=[completion("Baltic")] * 3)
    asyncio.run(with_agent(world, work))
    assert len(world.model.seen) == len(replies(world)) == 3


@pytest.mark.parametrize(
    "bad",
    [completion("two words"), completion(""), completion("Balt", finish="length"), "no completion", '{"choices": []}'],
)
def test_an_unusable_answer_is_recorded_with_its_fault_and_asked_for_once_more(bad: Line) -> None:
    """The second answer counts; the first stays in the log with the reason, and nothing is concluded from it."""
    world = World(summaries=[bad, completion("Baltic")])
    found, _ = asyncio.run(with_agent(world, ask))  # type: ignore[misc]
    first, second = replies(world)
    assert found == "Baltic" and first.fault and first.raw == bad and not second.fault


def test_two_unusable_answers_give_nothing_and_are_not_asked_for_a_third_time() -> None:
    """Both are recorded. The same derivation in another process finds them, and asks no more."""
    world = World(summaries=[completion("two words"), completion("three more words")])
    found, event_id = asyncio.run(with_agent(world, ask))  # type: ignore[misc]
    again = world.restarted()
    assert asyncio.run(with_agent(again, ask)) == (found, event_id) == (None, world.log()[-1].event_id)
    assert not again.model.seen and [reply.fault for reply in replies(world)] == ["The answer has several words."] * 2


def test_a_model_that_cannot_be_asked_leaves_no_record() -> None:
    """The error reaches the caller, who may try later."""
    world = World(summaries=[ModelError("The endpoint is down.", kind="unreachable")])
    with pytest.raises(ModelError, match="down"):
        asyncio.run(with_agent(world, ask))
    assert not replies(world)


def test_the_answers_of_derivations_count_in_the_budget_of_the_day() -> None:
    """The log tells what a derivation spent, by its own model, also to another process."""
    world = World(summaries=[completion("two words", total=100), completion("Baltic", total=50)])
    asyncio.run(with_agent(world, ask))
    assert spent_in(world.log(), "")["wise"].total == 150

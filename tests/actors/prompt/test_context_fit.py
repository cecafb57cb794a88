"""Contexts that are too long for the window: in every case the turn ends and nothing is lost."""

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pytest

from everlog.actors.agent.agent_setup import InitialBlock
from everlog.actors.prompt import context_fit
from everlog.events import ContextOverflow, Record, event_of
from everlog.projections.fleet_views import FleetViews, QueryLimits
from everlog.store import batch_of
from tests.support.agent_world import World, completion, counted, kinds, say


def answering(body: str = "") -> World:
    """Return a world whose model counts a token for four bytes of request."""
    world = World()
    world.model.after = lambda request: counted(request, body or say("Go on."))
    return world


def told(world: World, *texts: str) -> list[Record]:
    return asyncio.run(world.tell(*texts))


def fits(world: World) -> None:
    """Check that every request fits the window, and that each call in it has its result."""
    for request in world.model.requests:
        assert len(request) // 4 <= world.settings.window
        assert_well_formed(json.loads(request)["messages"])


def assert_well_formed(messages: Sequence[dict]) -> None:
    """Check that each tool message answers a call of the assistant message before it, and that each call is
    answered.
    """
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "a call without a result"
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
    assert not open_calls


LONG = "The sea was calm and the wind came from the west all day. " * 12


def test_a_long_conversation_is_summarized_and_continues() -> None:
    """The window fills, the oldest part is summarized, the last three messages stay, and the counts are right."""
    world = answering()
    told(world, *[f"{number}: {LONG}" for number in range(40)])
    fits(world)
    summaries = [event_of(record) for record in world.log() if record.type == "summary"]
    assert len(summaries) >= 2
    assert [s.kept_from for s in summaries] == sorted({s.kept_from for s in summaries})
    last = summaries[-1]
    assert last.method == "model"
    assert last.summarized <= last.hidden < last.total
    note = next(m for m in world.model.messages() if "prior messages" in m["content"])
    message = json.loads(note["content"])["message"]
    assert f"({last.hidden} of {last.total} total messages)" in message
    assert f"summary of the previous {last.summarized} messages" in message
    assert world.system.view("sam").rows("recall_memory")[0]["text"].startswith("0: ")


def test_a_cut_never_parts_a_call_from_its_result() -> None:
    """For any end of a summary, the requests after it are well-formed."""
    world = answering()
    search = completion(calls=[("conversation_search", {"query": "sea", "request_heartbeat": True})])
    for number in range(15):
        world.model.lines = [lambda request: counted(request, search)]
        told(world, f"{number}: {LONG}")
    fits(world)
    assert "summary" in world.kinds()


def test_one_message_larger_than_the_window_is_kept_whole_and_shown_cut() -> None:
    """Recall memory has the whole message, the model sees its beginning and a handle, and the turn is answered."""
    world = answering()
    huge = "whale " * 20_000
    left = told(world, "Hello", huge, "Still there?")
    fits(world)
    assert {turn["status"] for turn in world.system.view("sam").rows("turns")} == {"done"}
    assert kinds(left)[-2:] == ["message_sent", "function_result"]
    assert "context_trimmed" in kinds(left)
    assert any(row["text"] == huge for row in world.system.view("sam").rows("recall_memory"))
    handle = "more characters; the whole is record"
    requests = [json.loads(request)["messages"] for request in world.model.requests]
    shown = next(m["content"] for messages in requests for m in messages if handle in m["content"])
    assert json.loads(shown)["message"].startswith("whale whale")


def test_a_core_memory_larger_than_the_window_is_shown_cut_and_kept_whole() -> None:
    """The block keeps its value; the model sees a part of it and is told where to read the rest."""
    world = answering()
    value = "fact. " * 10_000
    world.settings = msgspec.structs.replace(world.settings, blocks=[InitialBlock("notes", value, 100_000)])
    left = told(world, "Hello")
    fits(world)
    assert kinds(left)[-3:] == ["model_reply", "message_sent", "function_result"]
    block = next(b for b in world.system.view("sam").rows("core_memory") if b["label"] == "notes")
    assert block["value"] == value
    assert f'<notes characters="{len(value)}/100000">' in world.model.messages()[0]["content"]


def test_a_summary_that_does_not_shrink_is_replaced_by_a_mechanical_one() -> None:
    """Two rejected summaries are recorded with their requests, then a mechanical summary is made."""
    world = answering()
    endless = completion("blah " * 30_000)
    world.model.summaries = [endless] * 100
    left = told(world, *[f"{number}: {LONG}" for number in range(30)])
    fits(world)
    rejected = [event_of(record) for record in left if record.type == "reply_rejected"]
    assert {(r.purpose, r.words) for r in rejected} == {("summary", 100), ("summary", 40)}
    summary = next(event_of(record) for record in left if record.type == "summary")
    assert summary.method == "mechanical"
    calls = world.system.view("sam").rows("model_calls")
    assert {row["purpose"] for row in calls if row["outcome"] == "rejected"} == {"summary"}
    plain = pa.Table.from_batches([batch_of(left)])
    with FleetViews([], plain, limits=QueryLimits(threads=1)) as views:
        told_as = views.table("SELECT DISTINCT purpose FROM model_calls WHERE outcome = 'rejected'")
    assert told_as.to_pylist() == [{"purpose": "summary"}]
    assert "records without a model's summary" in summary.text


@pytest.mark.parametrize("turns", [100, pytest.param(500, marks=[pytest.mark.long, pytest.mark.agents])])
def test_hundreds_of_turns_without_a_pause_stay_inside_the_window(turns: int) -> None:
    """Every request fits, every turn is answered, and summaries are made repeatedly."""
    world = answering()
    left = told(world, *[f"{number}: {LONG[:200]}" for number in range(turns)])
    fits(world)
    assert kinds(left).count("message_sent") >= turns
    assert kinds(left).count("summary") > turns / 50
    assert {turn["status"] for turn in world.system.view("sam").rows("turns")} == {"done"}


def test_an_overflow_reported_by_the_provider_leads_to_a_summary() -> None:
    """The endpoint's error is recorded, the context is summarized, and the turn is answered."""
    world = answering()
    told(world, *[f"{number}: {LONG[:300]}" for number in range(8)])
    world.model.lines = [ContextOverflow("maximum context length"), say("Better.")]
    left = told(world, "one more")
    assert kinds(left) == [
        "user_message", "reply_rejected", "summary", "model_reply", "message_sent", "function_result",
    ]  # fmt: skip


def test_a_permanent_overflow_ends_the_turn() -> None:
    """If no measure helps, the turn is abandoned, the message is kept, and the next message is answered."""
    world = answering()
    told(world, *[f"{number}: {LONG[:300]}" for number in range(8)])
    world.model.lines = [ContextOverflow("maximum context length")] * 200
    left = told(world, "one more")
    assert kinds(left)[-1] == "turn_abandoned"
    assert "Use a model with a larger window" in (left[-1].text or "")
    world.model.lines = []
    assert "message_sent" in kinds(told(world, "and now?"))
    assert any(row["text"] == "one more" for row in world.system.view("sam").rows("recall_memory"))


def test_a_summary_can_be_taken_back_and_made_again() -> None:
    """Expanding shows the summarized messages again, a view as of the summary still shows it, and a new summary can be
    made.
    """
    world = answering()
    told(world, *[f"{number}: {LONG[:300]}" for number in range(6)])

    async def there_and_back() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            before = world.system.view("sam").context().messages
            assert await agent.summarize()
            hidden = world.system.view("sam")
            assert len(hidden.context().messages) < len(before)
            assert await agent.expand()
            expanded = world.system.view("sam")
            assert expanded.context().messages == before
            assert expanded.context(hidden.head.seq).messages == hidden.context().messages
            assert await agent.summarize()
            assert await agent.expand()
            assert not await agent.expand()

    asyncio.run(there_and_back())


@pytest.mark.parametrize("keep", [1, 3, 5])
def test_the_last_messages_stay(keep: int) -> None:
    """A summary leaves at least the configured number of newest messages in view."""
    world = answering()
    told(world, *[f"{number}: {LONG[:300]}" for number in range(6)])
    context = world.system.view("sam").context()
    cut = context_fit.summarize(context, keep)
    assert cut is not None
    assert len([m for m in context.messages if m.seq >= cut.kept_from]) >= keep

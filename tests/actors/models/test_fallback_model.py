"""A fallback model is called in its own calling format, and failed answers count as usage."""

import asyncio
import json
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.models.daily_usage import spent_in
from everlog.actors.models.model_types import ModelDefaults
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ModelError, ModelFailed, ModelSwitched, ReplyRejected, Sampling, event_of
from everlog.testing import SeenRequest
from tests.support.agent_world import World, completion, counted, say
from tests.support.models.virtual_time_models import SlowModel, outcome, run, seconds

URL = "http://127.0.0.1:1/v1"
FILTERED = completion("I", finish="content_filter", total=5000)


def knowing(world: World, **known: ModelDefaults) -> World:
    """Return the same world, with these model defaults."""
    world.system = LocalSystem(
        world.store, models=lambda _: world.model, ports=world.ports, services=AgentServices(known=known.__getitem__)
    )
    return world


def events(world: World, kind: type) -> list[Any]:
    return [event for record in world.log() if isinstance(event := event_of(record), kind)]


def test_a_fallback_uses_its_own_calling_format() -> None:
    """The switch records the fallback's calling format, window, sampling and streaming, which the request and the
    reader use. The next turn uses the agent's own again, and the log verifies.
    """
    own = ModelDefaults(calling="native")
    other = ModelDefaults(calling="schema", window=16_000, sampling=Sampling(temperature=0.25), stream=True)
    reply = json.dumps({"inner_thoughts": "", "function": "send_message", "params": {"message": "In its place."}})
    world = knowing(World(ModelError("Down.", kind="server"), completion(reply)), one=own, other=other)
    world.settings = Settings(model="one", window=8192, fallback="other")
    asyncio.run(world.tell("Hello", "And now?"))
    first, second, third = (json.loads(request) for request in world.model.requests)
    assert (first["model"], "tools" in first) == ("one", True)
    assert (second["model"], "tools" in second, "response_format" in second) == ("other", False, True)
    assert (second["temperature"], second["stream"]) == (0.25, True)
    assert (third["model"], "tools" in third, "stream" in third) == ("one", True, False)
    (switched,) = events(world, ModelSwitched)
    assert (switched.calling, switched.window, switched.stream) == ("schema", 16_000, True)
    assert "In its place." in [record.text for record in world.log() if record.type == "message_sent"]
    assert not verify(world.system.view("sam"), world.system.tools).faults


def test_a_fallback_that_is_the_model_itself_is_asked_once() -> None:
    """If a model is its own fallback, it is called twice, and the turn ends."""
    world = World(after=ModelError("Down.", kind="server"))
    world.settings = Settings(model="one", window=8192, fallback="one")
    with pytest.raises(ModelError):
        asyncio.run(world.tell("Hello"))
    assert len(world.model.requests) == 2


def test_a_failing_summarizer_is_replaced_by_the_agents_model() -> None:
    """If the summarizer fails, the agent's own model writes the summary, the turn is answered, the log has the reason,
    and it verifies.
    """
    text = "The sea was calm and the wind came from the west all day. " * 12
    world = World(after=lambda request: counted(request, say("Go on.")))
    world.settings = Settings(model="one", window=8192, summarizer="small")
    world.model.summaries = [ModelError("No such model.", kind="missing")]
    asyncio.run(world.tell(*[f"{number}: {text}" for number in range(20)]))
    asked = [json.loads(request)["model"] for request in world.model.requests if SeenRequest(request).is_summary]
    assert asked[:2] == ["small", "one"]
    switched = events(world, ModelSwitched)[0]
    assert (switched.model, switched.to, switched.failure) == ("small", "one", "missing")
    assert "summary" in world.kinds() and "model_failed" not in world.kinds()
    assert not verify(world.system.view("sam"), world.system.tools).faults


def test_a_model_that_replaced_the_summarizer_has_a_fallback() -> None:
    """If the summarizer and then the agent's own model fail, the fallback is called."""
    text = "The sea was calm and the wind came from the west all day. " * 12
    world = World(after=lambda request: counted(request, say("Go on.")))
    world.settings = Settings(model="one", window=8192, summarizer="small", fallback="other")
    world.model.summaries = [ModelError("Gone.", kind="missing"), ModelError("Down.", kind="server")]
    asyncio.run(world.tell(*[f"{number}: {text}" for number in range(20)]))
    assert [event.to for event in events(world, ModelSwitched)][:2] == ["one", "other"]
    assert "model_failed" not in world.kinds()


def test_a_failed_answer_that_was_paid_for_counts() -> None:
    """The tokens of a filtered answer are in `model_failed` or `model_switched`, in `model_calls`, and in today's usage
    of the model that gave it.
    """
    world = World(FILTERED, FILTERED, say("Yes.", total=7))
    with pytest.raises(ModelError):
        asyncio.run(world.tell("Hello"))
    (failed,) = events(world, ModelFailed)
    assert (failed.model, failed.usage.total) == ("scripted", 5000)
    world.settings = Settings(model="scripted", window=8192, fallback="other")
    asyncio.run(world.tell("Hello"))
    (switched,) = events(world, ModelSwitched)
    assert switched.usage.total == 5000
    assert sum(row["tokens"] for row in world.system.view("sam").rows("model_calls")) == 10_007
    spent = spent_in(world.log(), "")
    assert (spent["scripted"].total, spent["other"].total) == (10_000, 7)


def test_a_failed_answer_that_was_paid_for_counts_at_the_gateway() -> None:
    """The gateway counts the tokens of a truncated answer at once."""
    from everlog.events import BadReply

    async def main() -> None:
        cut = BadReply("Cut.", completion("I", total=900), kind="garbage")
        one = Gateway(lambda *_: SlowModel(lambda *_: cut, seconds=0), chance=lambda: 0.0)
        await outcome(one.ask("m", URL, b"?"))
        assert one.status().tokens == 900

    run(main)


def test_an_answer_that_overflowed_is_kept_with_its_cost() -> None:
    """An answer that exceeded the window is rejected, but its bytes and tokens are recorded, and the log verifies."""
    cut = completion("word " * 20, finish="length", prompt=8000, total=8192)
    world = World(cut)
    asyncio.run(world.tell("Hello"))
    (refused,) = [event for event in events(world, ReplyRejected) if event.purpose == "reply"]
    assert (refused.raw, refused.usage.total, refused.model) == (cut, 8192, "scripted")
    assert not verify(world.system.view("sam"), world.system.tools).faults


@pytest.mark.parametrize("kind", ["server", "overloaded", "loading"])
def test_a_long_retry_after_fails_the_request_at_once(kind: str) -> None:
    """A Retry-After of an hour fails the request at once, so that the fallback can be called."""

    async def main() -> None:
        model = SlowModel(lambda *_: ModelError("Later.", kind=kind, retry_after_s=3600), seconds=0)
        one = Gateway(lambda *_: model, chance=lambda: 0.0)
        error = await outcome(one.ask("m", URL, b"?"))
        assert isinstance(error, ModelError)
        assert (error.kind, error.attempts, seconds()) == (kind, 1, 0)

    run(main)

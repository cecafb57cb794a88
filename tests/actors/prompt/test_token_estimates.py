"""The token estimate of a request depends on the model that is called, and on facts that are recorded before the
call.
"""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.ports.agent_constants import TOKENS_PER_BYTE, TOKENS_PER_BYTE_OF
from everlog.actors.prompt.context import Context
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ModelError
from tests.support.agent_world import World, say


def costing(tokens_per_byte: float, **more: Any) -> Any:
    """Return a model reply whose usage counts `tokens_per_byte` for each byte of request."""

    def reply(request: bytes) -> str:
        body = json.loads(say("Yes."))
        prompt = int(len(request) * tokens_per_byte)
        body["usage"] = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10, **more}
        return json.dumps(body)

    return reply


def seen(world: World) -> Context:
    return world.system.view("sam").context()


def told(world: World, **settings: Any) -> None:
    world.settings = Settings(window=60_000, verify_first=False, **settings)
    asyncio.run(world.tell("Hello"))


def test_a_cached_prompt_counts_whole() -> None:
    """Cached tokens take as much of the window as others."""
    world = World(after=costing(0.2, prompt_tokens_details={"cached_tokens": 2000}))
    told(world, model="one")
    assert seen(world).tokens_per_byte == pytest.approx(0.2, rel=0.01)


def test_a_changed_model_has_its_own_estimate() -> None:
    """After a change of model the family's estimate is used until the new model has answered; a change of other
    settings keeps the measured value.
    """
    world = World(after=costing(0.2))
    told(world, model="one")
    told(world, model="one", summary_fraction=0.5)
    assert seen(world).tokens_per_byte == pytest.approx(0.2, rel=0.01)
    world.model.lines = [ModelError("No.", kind="rejected")]
    with pytest.raises(ModelError):
        told(world, model="claude-sonnet-4")
    assert seen(world).tokens_per_byte == TOKENS_PER_BYTE_OF["claude"]
    with pytest.raises(ModelError):
        world.model.lines = [ModelError("No.", kind="rejected")]
        told(world, model="unheard-of")
    assert seen(world).tokens_per_byte == TOKENS_PER_BYTE
    world.model.after = costing(0.4)
    told(world, model="unheard-of")
    assert seen(world).tokens_per_byte == pytest.approx(0.4, rel=0.01)
    assert not verify(world.system.view("sam"), world.system.tools).faults


def test_a_fallback_is_estimated_by_itself_and_the_agents_own_model_by_its_own() -> None:
    """In the turn of the switch the fallback has its own estimate; the next turn uses that of the agent's own model."""
    world = World(costing(0.2), ModelError("Down.", kind="server"), after=costing(0.4))
    told(world, model="one", fallback="other")
    told(world, model="one", fallback="other")
    context = seen(world)
    turn = max(context.switches)
    during = msgspec.structs.replace(context, turn=turn)
    assert (during.model, context.model) == ("other", "one")
    assert during.tokens_per_byte == pytest.approx(0.4, rel=0.01)
    after = msgspec.structs.replace(context, turn=turn + 1)
    assert after.tokens_per_byte == pytest.approx(0.2, rel=0.01)
    assert not verify(world.system.view("sam"), world.system.tools).faults


@pytest.mark.parametrize("wrong", [{"prompt_tokens": 10**9}, {"prompt_tokens": 0}])
def test_an_impossible_token_count_is_ignored(wrong: dict[str, int]) -> None:
    """A count beyond the window, or of zero, is ignored: the newest valid count is used."""
    world = World(costing(0.2), after=costing(0.3, **wrong))
    told(world, model="one")
    told(world, model="one")
    assert seen(world).tokens_per_byte == pytest.approx(0.2, rel=0.01)

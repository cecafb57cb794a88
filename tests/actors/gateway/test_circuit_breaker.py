"""Circuit breakers in virtual time: opening after failures in a row, probing, and the fallback meanwhile."""

import asyncio
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.hosting.agent_factory import GatewayModel
from everlog.actors.ports.agent_constants import BREAKER_FAILURES, BREAKER_OPEN_S
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError, ModelReply, ModelSwitched, event_of
from tests.support.agent_world import World, say
from tests.support.models.virtual_time_models import (
    Script,
    SlowModel,
    answered,
    failing,
    gateway,
    outcome,
    run,
    seconds,
)
from tests.support.virtual_time import WallClock

URL = "http://127.0.0.1:1/v1"


def down_until(moment: float, kind: str = "server") -> Script:
    """Return a script that fails until `moment`, in seconds."""

    def script(request: bytes, before: int) -> ModelResponse | ModelError:
        return answered(request, before) if seconds() >= moment else ModelError(f"It is {kind}.", kind=kind)

    return script


async def failed(one: Gateway, **more: Any) -> ModelError:
    came = await outcome(one.ask("m", URL, b"?", **more))
    assert isinstance(came, ModelError)
    return came


@pytest.mark.parametrize("kind", ["server", "unreachable", "timeout", "cut", "overloaded"])
def test_after_ten_failures_in_a_row_no_caller_waits(kind: str) -> None:
    """While the breaker is open, callers fail at once with the same kind and reason, nothing is sent, and the status
    says so.
    """

    async def main() -> None:
        model = SlowModel(down_until(1e9, kind), seconds=0)
        one = gateway(model)
        came = [await failed(one) for _ in range(3)]
        assert len(model.asked) == BREAKER_FAILURES
        assert [error.attempts for error in came] == [4, 4, 2]
        before = seconds()
        told = await failed(one)
        assert (told.kind, told.attempts, seconds() - before) == (kind, 0, 0)
        assert "10 tries in a row" in str(told) and 0 < told.retry_after_s <= BREAKER_OPEN_S
        (alone,) = one.status().left_alone
        assert (alone.endpoint, alone.model, alone.failures) == ("127.0.0.1:1", "m", BREAKER_FAILURES)
        assert 0 < alone.opens_s <= BREAKER_OPEN_S and f"It is {kind}." in alone.why
        assert len(model.asked) == BREAKER_FAILURES

    run(main)


def test_one_request_probes_an_open_breaker() -> None:
    """After 30 s one request is sent as a probe and the others are refused. The first probe fails; 30 s later a second
    one succeeds and closes the breaker.
    """

    async def main() -> None:
        model = SlowModel(down_until(60), seconds=1)
        one = gateway(model)
        while not one.status().left_alone:
            await failed(one)
        opened, sent = seconds(), len(model.asked)
        await asyncio.sleep(BREAKER_OPEN_S)
        came = await asyncio.gather(*(failed(one) for _ in range(5)))
        assert sorted(error.attempts for error in came) == [0, 0, 0, 0, 1] and len(model.asked) == sent + 1
        await asyncio.sleep(opened + 2 * BREAKER_OPEN_S + 5 - seconds())
        probe = asyncio.create_task(one.ask("m", URL, b"?"))
        await asyncio.sleep(0.5)
        assert (await failed(one)).attempts == 0
        assert (await probe).attempts == 1
        assert one.status().left_alone == []
        await asyncio.gather(*(one.ask("m", URL, b"?") for _ in range(20)))

    run(main)


def test_a_breaker_probe_may_be_cancelled() -> None:
    """If a probe is cancelled, the next request is the probe."""

    async def main() -> None:
        model = SlowModel(down_until(20), seconds=1)
        one = gateway(model)
        while not one.status().left_alone:
            await failed(one)
        await asyncio.sleep(BREAKER_OPEN_S)
        probe = asyncio.create_task(one.ask("m", URL, b"?"))
        await asyncio.sleep(0.5)
        probe.cancel()
        await asyncio.wait([probe])
        assert (await one.ask("m", URL, b"?")).attempts == 1

    run(main)


@pytest.mark.parametrize("kind", ["rejected", "rate_limited", "garbage", "overflow"])
def test_refusals_do_not_open_the_breaker(kind: str) -> None:
    """Rejected requests and rate limits show that the model answers, and do not open the breaker."""

    async def main() -> None:
        one = gateway(SlowModel(failing(kind, 99, after_s=1), seconds=0))
        for _ in range(20):
            assert (await failed(one)).attempts > 0
        assert one.status().left_alone == []

    run(main)


def test_the_breaker_counts_failures_in_a_row_for_each_model() -> None:
    """Nine failures followed by an answer never open the breaker, and the breaker of one model does not affect
    another.
    """

    async def main() -> None:
        flaky = SlowModel(lambda r, n: answered(r, n) if n % 10 == 9 else ModelError("No.", kind="server"), seconds=0)
        down = SlowModel(down_until(1e9), seconds=0)
        one = Gateway(lambda name, _: flaky if name == "n" else down, clock=WallClock(), chance=lambda: 0.0)
        for _ in range(15):
            await outcome(one.ask("n", URL, b"?"))
            await failed(one)
        assert [alone.model for alone in one.status().left_alone] == ["m"]
        assert isinstance(await outcome(one.ask("n", "elsewhere", b"?")), ModelResponse | ModelError)

    run(main)


def test_queued_callers_fail_when_the_breaker_opens() -> None:
    """Of a hundred waiting requests, none is sent after the tenth failure, and all fail at once."""

    async def main() -> None:
        model = SlowModel(down_until(1e9), seconds=1)
        one = gateway(model, asks_max=1)
        came = await asyncio.gather(*(failed(one, agent_id=f"agent {n}") for n in range(100)))
        assert len(model.asked) == BREAKER_FAILURES and {error.kind for error in came} == {"server"}
        assert seconds() < 2 * BREAKER_FAILURES
        status = one.status()
        assert (status.under_way, status.waiting) == (0, 0)

    run(main)


def test_a_fallback_stands_in_until_the_model_answers_again() -> None:
    """After a failure of the model, the turn records `model_switched` and the fallback answers. The next turn tries the
    model again, unless its breaker is open: then the fallback answers without delay. When the model is available again,
    it answers.
    """

    def script(request: bytes, before: int) -> ModelResponse | ModelError:
        return ModelError("It is down.", kind="server") if seconds() < 100 else ModelResponse(say("I am back."), 1)

    async def main() -> None:
        primary = SlowModel(script, seconds=0)
        second = SlowModel(lambda *_: ModelResponse(say("In its place."), 1), seconds=0)
        one = Gateway(lambda name, _: second if name == "other" else primary, clock=WallClock(), chance=lambda: 0.0)
        world = World()
        world.settings = Settings(model="scripted", window=8192, fallback="other")
        world.system._models = lambda name: GatewayModel(name, URL, one.ask, "sam")
        for _ in range(3):
            await world.tell("Hello?")
        assert len(primary.asked) == BREAKER_FAILURES
        before = seconds()
        await world.tell("And now?")
        assert (seconds(), len(primary.asked)) == (before, BREAKER_FAILURES)
        await asyncio.sleep(100)
        await world.tell("At last?")
        events = [event_of(record) for record in world.log()]
        switches = [event for event in events if isinstance(event, ModelSwitched)]
        assert [(event.to, event.failure, event.attempts) for event in switches] == [
            ("other", "server", attempts) for attempts in (4, 4, 2, 0)
        ]
        replies = [event for event in events if isinstance(event, ModelReply) and event.calls]
        assert ["back" in reply.raw for reply in replies if "back" in reply.raw or "place" in reply.raw] == [
            False, False, False, False, True,
        ]  # fmt: skip

    run(main)

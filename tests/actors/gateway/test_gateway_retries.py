"""The gateway in virtual time with failing endpoints: which errors are retried and when, who waits, and who fails at
once.
"""

import asyncio
import random

import pytest

from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError
from tests.support.models.virtual_time_models import SlowModel, answered, failing, gateway, outcome, run, seconds
from tests.support.virtual_time import WallClock

URL = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(("kind", "tries"), [("server", 4), ("unreachable", 4), ("rate_limited", 4), ("key", 1),
                                             ("rejected", 1), ("garbage", 1), ("credit", 1)])  # fmt: skip
def test_errors_that_may_pass_are_retried(kind: str, tries: int) -> None:
    """5xx errors, timeouts and 429 are tried four times with growing waits; errors that a retry cannot help are tried
    once.
    """

    async def main() -> None:
        model = SlowModel(failing(kind, 99), seconds=0)
        error = await outcome(gateway(model).ask("m", URL, b"?"))
        assert isinstance(error, ModelError) and error.kind == kind
        assert len(model.asked) == error.attempts == tries
        assert model.times == pytest.approx([0, 0.5, 1.5, 3.5][:tries])

    run(main)


def test_an_answer_counts_its_attempts() -> None:
    """After two failures an answer counts three attempts, and the status counts two retries."""

    async def main() -> None:
        model = SlowModel(failing("server", 2))
        one = gateway(model)
        assert (await one.ask("m", URL, b"?")).attempts == 3
        assert (one.status().retried, one.status().answered, one.status().failures) == (2, 1, {})

    run(main)


def test_back_off_has_jitter() -> None:
    """The back-off has a jitter: a wait is between half and all of its nominal time."""

    async def main() -> None:
        model = SlowModel(failing("server", 2), seconds=0)
        chances = iter([0.0, 0.5])
        one = Gateway(lambda *_: model, chance=lambda: next(chances))
        await asyncio.gather(*(one.ask("m", URL, b"?", name) for name in ("sam", "kim")))
        assert model.times == pytest.approx([0, 0, 0.375, 0.5])

    run(main)


def test_a_request_that_backs_off_delays_no_other() -> None:
    """With one request allowed at a time, another request is sent while the first one backs off."""

    async def main() -> None:
        model = SlowModel(failing("server", 1), seconds=0.1)
        one = gateway(model, asks_max=1)
        await asyncio.gather(*(one.ask("m", URL, name, name.decode()) for name in (b"first", b"second")))
        assert model.asked == [b"first", b"second", b"first"]

    run(main)


def test_retry_after_pauses_the_endpoint_for_all_callers() -> None:
    """After a 429 with Retry-After 20 no request is sent for 20 s, and then all are answered."""

    async def main() -> None:
        model = SlowModel(failing("rate_limited", 1, after_s=20), seconds=0)
        one = gateway(model, asks_max=1)
        await asyncio.gather(*(one.ask("m", URL, b"%d" % n, f"agent {n}") for n in range(10)))
        assert model.times == [0] + [20] * 10
        assert one.status().retried == 1

    run(main)


def test_an_endpoint_with_a_long_pause_fails_requests_at_once() -> None:
    """A pause that is too long to wait fails the waiting requests with the time to retry; afterwards requests are sent
    again.
    """

    async def main() -> None:
        model = SlowModel(failing("rate_limited", 1, after_s=3600))
        one = gateway(model, asks_max=1)
        came = await asyncio.gather(*(outcome(one.ask("m", URL, b"?", f"agent {n}")) for n in range(100)))
        assert seconds() == 1 and len(model.asked) == 1
        errors = [error for error in came if isinstance(error, ModelError)]
        assert {error.retry_after_s for error in errors} == {3600}
        assert [error.attempts for error in errors] == [1] + [0] * 99
        await asyncio.sleep(3600)
        await one.ask("m", URL, b"?", "agent 1")

    run(main)


def test_an_expired_key_fails_waiting_requests() -> None:
    """Of 10,000 waiting requests, those under way get the 401; all others fail without an attempt, with
    instructions.
    """

    async def main() -> None:
        expired = ModelError("The endpoint refused the key. Set OPENAI_API_KEY.", kind="key")
        model = SlowModel(lambda request, before: answered(request, before) if before < 8 else expired)
        one = gateway(model, asks_max=4, waiting_max=20_000)
        came = await asyncio.gather(*(outcome(one.ask("m", URL, b"?", f"agent {n}")) for n in range(10_000)))
        errors = [error for error in came if isinstance(error, ModelError)]
        assert (len(came) - len(errors), len(model.asked), seconds()) == (8, 12, 3)
        assert all(error.kind == "key" and "Set OPENAI_API_KEY" in str(error) for error in errors)
        assert one.status().endpoints[0].shut and one.status().failures == {"key": 9992}

    run(main)


def test_a_refused_key_is_probed_by_one_request_at_a_time() -> None:
    """After a refused key, one request in ten seconds is sent as a probe and the others fail; when a probe is answered,
    all are sent.
    """

    async def main() -> None:
        model = SlowModel(failing("key", 2))
        one = gateway(model)

        async def together() -> list[bool]:
            came = await asyncio.gather(*(outcome(one.ask("m", URL, b"?", f"agent {n}")) for n in range(3)))
            return [isinstance(item, ModelError) for item in came]

        await outcome(one.ask("m", URL, b"?"))
        await asyncio.sleep(5)
        assert all(await together()) and len(model.asked) == 1
        await asyncio.sleep(5)
        assert all(await together()) and len(model.asked) == 2
        await asyncio.sleep(10)
        assert await together() == [False, True, True] and len(model.asked) == 3
        assert not any(await together()) and not one.status().endpoints[0].shut

    run(main)


def test_after_a_cancelled_probe_the_next_request_is_the_probe() -> None:
    """If a probe is cancelled, the next request is the probe."""

    async def main() -> None:
        model = SlowModel(failing("key", 1))
        one = gateway(model)
        await outcome(one.ask("m", URL, b"?"))
        await asyncio.sleep(10)
        probe = asyncio.create_task(one.ask("m", URL, b"?"))
        await asyncio.sleep(0.5)
        probe.cancel()
        await asyncio.wait([probe])
        assert one.status().endpoints[0].shut
        answer = await one.ask("m", URL, b"?")
        assert answer.raw == answered(b"?", 0).raw
        assert (len(model.asked), one.status().endpoints[0].shut) == (3, "")

    run(main)


@pytest.mark.parametrize("seed", range(20))
def test_random_failures_leave_no_open_request(seed: int) -> None:
    """Random failures, pauses and cancellations leave no request without an outcome, no place taken, and a working
    gateway.
    """
    chances = random.Random(seed)

    def script(request: bytes, before: int) -> ModelResponse | ModelError:
        kind = chances.choice(["server", "unreachable", "rate_limited", "key", "rejected", *[""] * 15])
        after_s = chances.choice([0, 0, 3, 90])
        return ModelError("No.", kind=kind, retry_after_s=after_s) if kind else answered(request, before)

    async def main() -> None:
        model = SlowModel(script)
        limits = GatewayLimits(
            asks_max=4, agent_waiting_max=9, requests_per_minute=chances.choice([0, 120]), all_tokens_max=9999
        )
        one = Gateway(lambda *_: model, limits, clock=WallClock(), chance=chances.random)
        tasks = []
        for _ in range(300):
            agent, url = f"agent {chances.randrange(20)}", chances.choice("ab")
            tasks.append(asyncio.create_task(outcome(one.ask("m", url, b"?" * 8, agent))))
            await asyncio.sleep(chances.choice([0, 0, 0.25, 1]))
            if chances.random() < 0.2:
                chances.choice(tasks).cancel()
            assert one.status().under_way <= 4
        await asyncio.wait(tasks)
        status = one.status()
        assert (status.under_way, status.waiting, status.asked) == (0, 0, 300)
        assert [(queue.under_way, queue.waiting) for queue in status.endpoints] == [(0, 0), (0, 0)]
        gone = sum(task.cancelled() for task in tasks)
        assert status.answered + sum(status.failures.values()) + gone == 300
        assert status.spent == (status.tokens, 0)
        await asyncio.sleep(200)
        model.script = answered
        await asyncio.gather(*(one.ask("m", url, b"?", "sam") for url in "ab"))
        await one.close()

    run(main)

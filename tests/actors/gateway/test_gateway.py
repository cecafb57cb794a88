"""The gateway in virtual time: fairness, limits of concurrency and rate, and cancellation."""

import asyncio
import pickle

import pytest

from everlog.actors.gateway.gateway import Gateway, GatewayActor, ModelRequest
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError
from tests.support.agent_world import completion
from tests.support.models.virtual_time_models import SlowModel, answered, failing, gateway, outcome, run, seconds

URL = "http://127.0.0.1:1/v1"


def test_one_agent_with_ten_thousand_requests_starves_no_other() -> None:
    """Nine agents with one request each, sent after ten thousand of another agent, are served in the next round; all
    requests are served.
    """

    async def main() -> None:
        model = SlowModel()
        many = gateway(model, asks_max=1, waiting_max=20_000, agent_waiting_max=10_000)
        greedy = [asyncio.create_task(many.ask("m", URL, b"greedy", "greedy")) for _ in range(10_000)]
        await asyncio.sleep(2.5)  # three requests were sent by now
        modest = [asyncio.create_task(many.ask("m", URL, b"modest", f"agent {n}")) for n in range(9)]
        await asyncio.gather(*modest)
        assert model.asked[4:13] == [b"modest"] * 9
        await asyncio.gather(*greedy)
        assert model.asked.count(b"greedy") == 10_000

    run(main)


def test_concurrency_is_limited_over_all_endpoints() -> None:
    """All endpoints together never have more than the allowed number of requests under way, and the limit is fully
    used.
    """

    async def main() -> None:
        model = SlowModel()
        many = gateway(model, asks_max=5)
        await asyncio.gather(*(many.ask("m", f"{URL}/{n % 3}", b"?", f"agent {n}") for n in range(50)))
        assert model.most == 5
        assert seconds() == 10

    run(main)


def test_an_endpoint_that_waits_holds_up_no_other() -> None:
    """While one endpoint is paused for a minute, another answers at once."""

    async def main() -> None:
        slow = SlowModel(failing("rate_limited", 1, after_s=50))
        quick = SlowModel()
        both = Gateway(lambda _, url: slow if url == "a" else quick, GatewayLimits(asks_max=1))
        paused = asyncio.create_task(both.ask("m", "a", b"?", "sam"))
        await asyncio.sleep(5)
        await both.ask("m", "b", b"?", "kim")
        assert seconds() == 6
        await paused
        assert seconds() == pytest.approx(52)

    run(main)


def test_endpoints_are_served_in_rounds() -> None:
    """Fifty requests wait for one endpoint; a request for another endpoint is sent in the next round."""

    async def main() -> None:
        model = SlowModel()
        both = gateway(model, asks_max=1)
        many = [asyncio.create_task(both.ask("m", "a", b"a", f"agent {n}")) for n in range(50)]
        await asyncio.sleep(0.5)
        await both.ask("m", "b", b"b", "sam")
        assert model.asked[:3] == [b"a", b"a", b"b"]
        await asyncio.gather(*many)

    run(main)


@pytest.mark.parametrize(("agent", "limit"), [("sam", "agent_waiting_max"), ("", "waiting_max")])
def test_too_many_requests_are_refused_with_a_retry_time(agent: str, limit: str) -> None:
    """The refusal has the number of waiting requests and the time to retry, keeps both when pickled, and leaves the
    other requests alone.
    """

    async def main() -> None:
        model = SlowModel()
        full = gateway(model, **{"asks_max": 1, limit: 3})
        taken = [asyncio.create_task(full.ask("m", URL, b"?", agent)) for _ in range(3 if agent else 4)]
        await asyncio.sleep(0)
        refused = await outcome(full.ask("m", URL, b"one more", agent))
        assert isinstance(refused, ModelError) and refused.kind == "busy"
        assert str(len(taken)) in str(refused) and "Try again in" in str(refused)
        again = pickle.loads(pickle.dumps(refused))
        assert again.retry_after_s == refused.retry_after_s >= 1
        if agent:
            await full.ask("m", URL, b"?", "kim")
        await asyncio.gather(*taken)
        assert b"one more" not in model.asked
        await full.ask("m", URL, b"one more", agent)

    run(main)


@pytest.mark.parametrize("ticks", range(6))
def test_a_cancelled_request_frees_its_place(ticks: int) -> None:
    """A request that is cancelled at any moment, even as its turn comes, frees its place and is sent only if it had
    been granted.
    """

    async def main() -> None:
        model = SlowModel()
        one = gateway(model, asks_max=1)
        first = asyncio.create_task(one.ask("m", URL, b"first", "sam"))
        gone = asyncio.create_task(one.ask("m", URL, b"gone", "kim"))
        after = asyncio.create_task(one.ask("m", URL, b"after", "pat"))
        await asyncio.sleep(1)
        for _ in range(ticks):
            await asyncio.sleep(0)
        sent = b"gone" in model.asked
        gone.cancel()
        await asyncio.wait([gone])
        await asyncio.gather(first, after)
        assert (b"gone" in model.asked) == sent
        status = one.status()
        assert (status.under_way, status.waiting) == (0, 0)
        assert seconds() == 2

    run(main)


def test_cancelled_requests_leave_a_paused_queue_at_once() -> None:
    """While the endpoint is paused for 50 seconds, cancelled requests leave the queue at once."""

    async def main() -> None:
        model = SlowModel(failing("rate_limited", 1, after_s=50), seconds=0)
        one = gateway(model)
        asking = [asyncio.create_task(one.ask("m", URL, b"?", f"agent {n % 2}")) for n in range(10)]
        await asyncio.sleep(1)
        more = [asyncio.create_task(one.ask("m", URL, b"?", f"agent {n % 2}")) for n in range(10)]
        await asyncio.sleep(1)
        for task in more[1:]:
            task.cancel()
        await asyncio.wait(more[1:])
        waiting = one.status().waiting
        assert waiting == one.status().endpoints[0].waiting == 1 + sum(not task.done() for task in asking)
        await asyncio.gather(more[0], *asking)

    run(main)


def test_a_request_cancelled_as_it_is_granted_frees_its_place() -> None:
    """A caller is cancelled in the moment in which the end of another request grants its place: the place is free
    again.
    """

    async def main() -> None:
        model = SlowModel()
        one = gateway(model, asks_max=1)
        gone = asyncio.create_task(one.ask("m", URL, b"gone", "kim"))
        first = asyncio.create_task(one.ask("m", URL, b"first", "sam"))
        await asyncio.sleep(0.5)
        gone.cancel()
        first.cancel()  # in the same moment the end of `gone` grants it a place
        await asyncio.wait([gone, first])
        await one.ask("m", URL, b"after", "pat")
        assert one.status().under_way == 0

    run(main)


def test_requests_a_minute_are_kept_and_used() -> None:
    """No minute has more than 122 requests (120, and two of the burst allowance), and 240 requests take two minutes."""

    async def main() -> None:
        model = SlowModel(seconds=0)
        paced = gateway(model, requests_per_minute=120)
        await asyncio.gather(*(paced.ask("m", URL, b"?", f"agent {n}") for n in range(240)))
        times = model.times
        assert all(sum(start <= time < start + 60 for time in times) <= 122 for start in times)
        assert times[-1] == pytest.approx(119, abs=0.1)
        assert 100 <= paced.status().endpoints[0].requests_last_minute <= 130

    run(main)


def test_tokens_a_minute_are_estimated_and_put_right() -> None:
    """A request of 4,000 bytes is estimated at 1,000 tokens; as it used 3,000, later requests wait accordingly."""

    def dear(request: bytes, before: int) -> ModelResponse:
        return ModelResponse(completion(total=3000), 1)

    async def main() -> None:
        model = SlowModel(dear, seconds=0)
        paced = gateway(model, tokens_per_minute=6000)
        for _ in range(5):
            await paced.ask("m", URL, b"x" * 4000, "sam")
        gaps = [after - before for before, after in zip(model.times, model.times[1:], strict=False)]
        assert gaps == pytest.approx([30] * 4, abs=1.5)

    run(main)


def test_rates_are_each_endpoints_own() -> None:
    """Two endpoints with a limit of one request a minute each are called at once."""

    async def main() -> None:
        model = SlowModel()
        paced = gateway(model, requests_per_minute=1)
        await asyncio.gather(*(paced.ask("m", url, b"?") for url in ("a", "b")))
        assert seconds() == 1

    run(main)


def test_ask_many_returns_each_outcome_once() -> None:
    """`ask_many` returns each outcome once, errors as values, and answers that arrive together in one batch."""

    async def main() -> None:
        model = SlowModel(lambda r, n: ModelError("No.", kind="rejected") if r == b"3" else answered(r, n))
        model_requests = [ModelRequest(f"agent {n}", "m", URL, b"%d" % n) for n in range(10)]
        batches = [batch async for batch in gateway(model, asks_max=5).ask_many(model_requests)]
        assert [len(batch) for batch in batches] == [5, 5]
        came = dict(item for batch in batches for item in batch)
        assert sorted(came) == list(range(10))
        assert [place for place, item in came.items() if isinstance(item, ModelError)] == [3]

    run(main)


def test_closing_the_iterator_cancels_the_rest() -> None:
    """Closing the iterator after the first batch removes the other requests from the queue."""

    async def main() -> None:
        model = SlowModel()
        one = gateway(model, asks_max=2)
        batches = one.ask_many([ModelRequest(f"agent {n}", "m", URL, b"?") for n in range(10)])
        assert len(await anext(batches)) == 2
        await batches.aclose()
        assert (one.status().waiting, one.status().under_way) == (0, 0)

    run(main)


def test_the_status_shows_the_current_work() -> None:
    """The status has the requests under way and waiting and the reported tokens, in total and for each endpoint."""

    async def main() -> None:
        one = gateway(SlowModel(), asks_max=2)
        asking = [asyncio.create_task(one.ask("m", URL, b"?", f"agent {n}")) for n in range(5)]
        await asyncio.sleep(1.5)
        status = one.status()
        assert (status.asked, status.answered, status.under_way, status.waiting) == (5, 2, 2, 1)
        assert (status.tokens, status.tokens_out) == (20, 4)
        (endpoint,) = status.endpoints
        assert (endpoint.endpoint, endpoint.under_way, endpoint.waiting) == ("127.0.0.1:1", 2, 1)
        assert (endpoint.requests_last_minute, endpoint.tokens_last_minute, endpoint.paused_s) == (4, 20, 0)
        await asyncio.gather(*asking)

    run(main)


def test_the_offline_model_waits_for_no_limit() -> None:
    """The offline model runs in this process and is subject to no limit and no budget."""

    async def main() -> None:
        model = SlowModel()
        one = gateway(model, asks_max=1, requests_per_minute=1, all_tokens_max=1)
        await asyncio.gather(*(one.ask(OFFLINE, "", b"x" * 100, "sam") for _ in range(10)))
        assert seconds() == 1

    run(main)


def test_closing_releases_every_model() -> None:
    """Closing twice has the effect of closing once, and no timer is left."""

    async def main() -> None:
        model = SlowModel(failing("rate_limited", 1, after_s=50))
        one = gateway(model)
        paused = asyncio.create_task(one.ask("m", URL, b"?"))
        await asyncio.sleep(2)
        paused.cancel()
        await asyncio.wait([paused])
        await one.close()
        await one.close()
        assert model.closed == 1

    run(main)


def test_a_gateway_with_invalid_limits_reports_them_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """With invalid limits the constructor does not fail, because Ray would not start the actor again; each request
    returns the reason.
    """
    monkeypatch.setenv("EVERLOG_GATEWAY_ASKS_MAX", "many")

    async def main() -> None:
        actor = GatewayActor("/nowhere")
        told = await actor.ask("m", URL, b"?")
        assert isinstance(told, ModelError) and "EVERLOG_GATEWAY_ASKS_MAX" in str(told)
        batches = [batch async for batch in actor.ask_many([ModelRequest("sam", "m", URL, b"?")] * 2)]
        assert [place for place, _ in batches[0]] == [0, 1]
        assert (await actor.status()).asked == 0

    run(main)

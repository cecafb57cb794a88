"""Streamed chunks through the gateway, in virtual time: delivery to the caller, batches of many streams, and dropped
requests.
"""

import asyncio
from typing import Any

import pytest

from everlog.actors.gateway.gateway import Gateway, GatewayActor, ModelRequest
from everlog.actors.gateway.request_batch import ResponseItem
from everlog.actors.hosting.agent_factory import GatewayModel
from everlog.actors.ports.effects import DeltaCallback, ModelResponse, ReplyDelta
from everlog.events import ModelError
from tests.support.models.virtual_time_models import SlowModel, answered, failing, gateway, run, seconds

URL = "http://127.0.0.1:1/v1"


class Speaker(SlowModel):
    """A model that streams five words, a tenth of a second apart, before it answers or fails."""

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **_: Any) -> ModelResponse:
        for number in range(5) if on_delta is not None else ():
            await asyncio.sleep(0.1)
            on_delta(ReplyDelta(f"{number} "))
        return await super().ask(request)


def asking(number: int, *, streamed: bool = True) -> ModelRequest:
    return ModelRequest(f"agent {number}", "m", URL, b"%d" % number, streamed=streamed)


def test_chunks_are_delivered_to_subscribers_only() -> None:
    """A caller with `on_delta` gets five chunks before the answer; without it, the caller gets the answer only."""

    async def main() -> None:
        one = gateway(Speaker(seconds=0))
        heard: list[tuple[float, str]] = []
        model = GatewayModel("m", URL, one.ask, "sam")
        answer = await model.ask(b"?", on_delta=lambda piece: heard.append((seconds(), piece.text)))
        assert heard == [(pytest.approx(0.1 * (n + 1)), f"{n} ") for n in range(5)]
        assert (answer.attempts, (await model.ask(b"?")).attempts, len(heard)) == (1, 1, 5)
        mute = gateway(SlowModel())
        assert await mute.ask("m", URL, b"?", on_delta=lambda _: pytest.fail("it does not stream"))

    run(main)


def test_a_second_try_begins_with_a_restart() -> None:
    """After a failed attempt that had sent chunks, a restart precedes the next chunk; there is no restart before a
    first chunk.
    """

    async def main() -> None:
        heard: list[ReplyDelta] = []
        await gateway(Speaker(failing("cut", 1), seconds=0)).ask("m", URL, b"?", on_delta=heard.append)
        assert [piece.restart for piece in heard] == [False] * 5 + [True] + [False] * 5

    run(main)


def test_many_streams_are_delivered_together_each_in_its_place() -> None:
    """Chunks within the gathering time are merged; each request gets its text, then its outcome once."""

    async def main() -> None:
        model = Speaker(lambda r, n: ModelError("No.", kind="rejected") if r == b"3" else answered(r, n), seconds=0)
        came: dict[int, list[ResponseItem]] = {}
        count = 0
        async for batch in gateway(model).ask_many([asking(n, streamed=n != 4) for n in range(5)], gather_s=0.25):
            count += 1
            for place, one in batch:
                came.setdefault(place, []).append(one)
        for place, (*pieces, end) in came.items():
            said = "".join(piece.text for batch in pieces if isinstance(batch, list) for piece in batch)
            assert said == ("" if place == 4 else "0 1 2 3 4 ")
            assert isinstance(end, ModelError if place == 3 else ModelResponse)
        assert sorted(came) == [0, 1, 2, 3, 4] and count <= 4

    run(main)


def test_a_restart_is_kept_when_chunks_are_merged() -> None:
    """Chunks before a restart are dropped; text and the arguments of each call are merged separately."""

    async def main() -> None:
        one = Gateway(lambda *_: Speaker())
        gathering = one.gathered([])
        for piece in (
            ReplyDelta("old"),
            ReplyDelta(restart=True),
            ReplyDelta("a"),
            ReplyDelta("b"),
            ReplyDelta(call=0, name="f"),
            ReplyDelta(call=0, arguments="{"),
            ReplyDelta(call=0, arguments="}"),
            ReplyDelta(call=1, name="g"),
        ):
            gathering._on_delta(0, piece)
        assert gathering._batch() == [
            (
                0,
                [
                    ReplyDelta(restart=True),
                    ReplyDelta("ab"),
                    ReplyDelta(call=0, name="f", arguments="{}"),
                    ReplyDelta(call=1, name="g"),
                ],
            )
        ]

    run(main)


@pytest.mark.parametrize("early", [True, False])
def test_dropped_requests_are_cancelled_and_the_rest_is_answered(
    monkeypatch: pytest.MonkeyPatch, *, early: bool
) -> None:
    """A request is dropped before its call has begun or while it is under way: it is cancelled, and no state of it is
    left.
    """

    async def main() -> None:
        actor = GatewayActor("/nowhere")
        model = Speaker(seconds=1)
        actor._gateway = gateway(model, asks_max=2)
        if early:
            await actor.drop({"call/1": [0, 2]})
        came = []
        async for batch in actor.ask_many([asking(n) for n in range(4)], "call/1"):
            came += [place for place, one in batch if isinstance(one, ModelResponse)]
            if not early:
                await actor.drop({"call/1": [0, 2], "gone": [1]})
        assert sorted(came) == [1, 3]
        assert sorted(model.asked) == [b"1", b"3"]
        status = await actor.status()
        assert (status.under_way, status.waiting, actor._gatherings) == (0, 0, {})

    run(main)

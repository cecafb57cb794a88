"""Subscribers of previews: each caller that asks for previews gets those of its own turn."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from everlog.actors.formats.reply_preview import Preview
from everlog.actors.hosting.subscribers import Subscribers
from everlog.actors.ports.agent_constants import PREVIEW_CHARS_MAX
from everlog.events import ModelError
from tests.support import virtual_time
from tests.support.agent_world import completion, kinds, say
from tests.support.agents.virtual_time_runtime import Home
from tests.support.models.streaming_model import CUT, Streamer, faults, opened, said, streaming, streaming_shared, told

MEMORY = {"name": "human", "content": "Sails.", "request_heartbeat": True}
BOTH = pytest.mark.parametrize("making", [streaming, streaming_shared])


@BOTH
def test_a_caller_gets_previews_before_the_record(making: Any) -> None:
    """A caller gets thought and message in several chunks, with their turn and step, and all of them before the
    record.
    """

    async def main() -> None:
        home = making(model := Streamer(say("Ahoy, sailor of the seven seas!")))
        sam = await opened(home)
        heard: list[Any] = []
        async for record in sam.send("Hi", preview=heard.append):
            heard.append(record)
        await home.leave()
        previews = [one for one in heard if isinstance(one, Preview)]
        assert told(previews) == {"thought": "I think.", "message": "Ahoy, sailor of the seven seas!"}
        assert len(previews) > 4
        assert {(preview.turn, preview.step) for preview in previews} == {(1, 1)}
        assert kinds(heard[heard.index(previews[-1]) + 1 :])[0] == "model_reply"
        assert model.lines == []
        assert faults(home) == []

    virtual_time.run(main)


@BOTH
def test_callers_without_previews_pay_nothing(making: Any) -> None:
    """A model is asked to stream only if a subscriber wants previews and the agent's settings stream at all."""

    async def main() -> None:
        model = Streamer()
        streamed: list[bytes] = []
        real = model.ask

        async def ask(request: bytes, *, on_delta: Any = None, **_: object) -> Any:
            streamed.extend([request] if on_delta is not None else [])
            return await real(request, on_delta=on_delta)

        model.ask = ask  # type: ignore[method-assign]
        home = making(model)
        sam = await opened(home)
        await sam.send("Hi")
        assert not streamed
        await sam.send("Hi", preview=lambda _: None)
        assert len(streamed) == 1
        await home.leave()

    virtual_time.run(main)


def test_each_caller_gets_previews_of_its_own_turn() -> None:
    """Of two callers at once, each gets only the previews of its own turn."""

    async def main() -> None:
        home = streaming(Streamer(say("To the first."), say("To the second.")))
        sam = await opened(home)
        heard: tuple[list[Preview], list[Preview]] = ([], [])
        await asyncio.gather(*[sam.send("Hi", preview=mine.append)._all() for mine in heard])
        assert [told(mine)["message"] for mine in heard] == ["To the first.", "To the second."]
        await home.leave()

    virtual_time.run(main)


def test_a_restarted_reply_is_announced() -> None:
    """After a broken stream or a rejected reply the preview restarts and earlier text is void. A turn that fails at
    last ends with `model_failed` and no message.
    """

    async def main() -> None:
        lines: Sequence[Any] = [CUT, completion("(no)", [("send_message", {"message": "Not so."})]), say("So.")]
        home = streaming(Streamer(*lines, ModelError("It broke.", kind="cut")))
        sam = await opened(home)
        heard: list[Preview] = []
        assert said(await sam.send("Hi", preview=heard.append)) == ["Yes."]
        assert [preview.kind for preview in heard].count("restart") == 1
        assert told(heard)["message"] == "Yes."
        heard.clear()
        with pytest.raises(ModelError):
            await sam.send("Hi", preview=heard.append)
            await sam.send("Hi", preview=heard.append)
            await sam.send("Hi", preview=heard.append)
        await home.leave()
        assert kinds(home.log())[-1] == "model_failed"
        assert said(home.log()) == ["Yes.", "Not so.", "So."]

    virtual_time.run(main)


def test_each_of_several_steps_is_previewed() -> None:
    """A reply that calls a function and the reply after it are previewed as two steps."""

    async def main() -> None:
        home = streaming(Streamer(completion(calls=[("core_memory_append", MEMORY)]), say("Noted.")))
        sam = await opened(home)
        heard: list[Preview] = []
        await sam.send("I sail", preview=heard.append)
        await home.leave()
        assert {(one.step, one.kind) for one in heard} == {(1, "thought"), (2, "thought"), (2, "message"), (2, "end")}

    virtual_time.run(main)


def test_a_slow_subscriber_gets_fewer_previews_and_every_record() -> None:
    """Undelivered previews are merged into one chunk up to a limit; beyond the limit the reply has no more previews
    until it restarts.
    """

    async def main() -> None:
        audience = Subscribers()
        on_preview = audience._send_preview
        with audience.joined("id", "asker", held=False, previews=True) as listener:
            for _ in range(2 * PREVIEW_CHARS_MAX):
                on_preview(Preview(1, 1, "message", "x"))
            first = await listener.next()
            assert first == Preview(1, 1, "message", "x" * PREVIEW_CHARS_MAX)
            on_preview(Preview(1, 1, "message", "more"))
            on_preview(Preview(1, 2, "message", "Another."))
            assert await listener.next() == Preview(1, 2, "message", "Another.")
            on_preview(Preview(1, 1, "restart"))
            on_preview(Preview(1, 1, "message", "Again."))
            assert [await listener.next(), await listener.next()] == [
                Preview(1, 1, "restart"), Preview(1, 1, "message", "Again."),
            ]  # fmt: skip
            assert listener.collected.empty()

    asyncio.run(main())


def test_a_subscriber_that_left_slows_no_other() -> None:
    """After a subscriber leaves during a reply, the turn still ends, and the next caller gets its previews."""

    async def main() -> None:
        home: Home = streaming(Streamer(say("A long story, and then some.")))
        sam = await opened(home)
        answer = aiter(sam.send("Tell", preview=lambda _: None))
        await anext(answer)
        await answer.aclose()
        heard: list[Preview] = []
        assert said(await sam.send("And?", preview=heard.append)) == ["Yes."]
        assert told(heard)["message"] == "Yes."
        await home.leave()
        assert said(home.log()) == ["A long story, and then some.", "Yes."]

    virtual_time.run(main)

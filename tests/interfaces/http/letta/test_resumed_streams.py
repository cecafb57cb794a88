"""Streams of runs that are cut: the rest has what is missing, once, from any server, whatever the model did."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2

from everlog.actors.ports.effects import DeltaCallback, ModelResponse, ReplyDelta
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import Halting, LettaServer, Speaker, created, letta
from tests.support.http.letta_streams import last_cursor, put_together, whole_events
from tests.support.models.streaming_model import pieces_of

PIN = completion(("archival_memory_insert", {"content": "A pin", "request_heartbeat": True}), thought="Keep it.")
BOTH = completion(
    ("send_message", {"message": "First å."}), ("archival_memory_insert", {"content": "B", "request_heartbeat": True}),
    ("send_message", {"message": "Second."}), thought="Two [things] at once.",
)  # fmt: skip
TALK = {"input": "Hello", "streaming": True, "stream_tokens": True}


async def _posted(server: LettaServer, path: str, body: dict[str, Any]) -> bytes:
    answer = await server.server.client.post(f"/letta/v1{path}", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.content


async def _rest(server: LettaServer, run: str, cursor: int) -> list[dict[str, Any]]:
    return whole_events(await _posted(server, f"/runs/{run}/stream", {"starting_after": cursor}))


def _run_of(body: bytes) -> str:
    """Return the run that a stream says in its first event."""
    return str(body.split(b'"run_id":"')[1].split(b'"')[0], "ascii")


def test_a_stream_that_is_cut_at_any_byte_is_continued_by_any_server(tmp_path: Path) -> None:
    """If a stream of words is cut at any byte, a stream that continues after the last position that arrived has the
    rest: each message, each word and the end come once. The server that continues may be another one.
    """

    async def main() -> None:
        async with letta(tmp_path, Speaker([BOTH, PIN, says("Ahoy, what a day")], size=4)) as server:
            agent = await server.run(created)
            body = await _posted(server, f"/agents/{agent}/messages", TALK)
        whole, run = put_together(whole_events(body)), _run_of(body)
        assert len(whole_events(body)) > 10
        async with letta(tmp_path, Script([])) as other:
            rests: dict[int, list[dict[str, Any]]] = {}
            for cut in range(len(body) + 1):
                had = whole_events(body[:cut])
                cursor = last_cursor(had)
                if cursor not in rests:
                    rests[cursor] = await _rest(other, run, cursor)
                assert put_together([*had, *rests[cursor]]) == whole, cut

    asyncio.run(main())


async def _until(server: LettaServer, agent: str, wanted: str) -> list[dict[str, Any]]:
    """Begin a stream of words, and close it after the first event of a type. Return the events that came."""
    had, received = [], b""
    request = {"json": TALK, "timeout": 30}
    async with server.server.client.stream("POST", f"/letta/v1/agents/{agent}/messages", **request) as answer:
        async for part in answer.aiter_bytes():
            received += part
            had = whole_events(received)
            if any(event["message_type"] == wanted for event in had):
                break
    return had


def test_a_reader_that_comes_back_while_the_model_writes_gets_the_rest(tmp_path: Path) -> None:
    """A reader that was cut off in the middle of a reply, and comes back before the reply is whole, gets the rest of
    the same words once.
    """

    async def main() -> None:
        model = Halting([says("Ahoy, what a fine day", "I think of the sea.")])
        async with letta(tmp_path, model) as server:
            agent = await server.run(created)
            had = await _until(server, agent, "assistant_message")
            coming = asyncio.ensure_future(_rest(server, had[0]["run_id"], last_cursor(had)))
            model.go.set()
            whole = put_together([*had, *await coming])
            said = [text for text in whole.values() if text.startswith("Ahoy")]
            assert said == ["Ahoy, what a fine day"]
            assert "I think of the sea." in whole.values()

    asyncio.run(main())


class Changeable(Script):
    """A model that breaks off its first answer after some words, and then gives another one."""

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **how: object) -> ModelResponse:
        """Stream the beginning of the first line, then the whole second line."""
        begun, answer = await super().ask(request), await super().ask(request)
        hear = on_delta or (lambda _: None)
        for piece in list(pieces_of(begun.raw, 3))[:-3]:
            await asyncio.sleep(0)
            hear(piece)
        await asyncio.sleep(0)
        hear(ReplyDelta(restart=True))
        for piece in pieces_of(answer.raw, 3):
            await asyncio.sleep(0)
            hear(piece)
        return answer


def test_words_that_the_model_took_back_are_followed_by_the_whole_reply(tmp_path: Path) -> None:
    """If the model begins its reply again with other words, the reply comes whole under an otid of its own: no client
    joins its words to those that were taken back, at whatever byte the stream was cut.
    """

    async def main() -> None:
        async with letta(tmp_path, Changeable([says("Go north", "Hm."), says("Stay in the harbour", "No.")])) as server:
            agent = await server.run(created)
            body = await _posted(server, f"/agents/{agent}/messages", TALK)
            whole, run = whole_events(body), _run_of(body)
            assert "Stay in the harbour" in put_together(whole).values()
            dead = [event for event in whole if (event.get("content") or "").startswith("Go")]
            assert dead
            for count in range(len(whole) + 1):
                had = whole[:count]
                rest = await _rest(server, run, last_cursor(had))
                texts = put_together([*had, *rest])
                assert "Stay in the harbour" in texts.values(), count
                assert "No." in texts.values(), count
                assert not any("northStay" in text or "Hm.No" in text for text in texts.values()), count

    asyncio.run(main())


def test_a_run_that_another_server_finishes_is_told_whole(tmp_path: Path) -> None:
    """If a server stops in the middle of a reply, its reader is told so by an error; another server finishes the run,
    and its stream has the whole reply, whatever words had come before.
    """

    async def main() -> None:
        async with letta(tmp_path, Halting([says("Go north")])) as server:
            agent = await server.run(created)
            had = await _until(server, agent, "assistant_message")
        async with letta(tmp_path, Script([says("Stay in the harbour", "No.")])) as other:
            rest = await _rest(other, had[0]["run_id"], last_cursor(had))
            texts = put_together([*had, *rest])
            assert "Stay in the harbour" in texts.values()
            assert rest[-1]["message_type"] == "usage_statistics"

    asyncio.run(main())


def test_a_stream_of_a_server_that_stops_ends_with_an_error(tmp_path: Path) -> None:
    """A stream ends without `[DONE]`, and with an error that says how to read on, when the server stops."""

    async def main() -> None:
        model = Halting([says("Go north")])
        received = b""
        async with letta(tmp_path, model) as server:
            agent = await server.run(created)
            sent = server.server.client.stream("POST", f"/letta/v1/agents/{agent}/messages", json=TALK, timeout=30)
            async with sent as answer:
                parts = answer.aiter_bytes()
                while b"assistant_message" not in received:
                    received += await anext(parts)
                server.server.service.stopping.set()
                try:
                    async for part in parts:
                        received += part
                except httpx2.HTTPError:
                    pass
            model.go.set()
        assert b"[DONE]" not in received
        assert b"event: error\ndata: " in received
        assert b"starting_after" in received

    asyncio.run(main())

"""Runs over HTTP: sent once, answered, streamed, resumed and cancelled, whatever becomes of the connection."""

import asyncio
from pathlib import Path

from everlog.events import HostLost, uuid7
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import served

HELLO = {"text": "Hello"}


def test_a_message_is_answered_and_the_run_can_be_looked_up(tmp_path: Path) -> None:
    """A message is answered by its run, and the run can be read again under its id."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", HELLO, status=200)
            assert (run["text"], run["status"], run["agent"]) == ("Ahoy", "done", "sam")
            again = await server.call("GET", f"/agents/sam/runs/{run['run']}", status=200)
            assert again == run

    asyncio.run(main())


def test_a_repeated_request_sends_once_and_another_body_is_refused(tmp_path: Path) -> None:
    """The same idempotency key never sends twice: a repeat answers the same, and another message is refused."""

    async def main() -> None:
        model = Script([says("Ahoy")])
        async with served(tmp_path, model) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            key = {"Idempotency-Key": "my key"}
            first = await server.call("POST", "/agents/sam/messages", HELLO, headers=key, status=200)
            again = await server.call("POST", "/agents/sam/messages", HELLO, headers=key, status=200)
            assert again == first
            problem = await server.call("POST", "/agents/sam/messages", {"text": "Bye"}, headers=key, status=422)
            assert problem["code"] == "duplicate-id"
            assert len(model.asked) == 1

    asyncio.run(main())


def test_a_stream_that_is_resumed_has_each_record_once(tmp_path: Path) -> None:
    """A reader that stops anywhere in a stream and comes back with its last id gets the rest, each record once."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", HELLO, status=200)
            path = f"/agents/sam/runs/{run['run']}/stream"
            whole = await server.events(path)
            seqs = [event.data["seq"] for event in whole if event.kind == "record"]
            assert seqs == list(range(run["first_seq"], run["last_seq"] + 1))
            for seq in seqs:
                rest = await server.events(path, headers={"Last-Event-ID": str(seq)})
                assert [e.data["seq"] for e in rest if e.kind == "record"] == [s for s in seqs if s > seq]
                assert rest[-1].kind == "end"

    asyncio.run(main())


def test_a_run_goes_on_when_its_connection_is_closed(tmp_path: Path) -> None:
    """Closing the connection of a message cancels nothing: the run ends, and can be read."""

    class Slow(Script):
        def __init__(self) -> None:
            super().__init__([says("Ahoy")])
            self.asked_now, self.go = asyncio.Event(), asyncio.Event()

        async def ask(self, request: bytes, **options: object):
            self.asked_now.set()
            await self.go.wait()
            return await super().ask(request, **options)

    async def main() -> None:
        model = Slow()
        async with served(tmp_path, model) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run_id = uuid7(server.service.ports.clock.now(), 7)
            sent = asyncio.ensure_future(
                server.call("POST", "/agents/sam/messages", HELLO, headers={"Idempotency-Key": run_id})
            )
            await model.asked_now.wait()
            sent.cancel()
            await asyncio.wait([sent])
            state = await server.call("GET", f"/agents/sam/runs/{run_id}", status=200)
            assert state["status"] == "running"
            reading = asyncio.ensure_future(server.events(f"/agents/sam/runs/{run_id}/stream"))
            model.go.set()
            events = await reading
            assert events[-1].kind == "end"
            assert events[-1].data["status"] == "done"
            assert "Ahoy" in [event.data["text"] for event in events if event.kind == "record"]

    asyncio.run(main())


def test_a_stream_of_an_agent_has_what_was_missed_and_what_follows(tmp_path: Path) -> None:
    """A reader of an agent gets the records after its position, then those of later messages, in order and once."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One"), says("Two")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", HELLO, status=200)
            reading = asyncio.ensure_future(
                server.events("/agents/sam/stream?after=0", until=lambda event: event.data.get("text") == "Two")
            )
            await server.call("POST", "/agents/sam/messages", {"text": "Again"}, status=200)
            events = await reading
            seqs = [event.data["seq"] for event in events]
            assert seqs == list(range(1, len(seqs) + 1))

    asyncio.run(main())


def test_a_run_is_started_without_waiting_and_cancelled_by_a_call(tmp_path: Path) -> None:
    """With `wait: false` the answer comes at once, and cancelling is a call of its own."""

    class Stuck(Script):
        async def ask(self, request: bytes, **options: object):
            await asyncio.Event().wait()

    async def main() -> None:
        async with served(tmp_path, Stuck([])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", {"text": "Hi", "wait": False}, status=202)
            assert run["status"] == "running"
            turns = await server.call("POST", f"/agents/sam/runs/{run['run']}/cancel", status=200)
            assert turns == {"turns": [run["turn"]]}
            now = await server.call("GET", f"/agents/sam/runs/{run['run']}", status=200)
            assert now["status"] == "cancelled"

    asyncio.run(main())


def test_a_stream_whose_run_no_host_takes_tells_its_reader_to_come_back(tmp_path: Path) -> None:
    """A run that is not finished and that no host takes now is answered with `close`, and not with a cut connection."""

    class Stuck(Script):
        async def ask(self, request: bytes, **options: object):
            await asyncio.Event().wait()

    async def main() -> None:
        async with served(tmp_path, Stuck([])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", {"text": "Hi", "wait": False}, status=202)

            async def lost(*_: object):
                raise HostLost("The host is gone.")
                yield

            server.system.runtime.perform = lost  # type: ignore[method-assign]
            events = await server.events(f"/agents/sam/runs/{run['run']}/stream")
            assert [(event.kind, event.data["code"]) for event in events] == [("close", "host-lost")]

    asyncio.run(main())

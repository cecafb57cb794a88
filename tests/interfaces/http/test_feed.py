"""The feed over HTTP: a reader that is cut anywhere continues with the next record, and a tenant sees its own only."""

import asyncio
from collections import defaultdict
from pathlib import Path

from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Served, SseEvent, served, sse

HELLO = {"text": "Hello"}


def seqs_of(events: list[SseEvent]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for event in events:
        for record in event.data.get("records", ()):
            found[record["agent"]].append(record["seq"])
    return dict(found)


def has(**heads: int):
    """Return a condition: the events so far have these seqs of these agents."""
    seen: dict[str, int] = {}

    def check(event: SseEvent) -> bool:
        for record in event.data.get("records", ()):
            seen[record["agent"]] = record["seq"]
        return all(seen.get(agent, 0) >= head for agent, head in heads.items())

    return check


async def talk(server: Served, *agents: str, headers: dict[str, str] | None = None) -> dict[str, int]:
    """Create agents, talk to each, and return their last seqs."""
    heads = {}
    for agent in agents:
        await server.call("POST", "/agents", {"name": agent}, headers=headers)
        run = await server.call("POST", f"/agents/{agent}/messages", HELLO, headers=headers, status=200)
        page = await server.call("GET", f"/agents/{agent}/records?limit=1000", headers=headers, status=200)
        heads[agent] = max(run["last_seq"], page["as_of"])
    return heads


def test_the_feed_has_every_record_and_goes_on_after_any_event(tmp_path: Path) -> None:
    """From `start` the feed has all records; after the id of any event it has the rest, each record once."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            heads = await talk(server, "sam", "ann")
            whole = await server.events("/feed?after=start", until=has(**heads))
            assert seqs_of(whole) == {agent: list(range(1, head + 1)) for agent, head in heads.items()}
            for number, event in enumerate(whole[:-1]):
                headers = {"Last-Event-ID": event.id}
                rest = await server.events("/feed", headers=headers, until=has(**seqs_last(whole[number + 1 :])))
                assert joined(whole[: number + 1], rest) == seqs_of(whole)

    asyncio.run(main())


def seqs_last(events: list[SseEvent]) -> dict[str, int]:
    return {agent: seqs[-1] for agent, seqs in seqs_of(events).items()}


def joined(*parts: list[SseEvent]) -> dict[str, list[int]]:
    return seqs_of([event for part in parts for event in part])


def test_the_feed_is_cut_at_any_byte_and_resumed(tmp_path: Path) -> None:
    """A body that ends after any byte leaves a reader with whole events, and the rest follows from its last id."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            heads = await talk(server, "sam")
            raw = b""
            async with server.client.stream("GET", "/api/v1/feed?after=start") as answer:
                async for part in answer.aiter_bytes():
                    raw += part
                    if f'"seq":{heads["sam"]},'.encode() in raw and raw.endswith(b"\n\n"):
                        break
            for cut in range(0, len(raw), max(1, len(raw) // 12)):

                async def body(cut: int = cut):
                    yield raw[:cut]

                first = [event async for event in sse(body())]
                after = first[-1].id if first else "start"
                have = seqs_of(first).get("sam", [])
                if have != list(range(1, heads["sam"] + 1)):
                    rest = await server.events("/feed", headers={"Last-Event-ID": after}, until=has(**heads))
                    assert have + seqs_of(rest)["sam"] == list(range(1, heads["sam"] + 1))

    asyncio.run(main())


def test_a_new_record_comes_to_a_waiting_reader(tmp_path: Path) -> None:
    """A reader that follows from now on gets what is said later, also by agents that are created later; the filters
    choose agents and types.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("One"), says("Two")])) as server:
            await talk(server, "sam")
            opened = asyncio.Event()

            def until(event: SseEvent) -> bool:
                opened.set()
                return bool(event.data.get("records"))

            reading = asyncio.ensure_future(server.events("/feed?agent=a*&type=message_sent", until=until))
            await opened.wait()
            await talk(server, "bob", "ann")
            (event,) = [event for event in await reading if event.kind == "records"]
            assert [(r["agent"], r["type"]) for r in event.data["records"]] == [("ann", "message_sent")]

    asyncio.run(main())


def test_a_long_position_goes_into_the_body(tmp_path: Path) -> None:
    """POST opens the same feed; a position that is none is refused by both."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            heads = await talk(server, "sam")
            found: list[SseEvent] = []
            done = has(**heads)
            async with server.client.stream("POST", "/api/v1/feed", json={"after": "start"}) as answer:
                async for event in sse(answer.aiter_bytes()):
                    found.append(event)
                    if done(event):
                        break
            assert seqs_of(found) == {"sam": list(range(1, heads["sam"] + 1))}
            for wrong in ("x", "AAAA", "0"):
                await server.call("POST", "/feed", {"after": wrong}, status=400)
                await server.call("GET", f"/feed?after={wrong}", status=400)
            await server.call("GET", "/feed", headers={"Last-Event-ID": "nonsense"}, status=400)

    asyncio.run(main())


def test_a_tenant_has_its_own_records_only(tmp_path: Path) -> None:
    """The feed of a tenant has the records of its agents, under its own names, and nothing of others."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")] * 9)) as server:
            acme, other = server.key(tenant="acme", name="a"), server.key(tenant="rival", name="o")
            heads = await talk(server, "sam", headers=acme)
            await talk(server, "sam", "eve", headers=other)
            last = await talk(server, "zoe", headers=acme)
            found = await server.events("/feed?after=start", headers=acme, until=has(**heads, **last))
            assert set(seqs_of(found)) == {"sam", "zoe"}
            assert seqs_of(found)["sam"] == list(range(1, heads["sam"] + 1))
            assert "rival" not in str(found)
            operator = server.key(name="op")
            every = await server.events("/feed?after=start", headers=operator, until=has(**{"rival~eve": 3}))
            assert "rival~eve" in seqs_of(every)

    asyncio.run(main())

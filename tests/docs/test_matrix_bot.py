"""The example of a channel: rooms of Matrix are agents, and each message comes once, whatever is lost or killed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

import everlog
from tests.support import seeds
from tests.support.cli.command_line import Script, says
from tests.support.example_module import EXAMPLES, example
from tests.support.http.served_store import Served, served
from tests.support.matrix.fake_matrix import FakeMatrix, fake_matrix

LINES_MAX = 200
ROOM, OTHER = "!boat:test", "!crew:test"


@asynccontextmanager
async def running(matrix_url: str, everlog_url: str) -> AsyncIterator[Any]:
    """Run the bot while the block runs, then kill it where it is."""
    bot = example("matrix_bot")
    async with (
        httpx2.AsyncClient(base_url=matrix_url, timeout=30, trust_env=False) as http,
        everlog.connect_system(everlog_url) as system,
    ):
        work = asyncio.ensure_future(bot.Bot(bot.Matrix(http), system).run())
        try:
            yield work
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work


async def until(matrix: FakeMatrix, done: Callable[[], bool], work: "asyncio.Future[Any]") -> None:
    """Wait until something is true of a Matrix. Fails if the bot ends."""
    async with asyncio.timeout(60):
        while not done():
            assert not work.done(), work.result()
            await matrix.changed()


async def heard(server: Served, room: str) -> list[tuple[str, str, str]]:
    """Return what an agent heard: the text, the speaker and the conversation of each message."""
    async with everlog.connect_system(server.address) as system:
        rows = await system.sql(
            "SELECT text, payload ->> 'name' AS who, coalesce(payload ->> 'conversation', '') AS thread FROM records "
            "WHERE type = 'user_message' ORDER BY seq", agent=f"matrix:{room}",
        )  # fmt: skip
    return [(row["text"], row["who"], row["thread"]) for row in rows.to_pylist()]


@asynccontextmanager
async def world(tmp_path: Path, answers: list[Any]) -> AsyncIterator[tuple[FakeMatrix, Served, str]]:
    """Serve a Matrix and a store, with a first place of the bot in Matrix."""
    async with served(tmp_path, Script(answers)) as server:
        matrix = FakeMatrix(server.service.ports.clock.now)
        async with fake_matrix(matrix) as address:
            yield matrix, server, address


def test_the_example_is_short() -> None:
    """The whole channel has at most 200 lines, as the page promises."""
    assert len((EXAMPLES / "matrix_bot.py").read_text(encoding="utf-8").splitlines()) <= LINES_MAX


def test_a_room_is_an_agent(tmp_path: Path) -> None:
    """The bot joins when it is invited; a message gets an answer in its room, one of a thread in the thread; an edit is
    said as a correction, and the bot does not hear itself, other bots or what was taken back.
    """

    async def main() -> None:
        async with world(tmp_path, [says(f"Answer {n}") for n in range(1, 5)]) as (matrix, server, address):
            matrix.say(ROOM, "Before the bot came")
            async with running(address, server.address) as work:
                matrix.invited.append(ROOM)
                await until(matrix, lambda: not matrix.invited, work)
                root = matrix.say(ROOM, "Hello")
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 1, work)
                matrix.say(
                    ROOM, "In a thread", "@bob:test", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}}
                )
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 2, work)
                matrix.say(ROOM, "beep", msgtype="m.notice")
                edit = {"m.relates_to": {"rel_type": "m.replace", "event_id": root}, "m.new_content": {"body": "Hullo"}}
                matrix.say(ROOM, "* Hullo", **edit)
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 3, work)
            assert await heard(server, ROOM) == [
                ("Hello", "@ann:test", ""), ("In a thread", "@bob:test", root),
                ("(I correct what I wrote before:) Hullo", "@ann:test", ""),
            ]  # fmt: skip
            said = matrix.answers(ROOM)
            assert [one["body"] for one in said] == ["Answer 1", "Answer 2", "Answer 3"]
            assert said[1]["m.relates_to"]["event_id"] == root
            assert ["m.relates_to" in one for one in said] == [False, True, False]

    asyncio.run(main())


def test_what_an_agent_says_by_itself_comes_into_its_room(tmp_path: Path) -> None:
    """Words that no message of the room asked for, such as those of a timer, are said in the room as well, once."""

    async def main() -> None:
        async with world(tmp_path, [says("Hello"), says("It is time.")]) as (matrix, server, address):
            matrix.invited.append(ROOM)
            async with running(address, server.address) as work:
                await until(matrix, lambda: not matrix.invited, work)
                matrix.say(ROOM, "Hi")
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 1, work)
            await server.call("POST", f"/agents/matrix%3A{ROOM}/inputs", {"type": "heartbeat"}, status=200)
            async with running(address, server.address) as work:
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 2, work)
            assert [one["body"] for one in matrix.answers(ROOM)] == ["Hello", "It is time."]

    asyncio.run(main())


def test_a_bot_that_rests_keeps_nothing(tmp_path: Path) -> None:
    """The places that the bot keeps in Matrix are news for itself: it keeps no place because of them."""

    async def main() -> None:
        async with world(tmp_path, [says("Hello")]) as (matrix, server, address):
            matrix.invited.append(ROOM)
            async with running(address, server.address) as work:
                await until(matrix, lambda: not matrix.invited, work)
                matrix.say(ROOM, "Hi")
                await until(matrix, lambda: len(matrix.answers(ROOM)) == 1, work)
                await matrix_rest(matrix)
                kept = matrix.kept
                await matrix_rest(matrix)
                assert matrix.kept == kept

    asyncio.run(main())


@pytest.mark.parametrize("number", seeds.split(range(20), 1, label="matrix", part="clients"))
def test_nothing_is_lost_or_doubled_by_kills_and_lost_answers(tmp_path: Path, number: int) -> None:
    """While requests to Matrix are lost, before or after they are carried out, and the bot is killed at any moment,
    also while more is said than one answer has: each message is heard once, in order, and each answer said once.
    """
    chance = seeds.chance(f"matrix {number}")
    said = {room: [f"{room} {n}" for n in range(12)] for room in (ROOM, OTHER)}

    async def main() -> None:
        async with world(tmp_path, []) as (matrix, server, address):
            matrix.invited += [ROOM, OTHER]
            async with running(address, server.address) as work:
                await until(matrix, lambda: not matrix.invited, work)
            left = {room: list(texts) for room, texts in said.items()}
            requests = 0

            def counted(_: str) -> str:
                nonlocal requests
                requests += 1
                return chance.choice(("before", "after", "", "", "", ""))

            matrix.lose = counted
            while any(left.values()):
                for room, texts in left.items():
                    for _ in range(min(len(texts), chance.randrange(7))):
                        matrix.say(room, texts.pop(0))
                stop = requests + chance.randrange(1, 25)
                async with running(address, server.address) as work:
                    await until(matrix, lambda: requests >= stop, work)  # noqa: B023
            matrix.lose = lambda _: ""
            async with running(address, server.address) as work:
                await until(matrix, lambda: all(len(matrix.answers(room)) >= 12 for room in said), work)
                await matrix_rest(matrix)
            for room, texts in said.items():
                assert [text for text, _, _ in await heard(server, room)] == texts
                assert len(matrix.answers(room)) == 12

    asyncio.run(main())


async def matrix_rest(matrix: FakeMatrix) -> None:
    """Wait until the bot has looked twice without news."""
    looks = 0

    def counted(request: str) -> str:
        nonlocal looks
        looks += request == "GET /sync"
        return ""

    matrix.lose = counted
    while looks < 3:
        await matrix.changed()

"""The example of a channel against a real Matrix server: Synapse, the bot and everlog are killed, and lines are cut."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import everlog
from tests.support import seeds
from tests.support.http.cutting_proxy import cutting
from tests.support.http.killable_server import ROOT, KillableServer
from tests.support.matrix.synapse import Person, Synapse
from tests.support.published_programs import installed

ROUNDS = 12
"""Times that something is killed."""


class BotProcess:
    """The example in a process of its own."""

    def __init__(self, matrix: str, token: str, server: str) -> None:
        self._command = [sys.executable, "docs/examples/matrix_bot.py", matrix, server]
        self._env = {**os.environ, "MATRIX_TOKEN": token, "MATRIX_WAIT_MS": "500"}
        self.start()

    def start(self) -> None:
        """Start the bot."""
        self.process = subprocess.Popen(self._command, cwd=ROOT, env=self._env)

    def kill(self) -> None:
        """Kill the bot where it is."""
        self.process.kill()
        self.process.wait(60)


@pytest.mark.long
@pytest.mark.clients
def test_every_message_comes_once_from_a_real_server(tmp_path: Path) -> None:
    """While the bot, Synapse and everlog are killed one after another and connections are cut, each message of two
    rooms is in the log once, in order, and each has one answer in its room.
    """
    programs = installed(tmp_path / "programs", "matrix-synapse")
    chance = seeds.chance("synapse")

    async def main() -> None:
        synapse, server = Synapse(programs, tmp_path / "synapse"), KillableServer(tmp_path / "store")
        await synapse.start()
        await asyncio.to_thread(server.start)
        bot_id, bot_token = await synapse.user("bot")
        _, token = await synapse.user("ann")
        ann = Person(synapse.address, token)
        async with cutting(synapse.address, lambda: chance.choice((None, None, chance.randrange(8000)))) as lines:
            bot = BotProcess(lines.address, bot_token, server.address)
            try:
                rooms = [(await ann.call("POST", "/createRoom", {"invite": [bot_id]}))["room_id"] for _ in range(2)]
                await _until(lambda: _not_joined(ann, rooms, bot_id), "the bot")
                said = await _disturbed(ann, rooms, bot, synapse, server, chance.choice)
                await _until(lambda: _all_answered(ann, rooms, said, bot_id, bot), "answers")
                for room in rooms:
                    assert await _heard(server.address, room) == said[room]
                    answers = [text for sender, text in await ann.said(room) if sender == bot_id]
                    assert len(answers) == len(said[room])
                print(f"{sum(map(len, said.values()))} messages, {ROUNDS} kills, {lines.cuts} cuts")
            finally:
                bot.kill()
        synapse.kill()
        server.kill()

    asyncio.run(main())


async def _disturbed(
    ann: Person, rooms: list[str], bot: BotProcess, synapse: Synapse, server: KillableServer, choice: Callable[..., Any]
) -> dict[str, list[str]]:
    """Say messages while something is killed again and again, and return them by room."""
    said: dict[str, list[str]] = {room: [] for room in rooms}
    for turn in range(ROUNDS):
        for room in rooms:
            for n in range(choice((1, 3, 15))):
                text = f"turn {turn} message {n}"
                await ann.say(room, text)
                said[room].append(text)
        await asyncio.sleep(choice((0.0, 0.3, 1.0, 2.0)))
        killed = ("bot", "synapse", "everlog")[turn % 3]
        if killed == "synapse":
            synapse.kill()
            await synapse.start()
        elif killed == "everlog":
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        else:
            bot.kill()
        if bot.process.poll() is not None:  # as a supervisor does
            bot.start()
    return said


async def _until(done: Callable[[], Awaitable[str]], what: str) -> None:
    """Wait until nothing is left of something."""
    async with asyncio.timeout(300):
        while left := await done():
            print(f"waiting for {what}: {left}")
            await asyncio.sleep(2)


async def _not_joined(ann: Person, rooms: list[str], bot: str) -> str:
    """Return the rooms in which the bot is not; what is said there before it comes is not for its agent."""
    members = [(await ann.call("GET", f"/rooms/{room}/joined_members"))["joined"] for room in rooms]
    return ", ".join(room for room, joined in zip(rooms, members, strict=True) if bot not in joined)


async def _all_answered(
    ann: Person, rooms: list[str], said: dict[str, list[str]], bot: str, process: BotProcess
) -> str:
    if process.process.poll() is not None:
        process.start()
    counts = [sum(sender == bot for sender, _ in await ann.said(room)) for room in rooms]
    return "" if all(count >= len(said[room]) for room, count in zip(rooms, counts, strict=True)) else str(counts)


async def _heard(address: str, room: str) -> list[str]:
    async with everlog.connect_system(address) as system:
        query = "SELECT text FROM records WHERE type = 'user_message' ORDER BY seq"
        return [row["text"] for row in (await system.sql(query, agent=f"matrix:{room}")).to_pylist()]

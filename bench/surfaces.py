"""Measure what the surfaces for clients of other makers add: the CPU of a message through each, over the native API.

Run as `python -m bench.surfaces`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

One `everlog serve` in a process of its own, with as many agents for each surface, whose conversations are equally long.
The surfaces are asked in turns. A client of chat completions resends its whole conversation with each message, and the
next message of a response names the one before.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bench.serve import SAID, Connection, Server, create
from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, workspace
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds

KEYS = ("chat_cpu_ratio", "responses_cpu_ratio", "letta_cpu_ratio")
GOALS = ("< 1.3", "< 1.3", "< 1.3")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    agents: int = 50
    """Agents of each surface."""
    messages: int = 10
    """Messages to each agent, in each round."""
    rounds: int = 5


QUICK = Plan(agents=20, messages=5, rounds=3)


class Seen(msgspec.Struct, frozen=True):
    """CPU of the server per message, milliseconds, of each round by surface."""

    noise: Noise
    cpu_ms: Mapping[str, Sequence[float]]


class Talk:
    """Conversation of one client with one agent."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.number = 0
        self.history: list[dict[str, str]] = []
        self.response = ""

    def said(self) -> str:
        """Return the next message: no two are equal."""
        self.number += 1
        return f"{SAID} {self.number}"


Request = tuple[str, object, Callable[[Any], None]]
"""Path, body, and what is done with the answer."""


def native(talk: Talk) -> Request:
    """Return a message through the native API."""
    return f"/api/v1/agents/{talk.agent}/messages", {"text": talk.said()}, lambda _: None


def chat(talk: Talk) -> Request:
    """Return a message with its whole conversation."""
    talk.history.append({"role": "user", "content": talk.said()})
    body = {"model": talk.agent, "messages": talk.history}
    return "/openai/v1/chat/completions", body, lambda answer: talk.history.append(answer["choices"][0]["message"])


def responses(talk: Talk) -> Request:
    """Return a message after a response."""
    body = {"model": talk.agent, "input": talk.said()} | (
        {"previous_response_id": talk.response} if talk.response else {}
    )

    def keep(answer: Any) -> None:
        talk.response = answer["id"]

    return "/openai/v1/responses", body, keep


def letta(talk: Talk) -> Request:
    """Return a message as Letta's client sends it."""
    path = f"/letta/v1/agents/{LettaIds(talk.agent).agent}/messages"
    return path, {"messages": [{"role": "user", "content": talk.said()}]}, lambda _: None


SURFACES: Mapping[str, Callable[[Talk], Request]] = {
    "native": native, "chat": chat, "responses": responses, "letta": letta,
}  # fmt: skip


async def converse(port: int, talks: Sequence[Talk], request: Callable[[Talk], Request], messages: int) -> None:
    """Send messages to all agents at once, each over its own connection."""

    async def one(talk: Talk) -> None:
        connection = await Connection.open(port)
        for _ in range(messages):
            path, body, keep = request(talk)
            connection.ask("POST", path, body, below="")
            keep(msgspec.json.decode(await connection.answer()))
        connection.writer.close()

    await asyncio.gather(*(one(talk) for talk in talks))


def measure(plan: Plan) -> Seen:
    """Talk through each surface in turns."""
    found: dict[str, list[float]] = {name: [] for name in SURFACES}
    talks = {name: [Talk(f"{name}-{number}") for number in range(plan.agents)] for name in SURFACES}
    with workspace() as folder, Server(folder / "store") as server:
        machine = noise(folder)
        asyncio.run(create(server.port, [talk.agent for each in talks.values() for talk in each]))
        for _ in range(plan.rounds):
            for name, request in SURFACES.items():
                cpu = server.cpu_s()
                asyncio.run(converse(server.port, talks[name], request, plan.messages))
                found[name].append((server.cpu_s() - cpu) / (plan.agents * plan.messages) * 1000)
    return Seen(machine, found)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures, in the order of KEYS."""
    floor = median(list(seen.cpu_ms["native"]))
    return [Figure(key, median(list(seen.cpu_ms[key.partition("_")[0]])) / floor, "ratio", 1.0) for key in KEYS]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table."""
    runs = (among(list(seen.cpu_ms[key.partition("_")[0]])) for key in KEYS)
    return [line(figure, goal, f"{run} ms") for figure, goal, run in zip(found, GOALS, runs, strict=True)]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("surfaces", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("surfaces", "What the surfaces for other clients add to a message.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())

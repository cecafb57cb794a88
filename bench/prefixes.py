"""Measure how much of a request repeats the previous one, from its beginning on: what a provider's prompt cache can
hit.

Used by `bench.gateway`, which prints the figure.

A provider puts the functions first, then the messages in order. Requests are compared in that order; all bytes after
the first difference count as new.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.replay import talk_of
from bench.support.harness import ROOT, median
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.models.offline import OfflineModel
from everlog.actors.ports.effects import ModelResponse
from everlog.events import UserMessage
from everlog.interfaces.fleet import fleet_command
from everlog.store import MemoryStore

WINDOW = 8192


class Talk(msgspec.Struct, frozen=True):
    """A conversation, and its requests."""

    source: str
    request: bytes
    """One of the last requests."""
    steps: int
    summaries: int
    by_step: list[float]
    """Fraction of the previous request's bytes that each request repeats; requests before and after a summary are not
    compared.
    """
    stability: float
    """The same fraction over all bytes together."""
    edits: int
    """Number of steps before which core memory or a header changed."""
    edited: float
    """Median fraction of those steps."""


class RecordingModel:
    """The offline model, recording its requests."""

    name = "offline"

    def __init__(self) -> None:
        self._model = OfflineModel()
        self.requests: list[bytes] = []

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        """Answer, and record the request."""
        self.requests.append(request)
        return await self._model.ask(request)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def words(data: str | None) -> tuple[str, list[str]]:
    """Return the source of the texts, and the texts: LoCoMo if the data set is available, else those that everlog
    ships.
    """
    folder = Path(data or os.environ.get("EVERLOG_DATA") or ROOT.parent / "shared" / "data") / "locomo" / "dev"
    found = [said for said, _ in talk_of(folder)]
    return ("LoCoMo", found) if found else ("everyday words", fleet_command.lines(None))


async def talk(turns: int, data: str | None, window: int = WINDOW) -> Talk:
    """Send people's messages to an agent with the offline model, which edits and searches its memory; compare its
    requests.
    """
    source, lines = words(data)
    model = RecordingModel()
    system = LocalSystem(MemoryStore(), models=lambda _: model)
    async with system.agent("sam", Settings(window=window)) as agent:
        for number in range(turns):
            await agent.receive(UserMessage(text=lines[number % len(lines)]))
            await agent.run()
    return compared(source, model.requests)


def compared(source: str, requests: Sequence[bytes]) -> Talk:
    """Compare each request with the one before, except across a summary."""
    shares: list[float] = []
    again = whole = summaries = 0
    changed: list[float] = []
    before: tuple[bytes, bytes] | None = None
    for request in requests:
        if b'"tools":' not in request:
            before, summaries = None, summaries + 1
            continue
        now = parted(request)
        if before is not None:
            functions = len(before[0]) if before[0] == now[0] else 0
            same = functions + (common(before[1], now[1]) if functions else 0)
            share = same / (len(before[0]) + len(before[1]))
            again, whole = again + same, whole + len(before[0]) + len(before[1])
            shares.append(share)
            if system_of(before[1]) != system_of(now[1]):
                changed.append(share)
        before = now
    asked = [request for request in requests if b'"tools":' in request]
    return Talk(
        source=source, request=asked[-1], steps=len(asked), summaries=summaries, by_step=shares,
        stability=again / whole, edits=len(changed), edited=median(changed) if changed else 1.0,
    )  # fmt: skip


def parted(request: bytes) -> tuple[bytes, bytes]:
    """Return the functions and the messages of a request, in the order in which a provider reads them."""
    messages, mark, functions = request.rpartition(b',"tools":')
    return (mark + functions, messages.removesuffix(b"]")) if mark else (b"", request)


def system_of(messages: bytes) -> bytes:
    """Return the system message, or the bytes that begin with it."""
    return messages.partition(b'"},{"role":')[0]


def common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix of two texts, in bytes."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low

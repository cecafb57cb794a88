"""What an interface is, and the world that a command runs in: Protocols, and the real defaults.

An interface shows what happened to an agent. The terminal is one (`terminal.Terminal`), JSON lines are another
(`shapes.JsonLines`), and a test brings its own that only remembers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from actors.effects import Clock, Ids, Model
from actors.real import RealClock, RealIds
from events import EverlogError, Record


class Interface(Protocol):
    """How a front end is told what happened, as it happens."""

    def on_records(self, records: Sequence[Record]) -> None:
        """A commit is durable: these are its records, in order."""
        ...

    def on_error(self, error: EverlogError) -> None:
        """What was asked could not be done; what had been said before is kept."""
        ...


Ask = Callable[[str], str]
"""Ask the person: a prompt in, a line out. Raises EOFError where there is nobody, or no more."""


def real_model(name: str, base_url: str | None) -> Model:
    """The model of that name; `base_url` is where it is served."""
    from actors.system import model_for

    return model_for(name, base_url)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Every effect that the command line has beside its streams and files; a test brings its own."""

    clock: Clock = msgspec.field(default_factory=RealClock)
    ids: Ids = msgspec.field(default_factory=RealIds)
    model: Callable[[str, str | None], Model] = real_model
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ask: Ask = input

"""What an interface is, what a front end is, and the world that a command runs in: Protocols, and the real defaults.

Whoever is told what happened to an agent is told on one of two levels. An interface hears records: JSON lines do
(`shapes.JsonLines`), and so does whatever counts, filters or passes on. A front end hears words: the terminal does
(`terminal.Terminal`), and so would a bot. `narrator.Narrator` is the interface that tells a front end.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from everlog.actors.formats.reply_preview import Preview
from everlog.actors.models.model_types import ProbeFindings
from everlog.actors.ports.effects import Clock, Ids, Model
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Call, EverlogError, Record
from everlog.interfaces.common.process_limits import hold_memory


class Interface(Protocol):
    """The level of records: who is told what happened, as it happens, and adds nothing to it."""

    def on_records(self, records: Sequence[Record]) -> None:
        """A commit is durable: these are its records, in order."""
        ...

    def on_error(self, error: EverlogError) -> None:
        """What was asked could not be done; what had been said before is kept."""
        ...


Notice = Literal[
    "memory_pressure",
    "summary",
    "summary_expanded",
    "context_trimmed",
    "reply_rejected",
    "model_switched",
    "heartbeat",
    "model_failed",
    "turn_abandoned",
    "turn_cancelled",
    "budget_exceeded",
    "unknown",
]
"""What a notice is about: its event's kind; but a warning is `memory_pressure`, and a newer everlog's is `unknown`."""


class FrontEnd(Protocol):
    """The level of words: how people are told what happened, in the order of the log, once it is durable.

    Inherit from it and write only what you show: the rest does nothing. Text comes as it was said; where control
    characters could do harm it is the front end that escapes them.
    """

    def user_message(self, text: str, name: str) -> None:
        """A user said `text`; `name` is empty where the log does not say who."""
        return

    def inner_monologue(self, text: str) -> None:
        """What the agent thinks, and the user is not told; never empty."""
        return

    def assistant_message(self, text: str, name: str) -> None:
        """The agent said `text` to the user; `name` is the agent's, or who said it in an imported conversation."""
        return

    def function_call(self, call: Call) -> None:
        """The agent called a function; its arguments are the model's own text, not checked.

        A call of `send_message` is not told: its words come as an assistant message.
        """
        return

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        """The call ended, and the agent was told `text`; not `ok`: it failed, and `text` says why.

        Of `send_message` only a failure is told. The arguments are empty where the call was not heard: it was made
        before this front end listened, or was erased. What was heard without arguments has `{}`.
        """
        return

    def notice(self, about: Notice, text: str) -> None:
        """Something else happened that people may want to see; `text` says all of it."""
        return

    def preview(self, preview: Preview, name: str) -> None:
        """Some words of a reply that is on its way, of the agent `name`: not durable, and they may come to nothing.

        Each of them is told again, by the methods above, when it is final.
        """
        return

    def error(self, error: EverlogError) -> None:
        """What was asked could not be done; what had been said before is kept.

        Whoever asked is told. Where the model failed, the notice `model_failed` comes before it, for everybody.
        """
        return


LineReader = Callable[[str], str]
"""Ask the person: a prompt in, a line out. Raises EOFError where there is nobody, or no more."""


Probe = Callable[[str, str, str], ProbeFindings]
"""Asks an endpoint what it can do: its address, a model's name, the name of the variable with the key."""


def real_probe(url: str, model: str, key_name: str) -> ProbeFindings:
    """What the endpoint at `url` can do with `model`, asked now."""
    from everlog.actors.models.probe import probe
    from everlog.actors.models.probe_http import sender

    return probe(url, model, sender(key_name), at=RealClock().now(), key=key_name)


NICENESS = 10


def give_way() -> None:
    """Let other processes go first from now on: for a command that others should not notice."""
    os.nice(NICENESS)


class CommandEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Every effect that the command line has beside its streams and files; a test brings its own."""

    clock: Clock = msgspec.field(default_factory=RealClock)
    ids: Ids = msgspec.field(default_factory=RealIds)
    model: Callable[[str, str | None], Model] | None = None
    """From a name and the address where it is served to a model; None: the real ones."""
    probe: Probe | None = real_probe
    """None: nobody is asked, and what files say is all that is known."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ask: LineReader = input
    give_way: Callable[[], None] = give_way
    hold_memory: Callable[[int], None] = hold_memory

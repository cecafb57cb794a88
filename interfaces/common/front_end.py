"""Protocols of interfaces and front ends, and the environment that a command runs in, with its real defaults.

There are two levels of callbacks. An interface gets records: `json_shapes.JsonLines` is one, and so is anything that
counts, filters or forwards records. A front end gets text for people: `terminal_output.TerminalFrontEnd` is one, and a
chat bot would be another. `narrator.Narrator` is the interface that translates records for a front end.

Used by every command, for its environment and its output. Tests and the tour replace the environment, so a command
takes clock, ids and models from it only.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from everlog.actors.ports.effects import Clock, Ids, Model
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Call, EverlogError, Record
from everlog.interfaces.common.process_limits import hold_memory

if TYPE_CHECKING:
    from everlog.actors.formats.reply_preview import Preview
    from everlog.actors.functions.http_function import WebAccess
    from everlog.actors.models.model_types import ProbeFindings


class Interface(Protocol):
    """Callbacks with the committed records of an agent, in the order of its log. They add nothing to the log."""

    def on_records(self, records: Sequence[Record]) -> None:
        """Handle the records of one durable commit, in order."""
        ...

    def on_error(self, error: EverlogError) -> None:
        """Handle the failure of a command. Records that were committed before are kept."""
        ...


Notice = Literal[
    "memory_pressure",
    "summary",
    "summary_expanded",
    "context_trimmed",
    "reply_rejected",
    "model_switched",
    "heartbeat",
    "approval_requested",
    "approval_decided",
    "model_failed",
    "turn_abandoned",
    "turn_cancelled",
    "budget_exceeded",
    "unknown",
]
"""Kind of the event that a notice is about. A memory warning has `memory_pressure`, and an event of a newer everlog
`unknown`.
"""


class FrontEnd(Protocol):
    """Callbacks with text for people, in the order of the log, once the records are durable.

    Inherit from this class and override only the methods that you need: the others do nothing. Text is passed as it is
    in the log; a front end for which control characters are dangerous has to escape them.
    """

    def user_message(self, text: str, name: str) -> None:
        """Handle a message of a user; `name` is empty if the log does not name the user."""
        return

    def inner_monologue(self, text: str) -> None:
        """Handle a thought of the agent, which is not sent to the user; `text` is never empty."""
        return

    def assistant_message(self, text: str, name: str) -> None:
        """Handle a message from the agent to the user; `name` is the agent's, or the speaker's of an imported
        conversation.
        """
        return

    def function_call(self, call: Call) -> None:
        """Handle a function call; its arguments are the model's own text and are not validated.

        Calls of `send_message` are left out: their text is passed to `assistant_message`.
        """
        return

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        """Handle the result of a function call as the agent got it. If `ok` is false the call failed, and `text` is the
        reason.

        Results of `send_message` are left out unless it failed. The arguments are empty if this front end did not get
        the call: the call was made before the front end subscribed, or was erased. A call that was made without
        arguments has `{}`.
        """
        return

    def notice(self, about: Notice, text: str) -> None:
        """Handle anything else that people may want to see; `text` describes all of it."""
        return

    def preview(self, preview: "Preview", name: str) -> None:
        """Handle a part of a reply of the agent `name` that is still streamed, or a call that begins. It is not
        durable, and may be discarded.

        When the reply is durable, its text is passed again to the methods above.
        """
        return

    def error(self, error: EverlogError) -> None:
        """Handle the failure of a command. Records that were committed before are kept.

        Only the front end of the caller gets the error. If the model failed, every front end got the notice
        `model_failed` before it.
        """
        return


LineReader = Callable[[str], str]
"""Ask the person at the terminal: prompt in, line out. Raises EOFError if there is no terminal, or no more input."""


Probe = Callable[[str, str, str], "ProbeFindings"]
"""Probe what an endpoint can do: its address, the name of a model, and the name of the variable with the key."""


def real_probe(url: str, model: str, key_name: str) -> "ProbeFindings":
    """Probe now what the endpoint at `url` can do with `model`."""
    from everlog.actors.models.probe import probe
    from everlog.actors.models.probe_http import sender

    return probe(url, model, sender(key_name), at=RealClock().now(), key=key_name)


def real_web(hosts: Sequence[str]) -> "WebAccess":
    """Return the access to the hosts that the user allows."""
    from everlog.actors.functions.http_function import WebAccess

    return WebAccess(hosts)


NICENESS = 10


def lower_priority() -> None:
    """Lower the priority of this process for the rest of its life, for a command that should not slow down others."""
    os.nice(NICENESS)


class CommandEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Every effect of the command line besides its streams and files. Tests pass their own."""

    clock: Clock = msgspec.field(default_factory=RealClock)
    ids: Ids = msgspec.field(default_factory=RealIds)
    model: Callable[[str, str | None], Model] | None = None
    """Make a model from its name and the address where it is served; None: the real models."""
    probe: Probe | None = real_probe
    """None: no endpoint is probed, and only the model descriptions and earlier probes are used."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Sleep before a notice that a model is waited for; tests leave it real, or let it pass."""
    ask: LineReader = input
    web: Callable[[Sequence[str]], "WebAccess"] = real_web
    """Make the access to the hosts that the user allows."""
    lower_priority: Callable[[], None] = lower_priority
    hold_memory: Callable[[int], None] = hold_memory

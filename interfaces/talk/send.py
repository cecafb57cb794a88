"""`everlog send`: one input, durable before anything else happens, and what the agent made of it."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial

from everlog.actors.agent_system import AgentSystem
from everlog.events import (
    STOPS,
    BadInput,
    Event,
    EverlogError,
    Heartbeat,
    Record,
    SystemAlert,
    UserLogin,
    UserMessage,
    time_of,
)
from everlog.interfaces.common.bootstrap import agents_of, owning, settings_of
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment, FrontEnd, Interface
from everlog.interfaces.output.json_shapes import JsonLines
from everlog.store import LogReader, name_of

BACKWARD_RECORDS = 200
"""Records that are read together, from the newest back."""
AHEAD_US_MAX = 86_400_000_000
"""Microseconds that the time inside an --id may be ahead of the clock."""


_TELLING = ("model_reply", *STOPS)
"""Kinds of which the last one of a turn says how it ended."""


class OutcomeRecorder:
    """The interface that also knows how each turn ended. `hide`: a turn that was given up is not passed on."""

    def __init__(self, interface: Interface, *, hide: bool) -> None:
        self._interface = interface
        self._hide = hide
        self._last: dict[int, Record] = {}

    def on_records(self, records: Sequence[Record]) -> None:
        """Take note, and pass the records on."""
        self._last |= {r.turn: r for r in records if r.type in _TELLING}
        self._interface.on_records([r for r in records if not (self._hide and r.type == "turn_abandoned")])

    def on_error(self, error: EverlogError) -> None:
        """Pass it on."""
        self._interface.on_error(error)

    def given_up(self) -> dict[int, str]:
        """Why each turn that was given up was, by its number."""
        ended = sorted(self._last.items())
        return {turn: last.text or "the turn was given up." for turn, last in ended if last.type != "model_reply"}


class GatedInterface:
    """An interface that hears nothing until it is opened: how an agent began is not part of an answer."""

    def __init__(self, interface: Interface) -> None:
        self._interface = interface
        self._open = False

    def on_records(self, records: Sequence[Record]) -> None:
        """Pass the records on, once open."""
        if self._open:
            self._interface.on_records(records)

    def opened(self, args: Namespace, *, born: bool) -> None:
        """The agent is open; what was asked for a new one, and it is not new, is said to be unused."""
        self._open = True
        unused = [f"--{key}" for key in ("persona", "human", "block") if getattr(args, key)]
        if unused and not born:
            complain(f"{args.name} exists; {', '.join(unused)} changes a new agent only.")


def send(args: Namespace, world: CommandEnvironment) -> int:
    """The command."""
    if args.text == "-":
        args.text = sys.stdin.read().rstrip("\r\n")
    if not (args.text or "").strip() and args.kind in ("user", "system", "event"):
        args.fail(f"TEXT is missing: --as {args.kind} needs words")
    if args.id and (time_of(args.id) or 0) > world.clock.now() + AHEAD_US_MAX:
        args.fail(f"--id {args.id}: the time in it is more than a day ahead of the clock; make a new one")
    if args.json:
        return asyncio.run(_send(args, world, OutcomeRecorder(JsonLines(sys.stdout), hide=False), None))
    from everlog.interfaces.output.narrator import Narrator
    from everlog.interfaces.output.terminal_output import TerminalFrontEnd, console

    terminal = TerminalFrontEnd(out := console(), verbose=args.verbose)
    shown = terminal if args.stream and out.is_terminal else None
    return asyncio.run(_send(args, world, OutcomeRecorder(Narrator(terminal), hide=True), shown))


async def _send(args: Namespace, world: CommandEnvironment, interface: OutcomeRecorder, shown: FrontEnd | None) -> int:
    name = name_of(args.name)
    gate = GatedInterface(interface)
    settings = settings_of(args, world)
    async with agents_of(args, world) as system, owning(args, system, name, settings, gate.on_records) as agent:
        gate.opened(args, born=agent.opened.born)
        preview = None if shown is None else partial(shown.preview, name=name)
        answer = agent.send(_input(args, system, name), event_id=args.id, preview=preview)
        await answer
    given_up = interface.given_up()
    for text in given_up.values():
        complain(text)
    return int(answer.value.turn in given_up)


def _input(args: Namespace, system: AgentSystem, name: str) -> Event:
    text = checked(args.text or "")
    match args.kind:
        case "system":
            return SystemAlert(text=text, source="manual")
        case "event":
            return SystemAlert(text=text, source="user_event")
        case "login":
            return UserLogin(text=text, last_login=_last_login(system, name, args.id))
        case "heartbeat":
            return Heartbeat(text=text, reason="manual")
        case _:
            return UserMessage(text=text, name=args.who)


def checked(text: str) -> str:
    """`text`, if it can be written. Raises BadInput, which names the first byte that was no text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), error.start + 1
        what = f"the byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "half of a character"
        raise BadInput(
            f"The text is not UTF-8: it holds {what} in the place of character {place}. It was not taken."
        ) from error
    return text


def _last_login(system: AgentSystem, name: str, event_id: str | None) -> int | None:
    """When the user logged in before the login `event_id` (or before now): microseconds UTC."""
    last = None
    for record in newest_first(system.store.reader(name), name):
        if record.event_id == event_id:
            last = None
        elif record.type == "user_login" and last is None:
            last = record.recorded_at
            if event_id is None:
                break
    return last


def newest_first(reader: LogReader, name: str) -> Iterator[Record]:
    """The records of a stream from its head back to its beginning, read a few at a time."""
    last = reader.head(name).seq
    while last:
        first = max(1, last - BACKWARD_RECORDS + 1)
        yield from reversed(list(reader.read(name, first, last)))
        last = first - 1

"""`everlog send`: append one input, which is durable before anything else happens, and print what the agent does.

Called by `cli.command_run`. Only records that follow from the input are printed, not those of the agent's creation.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent_system import AgentSystem
from everlog.actors.formats.reply_preview import Preview
from everlog.events import (
    Event,
    Heartbeat,
    MessageSent,
    Record,
    SystemAlert,
    TurnAbandoned,
    UserLogin,
    UserMessage,
    time_of,
)
from everlog.interfaces.common.agent_defaults import is_new_agent
from everlog.interfaces.common.bootstrap import agents_of, opened_agent, settings_of, warn_of_unused
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED, SILENT
from everlog.interfaces.common.front_end import CommandEnvironment, FrontEnd
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.newest_records import newest_first
from everlog.interfaces.output.json_shapes import JsonLines
from everlog.interfaces.output.narrator import Narrator, abandon_code, abandon_reasons, silence
from everlog.interfaces.talk.asked_agents import asks, is_of_group, until_answered
from everlog.interfaces.talk.waiting_notice import WaitingNotice, endpoint_of
from everlog.store import name_of

AHEAD_US_MAX = 86_400_000_000
"""Microseconds that the time inside an --id may be ahead of the clock, inclusive."""


NEED_TEXT = ("user", "system", "event")
"""Roles whose input needs a text."""


def send(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `send`."""
    _use_default_agent(args, world)
    if args.text == "-":
        args.text = sys.stdin.read().rstrip("\r\n")
    if not (args.text or "").strip() and args.role in NEED_TEXT:
        args.fail(f"TEXT is missing: --role {args.role} needs a text")
    if args.id and (time_of(args.id) or 0) > world.clock.now() + AHEAD_US_MAX:
        args.fail(f"--id {args.id}: the time in it is more than a day ahead of the clock; generate a new id")
    if args.json:
        return asyncio.run(_send(args, world, JsonLines(sys.stdout).on_records, None))
    from everlog.interfaces.output.terminal_output import TerminalFrontEnd, console

    terminal = TerminalFrontEnd(out := console(), verbose=args.verbose)
    shown = terminal if out.is_terminal else None
    narrator = Narrator(terminal, leave_out={TurnAbandoned.kind})  # the reason is printed on stderr
    return asyncio.run(_send(args, world, narrator.on_records, shown))


def _use_default_agent(args: Namespace, world: CommandEnvironment) -> None:
    """Take a single word that names no agent as the text for the agent of the files of defaults, if they name one."""
    agent = args.defaults.of("agent")
    if agent and args.text is None and args.role in NEED_TEXT and is_new_agent(args, world):
        args.name, args.text = agent, args.name


async def _send(args: Namespace, world: CommandEnvironment, on_commit: CommitListener, shown: FrontEnd | None) -> int:
    name = name_of(args.name)
    settings = settings_of(args, world)
    async with agents_of(args, world) as system, opened_agent(args, system, name, settings) as agent:
        warn_of_unused(args, agent)
        agent.notify(on_commit)  # only now: the records of the agent's creation are not part of the answer
        waiting = WaitingNotice(system, name, world, endpoint_of(args))

        def show_preview(preview: Preview) -> None:
            waiting.heard(preview)
            if shown is not None:
                shown.preview(preview, name)

        preview = None if shown is None else show_preview
        answer = agent.send(_input(args, system, name), event_id=args.id, preview=preview)
        records = [record async for record in waiting.over(answer)]
    later: Sequence[Record] = ()
    if asks(records) or is_of_group(records):
        later = await until_answered(args, world, records, on_commit)
        records += later
    why = abandon_reasons(records)
    for turn, text in why.items():
        complain(text, abandon_code(records, turn))
    if answer.value.turn in why:
        return FAILED
    answered = any(record.type == MessageSent.kind for record in later)
    if args.role == "user" and not answered and (unsaid := silence(records, answer.value.turn)):
        complain(f"{name}: {unsaid}")
        return SILENT
    return 0


def _input(args: Namespace, system: AgentSystem, name: str) -> Event:
    text = check_text(args.text or "")
    match args.role:
        case "system":
            return SystemAlert(text=text, source="manual")
        case "event":
            return SystemAlert(text=text, source="user_event")
        case "login":
            return UserLogin(text=text, last_login=_last_login(system, name, args.id))
        case "heartbeat":
            return Heartbeat(text=text, reason="manual")
        case _:
            return UserMessage(text=text, name=args.speaker)


def _last_login(system: AgentSystem, name: str, event_id: str | None) -> int | None:
    """Return the time of the last login before the login `event_id` (or before now), microseconds UTC, or None."""
    last = None
    for record in newest_first(system.store.reader(name), name):
        if record.event_id == event_id:
            last = None
        elif record.type == "user_login" and last is None:
            last = record.recorded_at
            if event_id is None:
                break
    return last

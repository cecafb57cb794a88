"""`everlog approvals`, `everlog approve` and `everlog refuse`: list the calls that wait for a person, and decide them.

Called by `cli.command_run`. A wrong name must create neither a store nor an agent.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent_ref import AgentRef
from everlog.actors.memory.fleet_sql import fleet_views
from everlog.actors.reports.waiting_calls import list_approvals
from everlog.actors.runtime import Run
from everlog.events import TurnAbandoned
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import complain, escape_line, sanitize
from everlog.interfaces.common.exits import FAILED
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.open_store import store_of, without_take_over
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.json_shapes import JsonLines
from everlog.interfaces.output.narrator import Narrator, abandon_code, abandon_reasons, approve_command
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.wire.approvals import ApprovalPage, ApprovalShape, shape_of
from everlog.store import name_of

Decider = Callable[[AgentRef], Run]
"""Decides a call of an agent, and returns the run that follows."""


def approvals(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `approvals`."""
    rows = _listed(args, world)
    if args.json:
        print(json_shapes.line(msgspec.to_builtins(rows)))
        return 0
    now = world.clock.now()
    for row in rows:
        print(sanitize(f"{row.agent}  {row.seq}  {call_text(row.function, row.arguments)}"))
        if row.question:
            print(sanitize(f"    asks: {one_line(row.question)}"))
        print(sanitize(f"    {_state(row, now)}"))
    if not rows:
        print("No call waits for an approval." if not args.decided else "No call has asked for an approval.")
    elif any(row.decision == "waiting" for row in rows):
        one = next(row for row in rows if row.decision == "waiting")
        decide = approve_command(one.agent, one.seq, one.arguments if one.question else "")
        print(escape_line(f"Decide with `{decide}`, or `everlog refuse ...`."))
    return 0


def _listed(args: Namespace, world: CommandEnvironment) -> Sequence[ApprovalShape]:
    server, name = server_of(args), name_of(args.name) if args.name else ""
    if server is not None:
        given = {"agent": name} if name else {}
        return server.answer("/approvals", ApprovalPage, decided=str(args.decided).lower(), **given).approvals
    if name:
        with open_view(system_of(args, world), name, notify=False):  # a wrong name is an error, and no empty list
            pass
    with fleet_views(store_of(args, world), agent=name or None) as (views, _):
        return [shape_of(row, row["agent_id"]) for row in list_approvals(views, decided=args.decided)]


def call_text(function: str, arguments: str) -> str:
    """Return a call for people, such as `order(item="tea", pieces=2)`, with exactly the arguments that would run."""
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        given = None
    if not isinstance(given, Mapping):
        return f"{function}({arguments})"
    shown = ", ".join(f"{key}={_value(value)}" for key, value in given.items() if key != "request_heartbeat")
    return f"{function}({shown})"


def _value(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _state(row: ApprovalShape, now: int) -> str:
    """Return the state of a call in words."""
    if row.decision == "waiting":
        waited = time_text.span(max(0, now - time_text.since_epoch(row.asked_at)) // 1_000_000)
        until = f", until {time_text.clock(time_text.since_epoch(row.expires_at), 'UTC')}" if row.expires_at else ""
        return f"waits since {waited}{until}"
    when = f" at {time_text.clock(time_text.since_epoch(row.decided_at), 'UTC')}" if row.decided_at else ""
    other = f", with {row.edited}" if row.edited else ""
    return f"{row.decision}{when}{other}{': ' + row.reason if row.reason else ''}"


def approve(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `approve`."""
    arguments: Any = None
    if args.arguments is not None:
        try:
            arguments = msgspec.json.decode(args.arguments)
        except msgspec.DecodeError as error:
            args.fail(f'--arguments is no JSON ({error}): write it as \'{{"item": "tea"}}\'')
        if not isinstance(arguments, dict):
            args.fail('--arguments is a JSON object, such as \'{"item": "tea"}\'')
    reason = check_text(args.reason or "")
    return _decide(
        args, world, lambda agent: agent.approve(args.seq, arguments=arguments, reason=reason, always=args.always)
    )


def refuse(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `refuse`."""
    reason = check_text(args.reason or "")
    return _decide(args, world, lambda agent: agent.refuse(args.seq, reason))


def _decide(args: Namespace, world: CommandEnvironment, decided: Decider) -> int:
    """Decide a call, and print what the agent does then."""
    name = name_of(args.name)
    with open_view(system_of(args, world), name, notify=False), without_take_over():  # creates no store and no agent
        return asyncio.run(_decided(args, world, name, decided))


async def _decided(args: Namespace, world: CommandEnvironment, name: str, decided: Decider) -> int:
    from everlog.interfaces.output.terminal_output import TerminalFrontEnd, console

    shown = JsonLines(sys.stdout) if args.json else Narrator(
        TerminalFrontEnd(console(), verbose=True), leave_out={TurnAbandoned.kind}
    )  # fmt: skip
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command=f"everlog {args.command}")
        agent.notify(shown.on_records)
        records = [record async for record in decided(agent)]
    why = abandon_reasons(records)
    for turn, text in why.items():
        complain(text, abandon_code(records, turn))
    return FAILED if why else 0

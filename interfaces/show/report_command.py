"""`everlog report`: figures of the whole fleet, in the terminal or as one HTML page.

Called by `cli.command_run`.
"""

import os
from argparse import Namespace
from pathlib import Path

import msgspec

from everlog.actors.gateway.gateway_limits import all_prices, limits_from
from everlog.actors.reports.fleet_figures import FleetFigures, ReportScope, figures
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import time_of, time_of_option
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show.sql_answer import (
    check_memory_of_server,
    open_output,
    open_views,
    print_position,
    tell_left_out,
)
from everlog.store import FleetPosition


def report(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog report` and return its exit code."""
    scope, server = _scope(args, world), server_of(args)
    if server is not None:
        from everlog.interfaces.wire.sql import ReportShape

        check_memory_of_server(args)
        until = time_of_option(args, world)
        answer = server.answer(
            "/report", ReportShape, since=_iso(scope.first), until=_iso(scope.last), by=args.by, agent=args.agent,
            as_of=_iso(until),
            skip_damaged="true" if args.skip_damaged else None,
        )  # fmt: skip
        tell_left_out(answer.left_out)
        _show(args, scope, msgspec.convert(answer.figures, FleetFigures), answer)
        return int(bool(answer.left_out))
    currency = all_prices(limits_from(os.environ)).currency
    at = world.clock.now()
    with open_views(args, world) as (views, position):
        _show(args, scope, figures(views, currency, scope, args.by), position.covered(at))
    return int(bool(position.left_out))


def _show(args: Namespace, scope: ReportScope, found: FleetFigures, position: FleetPosition) -> None:
    """Print the figures, or write them to the file of --html. `position`: of the logs that they are of."""
    at = time_text.since_epoch(position.as_of)
    if args.html is not None:
        from everlog.interfaces.show import report_html

        page = report_html.page(found, of=time_text.clock(at), records=position.records, times=_times(scope))
        with open_output(args, Path(args.html), "--html") as out:
            out.write(page.encode())
    if args.json:
        limits = {"since": _iso(scope.first), "until": _iso(scope.last)}
        shape = {"as_of": time_text.iso(at), "records": position.records, **limits, **msgspec.to_builtins(found)}
        print(json_shapes.line(shape))
    elif args.html is None:
        from everlog.interfaces.output import show_pages
        from everlog.interfaces.show import report_terminal

        show_pages.show(report_terminal.page(found, _times(scope)))
    if not args.json:
        print_position(position, every=False)


def _scope(args: Namespace, world: CommandEnvironment) -> ReportScope:
    """Return the times of --since and --until. Raises BadInput."""
    scope = ReportScope(time_of(args.since, "--since", world), time_of(args.until, "--until", world))
    if scope.first is not None and scope.last is not None and scope.first > scope.last:
        raise BadInput(f"--since {args.since} is after --until {args.until}: no time is between them. Swap the two.")
    return scope


def _iso(at: int | None) -> str | None:
    return None if at is None else time_text.iso(at)


def _times(scope: ReportScope) -> str:
    """Return the limits for people; empty without limits."""
    since = "" if scope.first is None else f"since {time_text.clock(scope.first)}"
    until = "" if scope.last is None else f"until {time_text.clock(scope.last)}"
    return " ".join(part for part in (since, until) if part)

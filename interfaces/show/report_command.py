"""`everlog report`: figures of the whole fleet, in the terminal or as one HTML page.

Called by `cli.command_run`.
"""

import os
from argparse import Namespace
from pathlib import Path

import msgspec

from everlog.actors.gateway.gateway_limits import all_prices, limits_from
from everlog.actors.reports.fleet_figures import figures
from everlog.interfaces.common import time_text
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show.sql_command import open_output, open_views, print_position


def report(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog report` and return its exit code."""
    currency = all_prices(limits_from(os.environ)).currency
    at = world.clock.now()
    with open_views(args, world) as (views, position):
        found = figures(views, currency)
        left_out = bool(position.left_out)
        if args.html is not None:
            from everlog.interfaces.show import report_html

            page = report_html.page(found, of=time_text.clock(at), records=position.records)
            with open_output(args, Path(args.html), "--html") as out:
                out.write(page.encode())
        if args.json:
            figures_shape = msgspec.to_builtins(found)
            print(json_shapes.line({"as_of": time_text.iso(at), "records": position.records, **figures_shape}))
            return int(left_out)
        if args.html is None:
            from everlog.interfaces.output import show_pages
            from everlog.interfaces.show import report_terminal

            show_pages.show(report_terminal.page(found))
        print_position(position, at, every=False)
    return int(left_out)

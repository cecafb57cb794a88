"""The command that tells what models cost: its arguments and what the help says of it. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, json

_COST = """\
Tokens and money by day (UTC) and model, at the prices of now, cached tokens at
theirs. Of one agent also what its budget leaves it today. Prices come from
models.toml, from EVERLOG_GATEWAY_PRICE_IN and _OUT, or from the list that
everlog ships; `everlog sql "FROM prices"` shows them."""


def _costing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent (all together)")
    parser.add_argument(
        "--days", metavar="N", type=argument_values.count, default=7, help="the last N days, with today (7)"
    )


COMMANDS = (
    CommandSpec(
        "cost",
        "show.cost_command:cost",
        "tell what models cost, by day and model",
        "everlog cost sam --days 30",
        (_costing, json),
        _COST,
    ),
)

"""What models cost, as a page for people."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.interfaces.output.json_shapes import JsonObject
from everlog.interfaces.output.terminal_output import one_line


def page(shape: JsonObject) -> RenderableType:
    """A row for each day and model, the sum, and what is left of the budget."""
    whose = "all agents" if shape["agent"] is None else one_line(shape["agent"])
    head = Text.assemble((whose, "bold"), (f" · what models cost · {shape['today']} UTC", "dim"))
    if not shape["rows"]:
        return Group(head, Text("No model was paid for in these days.", "dim italic"))
    table = Table("day", "model", box=None, pad_edge=False)
    for column in ("calls", "requests", "of it cached", "replies", shape["currency"]):
        table.add_column(column, justify="right")
    for row in shape["rows"]:
        table.add_row(row["day"], one_line(row["model"]) or "(not named)", *_figures(row))
    table.add_section()
    table.add_row("all", "", *_figures(shape["total"]))
    return Group(head, Text(""), table, *[Text(line) for line in _notes(shape)])


def _figures(row: dict[str, Any]) -> list[str]:
    cost = "?" if row["cost"] is None else f"{row['cost']:,.4f}{'+' if row['unpriced'] else ''}"
    keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
    return [*(f"{row[key]:,}" for key in keys), cost]


def _notes(shape: JsonObject) -> list[str]:
    notes = []
    budget, today = shape["budget"] or {}, shape["spent_today"]
    if budget.get("tokens"):
        notes.append(f"today: {today['tokens']:,} of {budget['tokens']:,} tokens that it may use up on a day")
    if budget.get("cost"):
        spent = today["cost"] or 0
        notes.append(f"today: {spent:,.4f} of {budget['cost']:,.4f} {shape['currency']} that it may cost on a day")
    if shape["total"]["unpriced"]:
        notes.append("?: no price is known, and it is in no sum; models.toml can say one")
    return notes

"""`everlog tools`: the functions of an agent, where they come from, their effects, and which of them wait."""

from pathlib import Path

import pytest

from tests.support.cli.command_line import Line

TOOLS = """
import everlog

@everlog.tool(effect="read_only")
def price(item: str) -> str:
    \"\"\"Look up a price.

    Args:
        item: The thing.
    \"\"\"
    return "3"
"""


@pytest.mark.beside_store("a function is given to one command, and a server has its own")
def test_each_function_is_listed_with_its_effect_and_rules(cli: Line, tmp_path: Path) -> None:
    """Functions of everlog have their effects; one of the user has it only with --tools; rules say what waits."""
    file = tmp_path / "mine.py"
    file.write_text(TOOLS)
    cli.ok("create", "sam", "--tools", str(file))
    rules = ("--approval", "ask core_memory_*", "--approval", "refuse price item=*gold*")
    cli.ok("configure", "sam", *rules, "--tools", str(file))
    rows = {row["name"]: row for row in cli.json("tools", "sam", "--tools", str(file))}
    assert (rows["price"]["source"], rows["price"]["effect"]) == ("yours", "read_only")
    assert (rows["price"]["approval"], rows["price"]["by_argument"]) == ("allow", True)
    assert (rows["core_memory_append"]["approval"], rows["core_memory_append"]["effect"]) == ("ask", "pure")
    assert rows["send_message"]["source"] == "everlog"
    assert next(row for row in cli.json("tools", "sam") if row["name"] == "price")["effect"] is None
    shown = cli.ok("tools", "sam")
    assert "waits for a person" in shown
    assert "unknown: give --tools" in shown


def test_a_wrong_name_is_an_error(cli: Line) -> None:
    """No agent is made."""
    cli.ok("create", "sam")
    assert "'ann'" in cli.fails("tools", "ann")

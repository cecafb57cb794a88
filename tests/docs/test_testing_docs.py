"""The examples of docs/how_to/test_your_agents.md are one file of tests, and all of them pass."""

from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "test_your_agents.md"


def examples() -> dict[str, Any]:
    """Return the test functions of the page, by name. A line of code has the number that it has in the page."""
    lines, inside = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            line = ""
        lines.append(line if inside else "")
    names: dict[str, Any] = {"__name__": "test_your_agents"}
    exec(compile("\n".join(lines), str(PAGE), "exec"), names)
    return {name: value for name, value in names.items() if name.startswith("test_")}


@pytest.mark.parametrize("name", list(examples()))
def test_the_example_passes(name: str) -> None:
    """Each test of the page passes."""
    examples()[name]()


def test_the_page_has_an_example_of_each_kind() -> None:
    """No example of the page is left out: each heading with code has a test, and there are at least a dozen."""
    assert len(examples()) >= 12
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("\ndef test_") == len(examples())

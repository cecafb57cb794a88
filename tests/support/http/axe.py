"""axe-core in a page of a test: a program that finds barriers. The extra `browser` brings it; EVERLOG_AXE names the
file of another version.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CURE = "no axe-core: pip install -e '.[browser]', or set EVERLOG_AXE to the file axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = ("color-contrast",)
"""Rules about what a theme changes."""
_RUN = """async ([type, values]) => {
  const found = await axe.run(document, { runOnly: { type, values }, resultTypes: ["violations"] });
  return { checked: found.passes.length, broken: found.violations.map((one) => ({
    rule: one.id, help: one.help, places: one.nodes.slice(0, 4).map((node) => node.html.slice(0, 160)) })) };
}"""


def axe_source() -> str:
    """Return the program. Skips the test if there is none; fails if EVERLOG_BROWSER_REQUIRED is set."""
    packed = find_spec("axe_playwright_python")
    beside = [Path(folder) for folder in (packed.submodule_search_locations or () if packed else ())]
    named = os.environ.get("EVERLOG_AXE")
    for path in [Path(named)] if named else [folder / "axe.min.js" for folder in beside]:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    if os.environ.get("EVERLOG_BROWSER_REQUIRED"):
        pytest.fail(CURE)
    pytest.skip(CURE)


async def barriers(page: Any, source: str, rules: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the rules that a page breaks, each with some places. Fails if no rule was checked at all.

    `rules`: names of the only rules to check.
    """
    await page.evaluate(source)
    found = await page.evaluate(_RUN, ["rule", [*rules]] if rules else ["tag", RULES])
    assert found["checked"] > 0
    broken: list[dict[str, Any]] = found["broken"]
    return broken

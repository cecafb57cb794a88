"""axe-core in a page of a test: a program that finds barriers. EVERLOG_AXE names its file, which is not ours."""

import os
from pathlib import Path
from typing import Any

import pytest

CURE = "no axe-core: npm pack axe-core@4.14.1, unpack it, and set EVERLOG_AXE to its package/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """async (tags) => {
  const found = await axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] });
  return { checked: found.passes.length, broken: found.violations.map((one) => ({
    rule: one.id, help: one.help, places: one.nodes.slice(0, 4).map((node) => node.html.slice(0, 160)) })) };
}"""


def axe_source() -> str:
    """Return the program. Skips the test if EVERLOG_AXE names no file; fails if EVERLOG_BROWSER_REQUIRED is set."""
    named = os.environ.get("EVERLOG_AXE", "")
    if named and Path(named).is_file():
        return Path(named).read_text(encoding="utf-8")
    if os.environ.get("EVERLOG_BROWSER_REQUIRED"):
        pytest.fail(CURE)
    pytest.skip(CURE)


async def barriers(page: Any, source: str) -> list[dict[str, Any]]:
    """Return the rules that a page breaks, each with some places. Fails if no rule was checked at all."""
    await page.evaluate(source)
    found = await page.evaluate(_RUN, RULES)
    assert found["checked"] > 0
    broken: list[dict[str, Any]] = found["broken"]
    return broken

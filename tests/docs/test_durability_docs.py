"""docs/durability.md names the tests that prove each promise: the tests exist, and no promise is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "durability.md"
PROMISES = range(1, 11)


def named() -> set[str]:
    """Return the tests that the page names."""
    return set(re.findall(r"\btest_\w+", PAGE.read_text(encoding="utf-8")))


def test_every_test_that_the_page_names_exists() -> None:
    """Each name of a test in the page is the name of a test in the tree, so a reader can find the test."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    found = {name for source in sources for name in re.findall(r"^ *def (test_\w+)", source, re.MULTILINE)}
    assert named() - found == set(), "rename them in the page, or name there the tests that prove the promise now"


def test_every_promise_is_stated_and_proved() -> None:
    """Each of P1 to P10 has its paragraph in the page, and the page names at least one test with the number of the
    promise.
    """
    text = PAGE.read_text(encoding="utf-8")
    for number in PROMISES:
        assert f"**P{number}. " in text
        assert any(name.startswith(f"test_p{number}_") for name in named()), f"P{number} names no test"

"""Rules of plain prose that a program can check."""

import pytest

from tests.tidy import prose_rules
from tests.tidy.parsed_source import ROOT, everything, report

pytestmark = pytest.mark.xdist_group("tidy")
PAGES = ["README.md", "CONTRIBUTING.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md")))]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    """No docstring begins with What, Whether, Who, How, Where, Why, Which, That, Those or When."""
    cure = "begin with an imperative verb and its object; of a value: with a noun (CONTRIBUTING.md, Words)"
    report(list(prose_rules.riddles(everything())), cure)


def test_docstrings_and_comments_use_plain_words() -> None:
    """No docstring or comment has a phrase for which there is a plain word."""
    cure = "say from scratch, recorded, unload, continue, or name the caller, process or user that is meant"
    report(list(prose_rules.archaic(everything())), cure)


def test_pages_use_plain_words() -> None:
    """No page for people has such a phrase either."""
    cure = "say from scratch, recorded, unload, continue, or name the caller, process or user that is meant"
    problems = [line for page in PAGES for line in prose_rules.archaic_lines(page, (ROOT / page).read_text("utf-8"))]
    report(problems, cure)

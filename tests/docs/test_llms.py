"""llms.txt: the list of pages for assistants."""

import re
from pathlib import Path

from docs import make_llms

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "llms.txt").read_text(encoding="utf-8")


def test_the_file_is_made_from_the_pages() -> None:
    """llms.txt equals the output of `python -m docs.make_llms`."""
    assert make_llms.text() == TEXT, "run `python -m docs.make_llms`"


def test_every_page_is_listed_once() -> None:
    """Each page of docs is a link with a title, and each link leads to a file."""
    links = re.findall(r"^- \[.+?\]\((\S+?)\)(?:: \S.*)?$", TEXT, re.MULTILINE)
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(links) == sorted(["README.md", *pages])


def test_the_form_is_that_of_llmstxt_org() -> None:
    """The file has a title, a summary as a quotation, text, and sections of links."""
    title, summary, about, *sections = TEXT.split("\n\n")
    assert title == "# everlog"
    assert summary.startswith("> ") and "\n" not in summary
    assert not about.startswith(("#", "-"))
    headings, lists = sections[::2], sections[1::2]
    assert all(re.fullmatch(r"## .+", heading) for heading in headings)
    assert all(line.startswith("- [") for links in lists for line in links.strip().splitlines())

"""Make llms.txt, the list of pages for assistants (https://llmstxt.org), from the pages: `python -m docs.make_llms`.

The title of a link is the first heading of the page, and the note is the first sentence below it.
"""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "llms.txt"

SUMMARY = (
    "Agents with memory whose whole state is an append-only log of typed events: MemGPT's virtual context management "
    "as an event-sourced actor system in Python."
)
ABOUT = (
    "Every message, model reply, function result and memory edit is an event on disk before anything else happens. "
    "Context window, core memory and search are projections of the events, so that an agent survives any crash, can "
    "be read as of any moment, forked, rerun with another model, verified byte for byte, and asked with SQL together "
    "with thousands of others. The command is `everlog`, the Python package `import everlog`; Python 3.11 or later. "
    "`everlog explain --all` prints the page of every error, and `everlog COMMAND --help` every option."
)

SECTIONS = {
    "tutorial": "Tutorial",
    "how_to": "How-to guides",
    ".": "Documentation",
    "reference": "Reference",
    "explanation": "Explanation",
    "reference/errors": "Errors",
    "decisions": "Optional",
}
"""Sections by folder of `docs`, in the order of the file. Any other folder belongs to the folder above it."""

README = "- [README](README.md): What everlog is, and its first two commands."

_SKIPPED = ("#", "|", "```", "- ", "> ", "<", "![", "1. ")


def text() -> str:
    """Return the text of llms.txt."""
    sections: dict[str, list[str]] = defaultdict(list, {SECTIONS["."]: [README]})
    for page in sorted((ROOT / "docs").rglob("*.md")):
        sections[_section(page)].append(_link(page))
    lists = [f"## {name}\n\n{chr(10).join(sections[name])}" for name in SECTIONS.values() if sections[name]]
    return "\n\n".join(["# everlog", f"> {SUMMARY}", ABOUT, *lists]) + "\n"


def _section(page: Path) -> str:
    """Return the section of a page: that of the nearest folder that has one."""
    folder = page.parent.relative_to(ROOT / "docs")
    if "decisions" in folder.parts:
        return SECTIONS["decisions"]
    return next(SECTIONS[str(place)] for place in (folder, *folder.parents) if str(place) in SECTIONS)


def _link(page: Path) -> str:
    """Return the line of a page: title, address and note."""
    words = page.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", words, re.MULTILINE)
    assert title is not None, f"{page} has no heading"
    note = _first_sentence(words[title.end() :])
    return f"- [{title[1]}]({page.relative_to(ROOT).as_posix()}){f': {note}' if note else ''}"


def _first_sentence(words: str) -> str:
    """Return the first sentence of three words or more of the first paragraph that has one; empty if none has."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", words)]
    return next((note for part in parts if not part.startswith(_SKIPPED) and (note := _note(part))), "")


def _note(paragraph: str) -> str:
    """Return the first sentence of three words or more of a paragraph, without links; empty if there is none."""
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
    sentences = re.split(r"(?<=[.!?:]) (?=[A-Z`\d\"])", plain)
    return next((one.rstrip(":") for one in sentences if one.count(" ") > 1), "")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

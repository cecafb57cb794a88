"""Run the consoles of a page, as a reader would, and compare what they print with what the page shows.

A console is a code block of the kind `console`. A line of it that begins with `$ ` is a command, and the lines up to
the next command are its output. All consoles of a page run in one empty folder, with one empty store, in their order.
These commands are understood:

- `everlog ...`, alone, or after `printf '...' |`, which is its input;
- `python FILE.py ...`, a program that the page said to save;
- `cat FILE`, `mkdir NAME`, `rm NAME` and `printf '...' > FILE`.

A code block after a line that ends with "save ... as `FILE`:" is written to that file. In the output a line `...`
stands for any number of lines; times, ids, durations and sizes may differ. A block after `<!-- not run: REASON -->` is
not run.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from everlog.interfaces.cli.main import main

WIDTH = "100"
"""Columns of the terminal that the consoles of the pages show."""

_BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n+)?(?:(?i:save)[^\n]*? as `(?P<file>[^`]+)`:\n\n)?"
    r"(?P<indent> *)```(?P<kind>\w+)\n(?P<body>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_SAME = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ,]+\d\d:\d\d(?::\d\d)?(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)?(?: UTC|Z)?\b"), "TIME"),
    (re.compile(r"\bjust now\b|\b\d+ \w+ ago\b"), "AGO"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "HASH"),
    (re.compile(r"\b[\d.,]+ ?(?:ms|s|seconds?|bytes|kB|KiB|MB|MiB|[KMG]?B)\b"), "SIZE"),
    (re.compile(r"\d+\.\d+"), "NUMBER"),
    (re.compile(r"[\s─━-]+"), " "),
)
"""What may differ between two runs, and the word that stands for it."""


@dataclass
class Step:
    """One command of a console, and where its output stands in the page."""

    command: str
    shown: str
    start: int
    """Position of the output in the text of the page."""
    end: int
    indent: str


def alike(text: str) -> str:
    """Return output in which whatever may differ between two runs is the same: times, ids, sizes, line breaks."""
    for pattern, word in _SAME:
        text = pattern.sub(word, text)
    return text.strip()


def matches(shown: str, printed: str) -> bool:
    """Return True if the output that a page shows is what was printed, a line `...` being any lines."""
    parts = re.split(r"^\s*\.\.\.\s*$", shown, flags=re.MULTILINE)
    pattern = r".*".join(re.escape(alike(part)) for part in parts)
    return re.fullmatch(pattern, alike(printed), re.DOTALL) is not None


def steps(page: str) -> Iterator[Step | tuple[str, str]]:
    """Yield what a page does, in its order: commands, and (file, text) for what it says to save."""
    for block in _BLOCK.finditer(page):
        if block["skip"]:
            continue
        if block["file"]:
            yield block["file"], textwrap.dedent(block["body"])
        elif block["kind"] == "console":
            yield from _commands(block)


def _commands(block: "re.Match[str]") -> Iterator[Step]:
    at = block.start("body")
    found: list[Step] = []
    for line in block["body"].splitlines(keepends=True):
        if line.startswith(f"{block['indent']}$ "):
            found.append(Step(line.strip()[2:], "", at + len(line), at + len(line), block["indent"]))
        elif found and not found[-1].shown and found[-1].command.endswith("\\"):
            found[-1].command = f"{found[-1].command[:-1]}{line.strip()}"
            found[-1].start = found[-1].end = at + len(line)
        elif found:
            found[-1].shown += line.removeprefix(block["indent"])
            found[-1].end = at + len(line)
        at += len(line)
    yield from found


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[None]:
    """Stand in an empty folder as a new user does: an empty store, no key, no cluster, a terminal of 100 columns."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERLOG_", "OPENAI_", "RAY_"))}
    before, here = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(kept)
    os.environ.update(EVERLOG_STORE=str(folder / "store"), EVERLOG_RUNTIME="local", COLUMNS=WIDTH, HOME=str(folder))
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def run(command: str) -> str:
    """Run one command of a console in this process. Return what it printed on stdout and stderr."""
    words = shlex.split(command.split("  #", maxsplit=1)[0])
    said = ""
    if "|" in words:
        bar = words.index("|")
        said, words = _printf(words[:bar]), words[bar + 1 :]
    into = words[words.index(">") + 1] if ">" in words else ""
    words = words[: words.index(">")] if into else words
    out = io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(said)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            _run(words, out)
    finally:
        sys.stdin = stdin
    if into:
        Path(into).write_text(out.getvalue(), encoding="utf-8")
        return ""
    return out.getvalue()


def _run(words: list[str], out: io.StringIO) -> None:
    name, *rest = words
    if name == "everlog":
        main(rest)
    elif name == "python":
        argv, sys.argv = sys.argv, rest
        try:
            runpy.run_path(rest[0], run_name="__main__")
        finally:
            sys.argv = argv
    elif name == "cat":
        out.write(Path(rest[0]).read_text(encoding="utf-8"))
    elif name == "mkdir":
        Path(rest[-1]).mkdir(parents=True)
    elif name == "rm":
        shutil.rmtree(rest[-1]) if Path(rest[-1]).is_dir() else Path(rest[-1]).unlink()
    elif name == "printf":
        out.write(_printf(words))
    else:
        raise ValueError(f"a console of a page can not run {name!r}: docs/make/consoles.py has what it can run")


def _printf(words: list[str]) -> str:
    if words[0] != "printf" or len(words) != 2:
        raise ValueError(f"the input of a command has to be printf with one text, not {words}")
    return words[1].replace("\\n", "\n")


def differences(page: str, folder: Path) -> Iterator[tuple[Step, str]]:
    """Run a page in `folder`. Yield each command whose output is not what the page shows, with what it printed."""
    with reader(folder):
        for step in steps(page):
            if isinstance(step, tuple):
                name, text = step
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(text, encoding="utf-8")
            elif not matches(step.shown, printed := run(step.command)):
                yield step, printed


def rewritten(page: str, folder: Path) -> str:
    """Run a page in `folder`. Return the page with the output of each command whose output differs replaced."""
    for step, printed in reversed(list(differences(page, folder))):
        lines = [f"{step.indent}{line.rstrip()}".rstrip() for line in shortened(step.shown, printed)]
        page = page[: step.start] + "".join(f"{line}\n" for line in lines) + page[step.end :]
    return page


def shortened(shown: str, printed: str) -> list[str]:
    """Return the lines of an output, cut where the page cuts them: as many before `...`, and as many after, as now."""
    lines, old = printed.strip("\n").splitlines(), shown.strip("\n").splitlines()
    if "..." not in old:
        return lines
    before, after = old.index("..."), len(old) - 1 - old[::-1].index("...")
    tail = lines[len(lines) - (len(old) - 1 - after) :]
    return [*lines[:before], "...", *tail]

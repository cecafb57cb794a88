"""Make the pages about errors from `interfaces/explain`: `python -m docs.make_errors`.

Every example is run in an empty folder, and the page shows the message of the error that the example raised.
"""

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from everlog.events import EverlogError
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.error_output import MORE
from everlog.interfaces.explain.error_page import SHELL, ErrorPage
from everlog.interfaces.explain.explain_command import MESSAGES, PAGES
from everlog.interfaces.explain.explain_command import messages as stored_messages
from everlog.interfaces.explain.page_text import first_sentence

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "docs/reference/errors"

INTRODUCTION = (
    "Every error that everlog raises on purpose is a type below `EverlogError`, and has a page here. The last line of "
    "an error on the command line names the page, and `everlog explain CODE` prints the page without a network. In "
    "Python `error.code` is the name of the page."
)

_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_VARYING = (
    (r"\b(process|pid) \d+", r"\1 4711"),
    (r"\bnode [\w.-]+", "node n1"),
    (r"(?<=store-b )\(\w+\)", "(ext4)"),
    (r"\bat byte [1-9]\d*", "at byte 14000"),
    (r"agent-[0-9a-f]{64}", "agent-e96e02d8"),
    (r"\babout \d+ s\b", "about 1 s"),
)
"""Parts of messages that differ from run to run or from machine to machine, and what the pages show for them."""

_NOT_HERE = ("EVERLOG_", "OPENAI_", "RAY_")


def pages() -> dict[str, str]:
    """Return the text of every page by its path from the root of the project."""
    made = {f"{FOLDER}/{page.code}.md": _page(page, stored_messages()[page.code]) for page in PAGES}
    return {f"{FOLDER}/index.md": _index(), **made}


def raised_by(page: ErrorPage) -> tuple[str, str]:
    """Run the example of a page in an empty folder. Return the code and the message of the error that it ends with."""
    said = io.StringIO()
    with _empty_folder(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        if page.language == "python":
            try:
                exec(compile(page.example, page.code, "exec"), {"__name__": "__main__"})  # noqa: S102 - our own text
            except EverlogError as error:
                return error.code, _settled(str(error), page.example)
            return "", "The example raised nothing."
        for line in page.example.splitlines():
            said.truncate(0)
            said.seek(0)
            main(shlex.split(line.removeprefix(SHELL))[1:])
    message, _, more = said.getvalue().strip().rpartition("\n")
    return more.removeprefix(MORE), _settled(message.removeprefix("everlog: "), page.example)


def messages_file(messages: Mapping[str, str]) -> str:
    """Return the text of the file with the messages of all examples."""
    lines = [f"{code} = {json.dumps(text, ensure_ascii=False)}" for code, text in messages.items()]
    return "\n".join(["# Made by `python -m docs.make_errors`: the message of each example.", "", *lines, ""])


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    """Work in an empty folder, with a store in it and without the settings of the user."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_NOT_HERE):
            del os.environ[name]
    os.environ.update({"EVERLOG_STORE": "store", "EVERLOG_RUNTIME": "local", "EVERLOG_CONFIG": ""})
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _settled(message: str, example: str) -> str:
    """Return the message without what varies. Ids that the example does not name are numbered."""
    found = dict.fromkeys(_ID.findall(message))
    for number, name in enumerate((name for name in found if name not in example), 1):
        message = message.replace(name, f"019b8d2e-0000-7000-8000-{number:012}")
    for pattern, shown in _VARYING:
        message = re.sub(pattern, shown, message)
    return " ".join(message.split())


def _index() -> str:
    lines = [
        "# Errors",
        "",
        INTRODUCTION,
        "",
        "| page | type | what failed |",
        "|---|---|---|",
    ]
    depth = {"": -1}
    for page in PAGES:
        depth[page.name] = depth[page.parent] + 1
        name = f"{'&nbsp;&nbsp;' * depth[page.name]}`{page.name}`"
        lines.append(f"| [{page.code}]({page.code}.md) | {name} | {first_sentence(page.what)} |")
    return "\n".join([*lines, "", "This page and those that it lists are made by `python -m docs.make_errors`.", ""])


def _page(page: ErrorPage, message: str) -> str:
    below = f"Type: `{page.name}`, below `{page.parent}`." if page.parent else f"Type: `{page.name}`."
    parts = [f"# {page.code}", page.what, below, "## Why", _list(page.why), "## How to fix it", _list(page.fix)]
    example = f"```{page.language}\n{page.example.removesuffix(chr(10))}\n```"
    return "\n\n".join([*parts, "## Example", example, f"```text\n{message}\n```"]) + "\n"


def _list(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {item}" for item in items)


def write() -> None:
    """Run every example, and write the messages and the pages."""
    found = {}
    for page in PAGES:
        code, found[page.code] = raised_by(page)
        if page.parent and code != page.code:
            sys.exit(f"the example of {page.code} ended with {code or 'nothing'}: {found[page.code]}")
    MESSAGES.write_text(messages_file(found), encoding="utf-8")
    stored_messages.cache_clear()
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()

"""Rules of prose that a machine can hold: how a docstring begins, and phrases that have to be read twice."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

from tests.tidy.parsed_source import Source

RIDDLE = re.compile(
    r"(What|Whatever|Whether|Who|Whom|Whose|Whoever|How|However|Where|Wherever|Why|Which|That|Those|When|Whenever)\b"
)
"""First words that make a subject of a clause ("What came of it.") or point at a noun that is not there."""

ARCHAIC = re.compile(
    r"\b(anew|of then|whoever|whomever|(lets?|letting) go of|nobody|somebody|everybody|(go|goes|went|going) on)\b",
    re.IGNORECASE,
)
"""Phrases that have a plain word: from scratch, recorded, unload, continue, or the noun that is meant."""

MODEL_TEXT = ("actors/functions/memgpt_functions.py",)
"""Files whose docstrings are the schemas that models get: every request in a log has their bytes, so they stay."""


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring: of the module, classes, functions and attributes."""
    for node in source.nodes:
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for number, statement in enumerate(body):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if number == 0 or isinstance(
                    body[number - 1], ast.Assign | ast.AnnAssign
                ):
                    yield statement.lineno, text


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def riddles(files: Iterable[Source]) -> Iterator[str]:
    """Yield docstrings that begin with a word of RIDDLE."""
    for source in files:
        for line, text in docstrings(source):
            if found := RIDDLE.match(text.strip()):
                yield f"{source.path}:{line} begins with {found[0]}"


def archaic(files: Iterable[Source]) -> Iterator[str]:
    """Yield docstrings and comments with a phrase of ARCHAIC."""
    for source in (source for source in files if source.path not in MODEL_TEXT):
        for line, text in (*docstrings(source), *comments(source)):
            for found in ARCHAIC.finditer(text):
                yield f"{source.path}:{line + text[: found.start()].count(chr(10))} says {found[0].lower()!r}"


def archaic_lines(path: str, text: str) -> Iterator[str]:
    """Yield lines of a page with a phrase of ARCHAIC; rows of a table "before | after" are examples."""
    shown = re.sub(r"\| before \| after \|\n(\|.*\n)+", lambda table: "\n" * table[0].count("\n"), text)
    for number, line in enumerate(shown.splitlines(), 1):
        for found in ARCHAIC.finditer(line):
            yield f"{path}:{number} says {found[0].lower()!r}"

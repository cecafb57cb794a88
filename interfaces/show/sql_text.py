"""Find queries, their ends and their parameters in SQL text, without a database. Pure.

Used by `everlog sql` and its prompt. Quoted texts and comments are passed over, so that a semicolon or a `$name` inside
of them means nothing.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from everlog.events import BadInput

_TOKENS = re.compile(
    r"""(?P<quoted>[eE]'(?:[^'\\]|\\.|'')*(?P<e>'|\Z) | '(?:[^']|'')*(?P<s>'|\Z) | "(?:[^"]|"")*(?P<d>"|\Z)
        | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?P<t>\$(?P=tag)\$|\Z))
    | (?P<comment>--[^\n]* | /\*.*?(?P<c>\*/|\Z))
    | \$(?P<parameter>\w+)
    | (?P<end>;)
    | (?P<word>[^\W\d]\w*)
    """,
    re.DOTALL | re.VERBOSE,
)
_CLOSING = ("e", "s", "d", "t", "c")
"""Groups that are empty if a quotation or a comment has no end."""


class _Token(NamedTuple):
    kind: Literal["quoted", "comment", "parameter", "end"]
    start: int
    stop: int
    is_open: bool
    name: str


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKENS.finditer(text):
        is_open = any(found[group] == "" for group in _CLOSING)
        for kind in ("quoted", "comment", "parameter", "end"):
            if found[kind] is not None:
                yield _Token(kind, found.start(), found.end(), is_open, found[kind])


def queries_of(text: str) -> list[str]:
    """Return the queries that semicolons separate, without those; parts of comments and white space only are left
    out.
    """
    cuts = [-1, *(token.start for token in _tokens(text) if token.kind == "end"), len(text)]
    parts = (text[before + 1 : at] for before, at in itertools.pairwise(cuts))
    return [part.strip() for part in parts if not _is_blank(part)]


def is_ended(text: str) -> bool:
    """Return True if the text ends with a semicolon, and perhaps a comment after it."""
    end = None
    for token in _tokens(text):
        if token.is_open:
            return False
        if token.kind == "end":
            end = token.stop
    return end is not None and _is_blank(text[end:])


def _is_blank(text: str) -> bool:
    rest = list(text)
    for token in _tokens(text):
        if token.kind == "comment":
            rest[token.start : token.stop] = " " * (token.stop - token.start)
    return not "".join(rest).strip()


def with_parameters(query: str, values: Mapping[str, str]) -> str:
    """Return the query with a text literal in place of each `$name`. DuckDB casts a literal to the type that it is
    compared with.

    Raises BadInput for a name that has no value.
    """
    parts, at = [], 0
    for token in _tokens(query):
        if token.kind != "parameter":
            continue
        if token.name not in values:
            raise BadInput(f"The query names ${token.name}, which has no value. Give one: --param {token.name}=VALUE.")
        literal = values[token.name].replace("'", "''")
        parts += [query[at : token.start], f"'{literal}'"]
        at = token.stop
    return "".join([*parts, query[at:]])


def parameters_of(query: str) -> set[str]:
    """Return the names of the parameters in a query."""
    return {token.name for token in _tokens(query) if token.kind == "parameter"}

"""Suggest views, columns and words of SQL for the prompt of `everlog sql`. Pure: the views are an argument."""

import re

from everlog.interfaces.line_editor.completion import Suggestion, beginning_with
from everlog.projections.query_hints import Columns

WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", "LEFT JOIN", "USING", "ON", "AS",
    "AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "IS NULL", "IS NOT NULL", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE",
    "END",
    "DISTINCT", "UNION ALL", "WITH", "DESC", "DESCRIBE", "ALL", "count(", "sum(", "avg(", "min(", "max(", "round(",
    "date_trunc(", "strftime(", "quantile_cont(",
)  # fmt: skip
"""Words and functions that queries of this kind use most."""
COMMANDS = (("\\d", "list the views, or the columns of one"), ("\\?", "help"), ("\\q", "leave"))
"""Commands of the prompt, with their help."""

_COMMAND = re.compile(r"\\\w*|\\\?")
_DESCRIBED = re.compile(r"\\d\s+(\w*)")
_MEMBER = re.compile(r"([^\W\d]\w*)\.(\w*)\Z")
_WORD = re.compile(r"[^\W\d]\w*\Z")
_AFTER_FROM = re.compile(r"\b(?:from|join)\s+\w*\Z", re.IGNORECASE)


def suggestions(before: str, columns: Columns) -> list[Suggestion]:
    """Return what may follow the text before the cursor."""
    views = [(name, "view") for name in columns]
    if found := _DESCRIBED.fullmatch(before):
        return beginning_with(found[1], views)
    if _COMMAND.fullmatch(before):
        return beginning_with(before, COMMANDS)
    if found := _MEMBER.search(before):
        return beginning_with(found[2], columns.get(_view_of(found[1], before, columns), ()))
    word = _WORD.search(before)
    typed = word[0] if word else ""
    if _AFTER_FROM.search(before):
        return beginning_with(typed, views)
    if not typed:
        return []
    words = [(one.lower() if typed.islower() else one, "") for one in WORDS]
    return beginning_with(typed, [*_columns_near(before, columns), *views, *words])


def _view_of(name: str, text: str, columns: Columns) -> str:
    """Return the view that a name before a point means: itself, or that whose alias it is in the text."""
    if name in columns:
        return name
    for view in columns:
        if re.search(rf"\b{view}\s+(?:as\s+)?{re.escape(name)}\b", text, re.IGNORECASE):
            return view
    return ""


def _columns_near(text: str, columns: Columns) -> list[tuple[str, str]]:
    """Return the columns of the views that the text names; of all views if it names none. Each name once."""
    named = [view for view in columns if re.search(rf"\b{view}\b", text, re.IGNORECASE)]
    return list({name: (name, kind) for view in named or columns for name, kind in columns[view]}.values())

"""Add to DuckDB's error about an unknown column or view the name that this store has for it. Pure.

Used by `fleet_views`. DuckDB's own candidates are names that look similar; the ones here mean the same.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

Columns = Mapping[str, Sequence[tuple[str, str]]]
"""Columns of each view: name and type."""

_COLUMN = re.compile(r'(?:Referenced column "(.+?)" not found|does not have a column named "(.+?)")')
_VIEW = re.compile(r"Catalog Error: Table with name (\S+) does not exist!.*")
_UNIT = re.compile(r"_(?:us|ms|s|sec|seconds|millis|micros)\Z")
_A_TIME = re.compile(r".*_(?:at|on|time|active)|time|timestamp|ts|date|datetime|created|updated|when|start|end")

_SAME = {
    "agent": ("agent_id",),
    "agent_name": ("agent_id",),
    "author": ("name", "role"),
    "block": ("label",),
    "body": ("text", "value"),
    "content": ("text", "value"),
    "error": ("text", "failure"),
    "function": ("name",),
    "function_name": ("name",),
    "id": ("agent_id", "event_id", "call_id"),
    "input_tokens": ("prompt_tokens",),
    "latency": ("latency_us", "duration_us"),
    "message": ("text",),
    "model_name": ("model",),
    "output_tokens": ("completion_tokens",),
    "price": ("cost",),
    "result": ("outcome", "text"),
    "sender": ("role", "name"),
    "speaker": ("name", "role"),
    "state": ("status", "outcome"),
    "status": ("outcome",),
    "tool": ("name",),
    "tool_name": ("name",),
    "total_tokens": ("tokens",),
    "turn_id": ("turn",),
    "user": ("name", "role"),
}
"""Names that people try, and the columns that mean the same here."""
_BUCKETS = ("hour", "day", "week", "month", "quarter", "year")
_SUFFIX_OF_TIMES = "_at"


def hinted(said: str, query: str, columns: Columns) -> str:
    """Return DuckDB's message `said`, with the columns or views that the query may have meant."""
    if found := _VIEW.search(said):
        return said.replace(found[0], _of_view(found[1], columns))
    found = _COLUMN.search(said)
    meant = [] if found is None else _meant((found[1] or found[2]).lower(), query, columns)
    return f"{said.rstrip('.')}. Try {' or '.join(meant)}." if meant else said


def _of_view(name: str, columns: Columns) -> str:
    near = get_close_matches(name.lower(), columns, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"There is no view {name!r}.{meant} The views: {', '.join(sorted(columns))}."


def _meant(guess: str, query: str, columns: Columns) -> list[str]:
    """Return expressions in place of an unknown column, from the views that the query names. Each once, in order."""
    named = [view for view in columns if re.search(rf"\b{view}\b", query, re.IGNORECASE)]
    there = list(dict.fromkeys(name for view in named for name, _ in columns[view]))
    times = [name for name in there if name.endswith(_SUFFIX_OF_TIMES)]
    if guess in _BUCKETS:
        return [f"date_trunc('{guess}', {name})" for name in times[:1]]
    bare = _UNIT.sub("", guess)
    meant = [name for name in (*_SAME.get(guess, ()), *_SAME.get(bare, ()), f"{bare}_us") if name in there]
    if not meant and _A_TIME.fullmatch(guess):
        return times
    return list(dict.fromkeys(meant))

"""Read the SQL files, and fit them together. Each file is one SELECT over `wanted(agent_id, as_of)`.

A file may begin with `-- needs: a, b`: the files that it reads as if they were tables, in that order. One definition
serves two forms, which are made here only:

- the **batched form**, a query over many (agent, as_of) pairs at once, which hosts use: `batch_query(name)`;
- the **macro** `name(agent, as_of)`, for people: alone, or as `FROM wanted, LATERAL name(agent_id, as_of)`.

Used by `engine`, `state` and `fleet_views`. A SQL file must not end with a comment, which would hide a closing
parenthesis.
"""

import re
from functools import cache
from importlib.resources import files

from everlog.events import INPUTS, STOPS

PROJECTIONS = (
    "agents",
    "archival_memory",
    "configurations",
    "context_window",
    "core_memory",
    "documents",
    "function_calls",
    "memory_history",
    "memory_pressure",
    "model_calls",
    "open_turns",
    "recall_memory",
    "sources",
    "standing",
    "steps",
    "summaries",
    "timers",
    "turn_records",
    "turns",
)
"""The public projections, each a macro of the same name."""


def _text(name: str) -> str:
    return files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8").strip()


_SHARED = re.compile(r"\{(inputs|stops|turns by (\w+))\}")


def _shared(found: re.Match[str]) -> str:
    """Return the text that a name in braces stands for."""
    if found[2]:
        return _SHARED.sub(_shared, _text("shared/turns")).replace("{key}", found[2])
    return ", ".join(f"'{kind}'" for kind in (INPUTS if found[1] == "inputs" else STOPS))


@cache
def sql(name: str) -> str:
    """Return the text of `sql/NAME.sql`.

    In the files, `{inputs}` and `{stops}` stand for lists of kinds,
    and `{turns by KEY}` for the query over the records of turns.
    """
    return _SHARED.sub(_shared, _text(name))


def _needs(name: str) -> list[str]:
    first = sql(name).split("\n", 1)[0]
    return first.removeprefix("-- needs:").replace(" ", "").split(",") if first.startswith("-- needs:") else []


_RECORDS = re.compile(r"\brecords\b")


# A file must not end with a comment, which would hide the closing parenthesis.
def _assembled(name: str, wanted: str) -> str:
    parts = [
        f"wanted AS ({wanted})",
        *(f"{need} AS ({sql(need)})" for need in _needs(name)),
        f"answer AS ({sql(name)})",
    ]
    return "WITH " + ",\n".join(parts) + "\nSELECT * FROM answer"


@cache
def batch_query(name: str, source: str = "records", *, few: bool = False) -> str:
    """Return the query for many agents at once.

    Parameters: $1 is a list of agent ids and $2 a list of as_of, equally long; those of a search follow. The `source`
    `hot` gives the same rows as `records` for `context_window` as of now, and for all projections if nothing is cold.
    `few` selects the rows of a few agents first, which is faster among the rows of thousands, and slower for many
    agents. A file that does not read `wanted` selects the rows itself.
    """
    # This looks at the whole text: a comment of a file that does not read `wanted` must not contain that word.
    query = _assembled(name, "SELECT unnest($1::VARCHAR[]) AS agent_id, unnest($2::BIGINT[]) AS as_of")
    if not few or not (_needs(name) or "wanted" in sql(name)):
        return _RECORDS.sub(source, query)
    mine = f"WITH mine AS (SELECT * FROM {source} WHERE list_contains($1::VARCHAR[], agent_id)),\n"
    return mine + _RECORDS.sub("mine", query).removeprefix("WITH ")


@cache
def macro(name: str) -> str:
    """Return the statement that creates the table macro `name(agent, as_of)`."""
    return f"CREATE MACRO {name}(agent, upto) AS TABLE " + _assembled(
        name, "SELECT agent::VARCHAR AS agent_id, upto::BIGINT AS as_of"
    )

"""Read the SQL files, and fit them together. Each file is one SELECT over `wanted(agent_id, as_of)`.

A file may begin with `-- needs: a, b`: the files that it reads as if they were tables. A line that ends
with `-- if changed`, and a need that ends with `?`, is left out for agents without records that change how other
records are shown (`CHANGES`), and a line that ends with `-- if unchanged` for all others: few agents have such records,
and planning the joins would double the cost of a step. A law checks that both give the same rows. A line that ends with
`-- if asked` is left out where another file needs this one, and one with `-- if needed` where none does.

One definition serves two forms, which are made here only:

- the **batched form**, a query over many (agent, as_of) pairs at once, which hosts use: `batch_query(name)`;
- the **macro** `name(agent, as_of)`, for people: alone, or as `FROM wanted, LATERAL name(agent_id, as_of)`.

Used by `engine`, `state` and `fleet_views`. A SQL file must not end with a comment, which would hide a closing
parenthesis.
"""

import re
from functools import cache
from importlib.resources import files

from everlog.events import DERIVED, INPUTS, STOPS
from everlog.projections.hot.rows import EVERY_TURN
from everlog.projections.projection_constants import HEAD

PROJECTIONS = (
    "agent_messages",
    "agents",
    "approvals",
    "archival_memory",
    "background",
    "configurations",
    "context_records",
    "context_window",
    "core_memory",
    "derivations",
    "derived_records",
    "documents",
    "entities",
    "entity_names",
    "facts",
    "function_calls",
    "group_talk",
    "groups",
    "importance",
    "insights",
    "labels",
    "memories",
    "memory_history",
    "memory_pressure",
    "memory_sources",
    "mentions",
    "model_calls",
    "open_turns",
    "outdated",
    "plan_items",
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


_SHARED = re.compile(r"\{(inputs|stops|derived|owed|turns by (\w+))\}")
_MARKED = re.compile(r"^.* -- if (changed|unchanged|asked|needed)\n", re.MULTILINE)
"""A line that not every form has."""

CHANGES = frozenset({"context_trimmed", "turns_hidden", "reply_rethought"})
"""Kinds of records that change how other records are shown."""


def _shared(found: re.Match[str]) -> str:
    """Return the text that a name in braces stands for."""
    if found[2]:
        return _SHARED.sub(_shared, _text("shared/turns")).replace("{key}", found[2])
    if found[1] == "owed":
        return _SHARED.sub(_shared, _text("shared/owed"))
    return ", ".join(f"'{kind}'" for kind in {"inputs": INPUTS, "stops": STOPS, "derived": DERIVED}[found[1]])


@cache
def sql(name: str, *, changed: bool = True, asked: bool = True) -> str:
    """Return the text of `sql/NAME.sql`, for agents with or without records that change how others are shown, and as
    the question itself (`asked`) or as what another file needs.

    In the files, `{inputs}`, `{stops}` and `{derived}` stand for lists of kinds, `{turns by KEY}` for the query over
    the records of turns, and `{owed}` for what a record adds to the open work of its turn.
    """
    kept = {"changed": changed, "unchanged": not changed, "asked": asked, "needed": not asked}
    return _MARKED.sub(lambda line: line[0] if kept[line[1]] else "", _SHARED.sub(_shared, _text(name)))


def _needs(name: str, *, changed: bool) -> list[str]:
    """Return all files that a file needs, directly or through others, each after those that it needs itself."""
    found: dict[str, None] = {}
    for need in _direct_needs(name, changed=changed):
        found |= dict.fromkeys([*_needs(need, changed=changed), need])
    return [*found]


def _direct_needs(name: str, *, changed: bool) -> list[str]:
    first = sql(name).split("\n", 1)[0]
    needs = first.removeprefix("-- needs:").replace(" ", "").split(",") if first.startswith("-- needs:") else []
    return [need.removesuffix("?") for need in needs if changed or not need.endswith("?")]


_RECORDS = re.compile(r"\brecords\b")


# A file must not end with a comment, which would hide the closing parenthesis.
def _assembled(name: str, wanted: str, *, changed: bool = True) -> str:
    parts = [
        f"wanted AS ({wanted})",
        *(f"{need} AS ({sql(need, changed=changed, asked=False)})" for need in _needs(name, changed=changed)),
        f"answer AS ({sql(name, changed=changed)})",
    ]
    return "WITH " + ",\n".join(parts) + "\nSELECT * FROM answer"


@cache
def batch_query(name: str, *, few: bool = False, changed: bool = True, in_turns: bool = False) -> str:
    """Return the query for many agents at once.

    Parameters: $1 is a list of agent ids and $2 a list of as_of, equally long; `in_turns` adds $3, the turn of each
    call. Those of a search follow. `few` selects the rows of a few agents first, which is faster among the rows of
    thousands, and slower for many agents. `changed` False: of no agent a record is shown otherwise than it was
    recorded. A file that does not read `wanted` selects the rows itself.
    """
    # This looks at the whole text: a comment of a file that does not read `wanted` must not contain that word.
    during = "unnest($3::BIGINT[])" if in_turns else f"{EVERY_TURN}"
    asked = f"SELECT unnest($1::VARCHAR[]) AS agent_id, unnest($2::BIGINT[]) AS as_of, {during} AS during"
    query = _assembled(name, asked, changed=changed)
    if not few or not (_needs(name, changed=changed) or "wanted" in sql(name)):
        return query
    return _of_few(query)


def _of_few(query: str) -> str:
    """Return a query that selects the rows of the agents in $1 first."""
    # A name of its own: the files have tables of theirs inside, and one of the same name would hide this one.
    few_records = "WITH few_records AS (SELECT * FROM records WHERE list_contains($1::VARCHAR[], agent_id)),\n"
    return few_records + _RECORDS.sub("few_records", query).removeprefix("WITH ")


_GIVEN = ", ".join(
    f"unnest(${number}::{kind}[]) AS {name}"
    for number, (name, kind) in enumerate(
        {
            "agent_id": "VARCHAR", "as_of": "BIGINT", "during": "BIGINT", "kept_from": "BIGINT", "newest": "BIGINT[]",
            "changed_seq": "BIGINT", '"window"': "BIGINT", "fraction": "DOUBLE", "threshold": "DOUBLE",
            "warned": "BOOLEAN",
        }.items(),
        start=1,
    )
)  # fmt: skip


@cache
def context_by_bounds(*, few: bool) -> str:
    """Return `context_window` as of now, for agents without `CHANGES`, by rows of `memory_pressure` that are given: one
    list parameter for each column. `few` as for `batch_query`.
    """
    answer = sql("context_window", changed=False)
    query = f"WITH memory_pressure AS (SELECT {_GIVEN}),\nanswer AS ({answer})\nSELECT * FROM answer"
    return _of_few(query) if few else query


_FLEET_TIMES = {
    "agent_messages": "time AS recorded_at",
    "approvals": "asked_at AS recorded_at, decided_at AS ended_at",
    "facts": "noted_at AS recorded_at",
    "insights": "noted_at AS recorded_at",
    "memories": "time AS said_at",
    "plan_items": "made_at AS recorded_at, start AS starts_at",
}
"""Columns of times by the names that they have in all views of the fleet."""


@cache
def fleet_view(name: str) -> str:
    """Return the query of a projection for all agents as of now, over the view `current_records` of the fleet."""
    everybody = f"SELECT DISTINCT agent_id, {HEAD} AS as_of, {EVERY_TURN} AS during FROM current_records"
    query = _RECORDS.sub("current_records", _assembled(name, everybody))
    renamed = f" RENAME ({_FLEET_TIMES[name]})" if name in _FLEET_TIMES else ""
    return f"SELECT * EXCLUDE (as_of){renamed} FROM ({query})"


@cache
def fleet_query(name: str) -> str:
    """Return the text of `sql/fleet/NAME.sql` without its comment, whose words would count as names of views: each view
    that a query names is made for it, in 2 to 12 ms.
    """
    return "\n".join(line for line in sql(f"fleet/{name}").splitlines() if not line.startswith("--"))


@cache
def macro(name: str) -> str:
    """Return the statement that creates the table macro `name(agent, as_of)`."""
    return f"CREATE MACRO {name}(agent, upto) AS TABLE " + _assembled(
        name, f"SELECT agent::VARCHAR AS agent_id, upto::BIGINT AS as_of, {EVERY_TURN} AS during"
    )

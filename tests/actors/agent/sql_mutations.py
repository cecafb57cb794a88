"""Break each state projection on purpose, one line of SQL at a time, and find the agent test that notices it.

`python -m tests.actors.agent.sql_mutations` prints the table; `test_sql_mutations.py` asserts it. A mutation that no
test notices means that agents do not live by that line.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import duckdb
import msgspec

from everlog.events import EverlogError
from everlog.projections import sql_catalogue
from tests.actors.agent import test_agent_turns, test_memory_pressure, test_turn_recovery, test_undo
from tests.actors.memory import test_core_memory, test_memory_blocks
from tests.actors.prompt import test_context_fit, test_token_estimates
from tests.support.agent_world import World

MODULES = (
    test_memory_pressure, test_agent_turns, test_undo, test_context_fit, test_core_memory, test_memory_blocks,
    test_turn_recovery, test_token_estimates,
)  # fmt: skip
MAKE_WORLD = {test_core_memory: World, test_memory_blocks: World}


class Mutation(msgspec.Struct, frozen=True):
    """One line of one file, and what it is replaced by."""

    file: str
    broken: str
    """Fault that the file has then."""
    old: str
    new: str


MUTATIONS = (
    Mutation(
        "memory_pressure",
        "warned inverted",
        " > coalesce(max(seq) FILTER (slot = 'summary'), 0) AS warned",
        " <= coalesce(max(seq) FILTER (slot = 'summary'), 0) AS warned",
    ),
    Mutation(
        "memory_pressure", "warned for ever", "coalesce(max(seq) FILTER (slot = 'summary'), 0) AS warned", "0 AS warned"
    ),
    Mutation("memory_pressure", "threshold too high", 'fraction * "window" AS threshold', '"window" AS threshold'),
    Mutation(
        "memory_pressure", "threshold too low", 'fraction * "window" AS threshold', '0.01 * "window" AS threshold'
    ),
    Mutation(
        "memory_pressure", "header of the first change", "max(seq) FILTER (slot NOT IN", "min(seq) FILTER (slot NOT IN"
    ),
    Mutation(  # a stale summary would let agents summarize without end
        "latest",
        "blocks and configuration stale",
        "max(r.seq) AS seq",
        "CASE r.slot WHEN 'summary' THEN max(r.seq) ELSE min(r.seq) END AS seq",
    ),
    Mutation("latest", "first summary instead of the newest", "arg_max_null(r.kept_from", "arg_min_null(r.kept_from"),
    Mutation("latest", "a waiting warning counts", "(r.slot <> 'warning' OR r.turn <= w.during)", "true"),
    Mutation("latest", "a hidden warning counts", "(r.slot <> 'warning' OR h.turn IS NULL)", "true"),
    Mutation("hidden_turns", "hidden turns stay in view", "r.type = 'turns_hidden'", "false"),
    Mutation("context_changes", "trims not applied", "(r.payload->>'shown_chars')::BIGINT", "NULL::BIGINT"),
    Mutation("context_changes", "first wording instead of the newest", "arg_max(CASE r.type", "arg_min(CASE r.type"),
    Mutation(
        "context_changes",
        "thoughts not reworded",
        "WHEN 'reply_rethought' THEN r.text",
        "WHEN 'reply_rethought' THEN NULL",
    ),
    Mutation("context_window", "order of the log, not of turns", "END END, r.turn, r.seq", "END END, r.seq"),
    Mutation(
        "context_window",
        "blocks in order of their labels",
        "WHEN 'block:persona' THEN '1'",
        "WHEN 'block:persona' THEN '39'",
    ),
    Mutation("context_window", "messages backwards", "r.turn, r.seq", "r.turn, r.seq DESC"),
    Mutation(
        "context_window",
        "inputs of later turns in view",
        "r.turn <= p.during",
        "true",
    ),
    Mutation(
        "context_window",
        "changes shown as messages",
        "r.type NOT IN ('context_trimmed', 'turns_hidden', 'reply_rethought')",
        "true",
    ),
    Mutation("context_window", "header counts missing", "r.seq = p.changed_seq THEN r.recall", "false THEN r.recall"),
    Mutation("context_window", "imported messages hidden", "contains(r.payload, '\"imported\":true')", "false"),
    Mutation("context_window", "summary missing", "OR (r.slot IS NOT NULL AND", "OR (r.slot <> 'summary' AND"),
    Mutation("count_new", "archive not counted", "coalesce(sum(r.archived), 0)", "0"),
    Mutation("count_new", "messages not counted", "count(*) FILTER (r.said)", "0"),
    Mutation("core_memory", "values missing", "coalesce(r.text, '') AS value", "'' AS value"),
    Mutation("shared/turns", "open turns are done", "THEN 'open'", "THEN 'done'"),
    Mutation("turn_records", "records of open turns missing", "r.turn = t.turn", "r.turn > t.turn"),
    Mutation("waking", "no input opens a turn", "r.type IN ({inputs})", "false"),
    Mutation("waking", "configurations missing", "CASE r.slot WHEN 'config' THEN r.payload END", "NULL::VARCHAR"),
    Mutation("summaries", "no summaries", "r.slot = 'summary'", "false"),
    Mutation("add", "warnings not recognized", "THEN 'warning' END", "THEN NULL END"),
    Mutation(
        "add",
        "user messages not shown",
        "CASE type WHEN 'user_message' THEN true",
        "CASE type WHEN 'user_message' THEN false",
    ),
    Mutation(
        "add",
        "blocks not recognized",
        "WHEN 'memory_edited' THEN 'block:' || (payload->>'label')",
        "WHEN 'memory_edited' THEN NULL",
    ),
)


def mutated_text(mutation: Mutation) -> str:
    """Return the mutated file. Fails if the file no longer has the line."""
    whole = sql_catalogue._text(mutation.file)
    assert mutation.old in whole, f"{mutation.file}.sql no longer has {mutation.old!r}: correct the mutation"
    return whole.replace(mutation.old, mutation.new)


@contextmanager
def broken(mutation: Mutation) -> Iterator[None]:
    """Let every engine that is made meanwhile run the mutated file.

    The mutation is made before any test runs: one that no longer fits must not pass for one that a test noticed.
    """
    real = sql_catalogue._text
    mutated = mutated_text(mutation)

    def text(name: str) -> str:
        return mutated if name == mutation.file else real(name)

    caches = (sql_catalogue.sql, sql_catalogue.batch_query, sql_catalogue.macro)
    for cached in caches:
        cached.cache_clear()
    try:
        with patch.object(sql_catalogue, "_text", text):
            yield
    finally:
        for cached in caches:
            cached.cache_clear()


def agent_tests() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the agent tests that need no fixture or a world only, by name."""
    for module in MODULES:
        for name, function in vars(module).items():
            if not name.startswith("test_"):
                continue
            wanted = list(inspect.signature(function).parameters)
            if not wanted:
                yield name, function
            elif wanted == ["world"] and module in MAKE_WORLD:
                yield name, lambda function=function, module=module: function(fixture_of(module))


def fixture_of(module: object) -> object:
    """Return what the module's own `world` fixture gives."""
    return module.world.__wrapped__()  # type: ignore[attr-defined]


def first_failure(mutation: Mutation) -> str | None:
    """Return the name of the first agent test that fails with the mutation; None if all pass."""
    with broken(mutation):
        for name, test in agent_tests():
            try:
                test()
            except (AssertionError, EverlogError, duckdb.Error, LookupError, TypeError, ValueError):
                return name
    return None


def main() -> int:
    """Print the table. Return 1 if a mutation goes unnoticed."""
    unnoticed = 0
    for mutation in MUTATIONS:
        found = first_failure(mutation)
        unnoticed += found is None
        print(f"| {mutation.file} | {mutation.broken} | {found or 'NONE'} |", flush=True)
    return min(unnoticed, 1)


if __name__ == "__main__":
    sys.exit(main())

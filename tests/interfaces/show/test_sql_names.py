"""Names of the views' columns: one vocabulary of times, and errors that name the column that was meant."""

from typing import Any

import pytest

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.projections.fleet_views import NAMED_VIEWS, FleetViews
from everlog.projections.query_hints import hinted
from everlog.store import SCHEMA, FileStore
from tests.support.cli.command_line import SECOND, START, Line, Made

SPANS = {"valid_from", "valid_to", "starts_at"}
"""Times of what is believed and planned."""
MOMENTS = {"recorded_at", "said_at", "started_at", "ended_at", "first_recorded_at", "last_recorded_at"}
LASTING = {
    "agents",
    "turns",
    "function_calls",
    "memories",
    "memory_sources",
    "outdated",
    "entities",
    "mentions",
    "importance",
}
"""Views whose rows are about more than one record."""


def test_all_views_have_one_vocabulary_of_times() -> None:
    """Each column of type timestamp ends in _at and is one of six, except those of what is believed and planned; a row
    about one record has recorded_at.
    """
    with FleetViews([], SCHEMA.empty_table()) as views:
        found = views.columns()
    moments = {view: {name for name, kind in columns if "TIMESTAMP" in kind} - SPANS for view, columns in found.items()}
    assert set(moments) == set(NAMED_VIEWS)
    assert set().union(*moments.values()) == MOMENTS
    assert {view for view in moments if "recorded_at" in moments[view]} == {*NAMED_VIEWS} - LASTING - {"prices"}
    for view, columns in found.items():
        assert {name for name, _ in columns if name.endswith("_at")} - SPANS == moments[view]
        assert {kind for _, kind in columns if "TIMESTAMP" in kind} <= {"TIMESTAMP WITH TIME ZONE"}


@pytest.mark.parametrize(
    "options",
    [{"as_of": START + 9 * SECOND}, {"agent": "kid"}, {"tenant": "a~"}],
    ids=str,
)
def test_views_have_the_same_columns_over_any_records(options: dict[str, Any], cli: Line, made: Made) -> None:
    """Forks, second lives, erased records, sealed files, tenants and moments change no column of a view, so that the
    columns of one engine are known for all.
    """
    made.begin(cli, "of every kind", of_every_kind)
    with FleetViews([], SCHEMA.empty_table()) as views:
        known = views.columns()
    with fleet_views(FileStore(cli.root, cli.clock.now), **options) as (views, _):
        assert {name: views.table(f"FROM {name} LIMIT 0").column_names for name in NAMED_VIEWS} == {
            view: [name for name, _ in columns] for view, columns in known.items()
        }


def of_every_kind(cli: Line) -> None:
    cli.ok("send", "sam", "Hello")
    cli.ok("fork", "sam", "--new-name", "kid")
    cli.ok("log", "seal", "--all")
    cli.ok("erase", "sam", "--match", "Hello", "--yes")
    cli.ok("delete", "kid", "--yes")
    cli.ok("create", "kid")
    cli.ok("send", "a~ann", "Hello")


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("SELECT agent FROM messages", "Try agent_id."),
        ("SELECT latency_ms FROM model_calls", "Try latency_us."),
        ("SELECT duration_ms FROM turns", "Try duration_us."),
        ("SELECT created_at FROM turns", "Try started_at or ended_at."),
        ("SELECT m.created_at FROM messages m", "Try recorded_at or said_at."),
        ("SELECT called_at FROM pressure", "Try recorded_at."),
        ("SELECT time FROM messages", "Try recorded_at or said_at."),
        ("SELECT last_active FROM agents", "Try first_recorded_at or last_recorded_at."),
        ("SELECT month FROM model_calls", "Try date_trunc('month', recorded_at)."),
        ("SELECT content FROM messages", "Try text."),
        ("SELECT * FROM message", "There is no view 'message'. Did you mean messages?"),
        (
            "SELECT * FROM nothing_like_it",
            "There is no view 'nothing_like_it'. The views: agent_messages, agents, approvals,",
        ),
    ],
)
def test_a_wrong_name_is_answered_with_ours(query: str, advice: str, cli: Line) -> None:
    """The error of an unknown column names the columns of the queried views that mean the same, and no inner table."""
    cli.ok("create", "sam")
    said = cli.fails("sql", query)
    assert advice in said
    assert "by_then" not in said and "lineage" not in said


@pytest.mark.parametrize("query", ["SELECT frobnicate FROM messages", "SELECT created_at FROM prices"])
def test_a_name_that_means_nothing_here_gets_no_advice(query: str) -> None:
    """Without a column that means the same, DuckDB's message is passed on as it is."""
    with FleetViews([], SCHEMA.empty_table()) as views:
        columns = views.columns()
    said = f'Binder Error: Referenced column "{query.split()[1]}" not found in FROM clause!'
    assert hinted(said, query, columns) == said

"""Names of the views' columns: one vocabulary of times, and errors that name the column that was meant."""

import pytest

from everlog.projections.fleet_views import NAMED_VIEWS, FleetViews
from everlog.projections.query_hints import hinted
from everlog.store import SCHEMA
from tests.support.cli.command_line import Line

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

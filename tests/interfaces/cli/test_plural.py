"""Counts with their nouns."""

from everlog.interfaces.common.plural import plural


def test_a_noun_agrees_with_its_count():
    """One is singular, every other count is plural; large counts have separators."""
    assert [plural(count, "agent") for count in (0, 1, 2, 1204)] == ["0 agents", "1 agent", "2 agents", "1,204 agents"]
    assert plural(1, "memory", "memories") == "1 memory"
    assert plural(2, "memory", "memories") == "2 memories"

"""Agents live by the state projections: each of them, broken on purpose, fails an agent test."""

from collections.abc import Iterator

import pytest

from tests.actors.agent.sql_mutations import MUTATIONS, Mutation, first_failure, mutated_text


@pytest.fixture(autouse=True)
def broken_here(every_system: list) -> Iterator[None]:
    """Remove the systems with broken SQL from the check at the end: correct SQL cannot verify their logs."""
    made = len(every_system)
    yield
    del every_system[made:]


@pytest.mark.long
@pytest.mark.agents
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.broken}")
def test_a_broken_projection_fails_an_agent_test(mutation: Mutation) -> None:
    """No line of the state's SQL can be wrong unnoticed by the tests of agents."""
    assert first_failure(mutation) is not None


def test_every_mutation_fits_its_file() -> None:
    """Each mutation finds the line that it breaks, and changes it."""
    for mutation in MUTATIONS:
        assert mutated_text(mutation).count(mutation.new) > 0 and mutation.old != mutation.new


def test_an_inverted_warning_is_noticed() -> None:
    """With `warned` inverted in SQL an agent test fails; the tests pass with the SQL as it is."""
    inverted = MUTATIONS[0]
    assert (inverted.file, inverted.broken) == ("memory_pressure", "warned inverted")
    assert first_failure(inverted) == "test_a_manual_pressure_warning_counts"

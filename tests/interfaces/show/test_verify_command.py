"""The command `verify`: its output for people and programs, and its failures."""

import pytest

from tests.support.cli.command_line import Line

KEYS = {
    "agent", "checked", "faults", "notes", "calls", "mismatches", "erased", "renderer_gone", "reader_gone",
    "missing_function",
}  # fmt: skip


@pytest.fixture
def talked(cli: Line) -> Line:
    """Create two agents; sam answered four times."""

    def make(line: Line) -> None:
        for text in ("Hi", "I sail", "What is my name?", "Bye"):
            line.ok("send", "sam", text)
        line.ok("send", "ann", "Hello")

    cli.begin("verified agents", make)
    return cli


def test_programs_get_every_call_and_its_verdict(talked: Line):
    """The JSON has all keys that docs/cli.md promises, and the counts add up."""
    found = talked.json("verify", "sam")
    assert set(found) == KEYS
    counts = found["calls"]
    assert counts["all"] == counts["chosen"] == counts["equal"] == found["checked"] > 3
    assert not any(
        counts[verdict] for verdict in ("mismatch", "erased", "renderer_gone", "reader_gone", "missing_function")
    )


def test_a_sample_says_how_many_of_how_many(talked: Line):
    """The sample has the requested number of calls of each agent, or all calls of an agent with fewer; it is the same
    each time.
    """
    found = talked.json("verify", "--all", "--sample", "2")
    assert [report["checked"] for report in found] == [min(2, report["calls"]["all"]) for report in found]
    total = found[1]["calls"]["all"]
    said = talked.ok("verify", "sam", "--sample", "2")
    assert f"2 of {total} model calls replayed, no difference" in said
    assert f"a sample: 2 of {total}" in said
    assert talked.json("verify", "sam", "--sample", "2", "--seed", "x")["checked"] == 2


def test_a_seed_without_a_sample_is_refused(talked: Line):
    for argv in (["--seed", "x"], ["--sample", "0"], ["--sample", "many"]):
        code, _, _ = talked("verify", "sam", *argv)
        assert code == 2


def test_a_mismatch_is_shown_with_its_block_and_fails(talked: Line, monkeypatch):
    """People see the differing part and its text today; programs get the same; the exit code is 1."""
    monkeypatch.setattr("everlog.actors.formats.render_request.ACCESS", "(something else)")
    code, out, _ = talked("verify", "sam")
    assert code == 1
    assert "the request differs first in the memory header" in out
    assert any(line.strip().startswith("+") and "(something else)" in line for line in out.splitlines())
    code, out, _ = talked("verify", "sam", "--json")
    assert code == 1
    assert '"what":"request"' in out


def test_what_cannot_be_checked_is_a_note_and_no_failure(talked: Line, monkeypatch):
    """With another renderer than the agent's, nothing is compared, and the command says so and exits 0."""
    monkeypatch.setattr("everlog.actors.replay.verify.RENDERER", 2)
    found = talked.json("verify", "sam")
    assert (found["checked"], found["faults"]) == (0, [])
    assert found["renderer_gone"][0]["renderer"] == 1
    assert len(found["renderer_gone"][0]["seqs"]) == found["calls"]["all"]
    assert "renderer 1 gone: this everlog has 2" in talked.ok("verify", "sam")


def test_all_agents_end_with_a_line_of_all(talked: Line):
    said = talked.ok("verify", "--all").splitlines()
    assert said[-1].startswith("2 agents: ") and said[-1].endswith("no difference")

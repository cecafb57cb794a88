"""Erasing from Python: the same plan and the same erasure as the command's."""

from pathlib import Path

import pytest

import everlog
from tests.support.cli.canary_store import leftovers

SECRET = "Quagmire of the north sea"


def test_a_program_plans_and_erases(tmp_path: Path) -> None:
    """The plan names the records by stream and reason; the erasure takes them while the system is open, and the agent
    goes to work again.
    """
    root = tmp_path / "store"
    with everlog.open(root, runtime="local") as system:
        sam = system.agent("sam")
        sam.ask(f"My boat is called {SECRET}")
        sam.ask("What is my name?")
        selection = everlog.Selection(match=[SECRET.upper()])
        plan = system.plan_erasure("sam", selection, derived=True)
        assert {one.why for one in plan.taken} >= {f"says '{SECRET.lower()}'"}
        assert leftovers(root)
        report = system.erase("sam", selection, derived=True)
        assert (report.erased, report.left) == (len(plan.taken), 0)
        assert leftovers(root) == []
        assert sam.ask("Are you still there?").text
        assert not system.plan_erasure("sam", selection).spans


def test_a_selection_is_checked_first(tmp_path: Path) -> None:
    """An unknown agent, an empty selection and a range beyond the head are refused."""
    with everlog.open(tmp_path / "store", runtime="local") as system:
        system.agent("sam")
        with pytest.raises(everlog.UnknownAgent):
            system.plan_erasure("tom", everlog.Selection(everything=True))
        for selection in (everlog.Selection(), everlog.Selection(seqs=[(1, 99)])):
            with pytest.raises(everlog.BadInput, match="Nothing was erased"):
                system.erase("sam", selection)

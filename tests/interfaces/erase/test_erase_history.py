"""An erasure reaches what people typed at prompts."""

from everlog.store import FileStore, keep_typed, typed_before, typed_path
from tests.support.cli.canary_store import CANARY, leftovers
from tests.support.cli.command_line import Line


def test_no_word_survives_in_the_history_of_a_prompt(cli: Line) -> None:
    """After `erase --match` no file of the store has the words, though they were typed as a message, as a search, and
    in a query; the history of another agent stays.
    """
    cli.ok("send", "sam", f"My cat is {CANARY}")
    for name, text in (("sam", f"My cat is {CANARY}"), ("sam", f"/search {CANARY}"), (None, f"SELECT '{CANARY}';")):
        keep_typed(typed_path(cli.root, name), text)
    keep_typed(typed_path(cli.root, "ann"), "hello")
    cli.ok("erase", "sam", "--match", CANARY, "--derived", "--yes")
    assert leftovers(cli.root) == []
    assert typed_before(typed_path(cli.root, "ann")) == ["hello"]


def test_a_repeated_erasure_removes_a_history_that_an_interruption_left(cli: Line) -> None:
    """The same command again removes the history, although no record is left to erase."""
    cli.ok("send", "sam", f"My cat is {CANARY}")
    cli.ok("erase", "sam", "--match", CANARY, "--derived", "--yes")
    keep_typed(typed_path(cli.root, "sam"), CANARY)
    assert "nothing is left to erase" in cli.fails("erase", "sam", "--match", CANARY, "--derived", "--yes")
    assert leftovers(cli.root) == []


def test_a_dry_run_keeps_the_history(cli: Line) -> None:
    """Only an erasure removes what was typed."""
    cli.ok("send", "sam", "hello")
    path = typed_path(FileStore(cli.root, cli.clock.now).root, "sam")
    keep_typed(path, "hello")
    cli.ok("erase", "sam", "--match", "hello", "--dry-run")
    assert typed_before(path) == ["hello"]

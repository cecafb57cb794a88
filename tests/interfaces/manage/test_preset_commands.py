"""`everlog preset`: personas and humans of the user, for new agents."""

import pytest

from everlog.interfaces.common import own_presets
from tests.support.cli.command_line import Line


def presets(cli: Line, *, shipped: bool) -> list[tuple[str, str]]:
    return [(row["kind"], row["preset"]) for row in cli.json("preset", "list") if row["shipped"] is shipped]


@pytest.mark.beside_store("presets are files of a store")
def test_a_persona_is_added_used_and_removed(cli: Line, tmp_path) -> None:
    """A new agent gets the text with its own name; removing the preset changes no agent."""
    (tmp_path / "pirate.txt").write_text("I am {{ agent }}, a pirate.\n")
    said = cli.ok("preset", "add", "persona", "pirate", "--file", str(tmp_path / "pirate.txt"))
    assert said == "Added the persona pirate; --persona pirate gives it to a new agent.\n"
    cli.ok("preset", "add", "human", "chad", "First name: Chad")
    assert presets(cli, shipped=False) == [("persona", "pirate"), ("human", "chad")]
    cli.ok("create", "ann", "--persona", "pirate", "--human", "chad")
    assert cli.json("preset", "remove", "persona", "pirate") == {"kind": "persona", "preset": "pirate"}
    blocks = {block["label"]: block["value"] for block in cli.json("memory", "ann")["blocks"]}
    assert blocks == {"persona": "I am Ann, a pirate.", "human": "First name: Chad"}
    assert "neither a file nor a preset" in cli.fails("create", "bo", "--persona", "pirate")
    assert presets(cli, shipped=False) == [("human", "chad")]


def test_shipped_presets_are_listed_and_stay(cli: Line) -> None:
    """Shipped personas and humans are shown; their names cannot be taken or removed."""
    assert ("persona", "sam") in presets(cli, shipped=True) and ("human", "basic") in presets(cli, shipped=True)
    assert cli.ok("preset", "show", "persona", "sam").startswith("My name is {{ agent }}.")
    assert "already" in cli.fails("preset", "add", "persona", "sam", "x")
    assert "is shipped with everlog, and stays" in cli.fails("preset", "remove", "persona", "sam")


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden", "x" * 65])
def test_a_name_cannot_leave_the_folder(name: str, cli: Line) -> None:
    """A name that is no plain word is refused, and no file is written."""
    assert "A preset's name is" in cli.fails("preset", "add", "human", name, "x")
    assert presets(cli, shipped=False) == []
    assert not list(cli.root.rglob("*.txt"))


def test_an_unknown_preset_names_those_that_exist(cli: Line) -> None:
    """The error lists the user's and the shipped ones; an empty text is refused."""
    cli.ok("preset", "add", "human", "chad", "x")
    assert "there are basic, chad, guest" in cli.fails("preset", "show", "human", "chat")
    assert "does not exist" in cli.fails("preset", "remove", "human", "chat")
    assert "is empty" in cli.fails("preset", "add", "human", "none", " ")
    assert own_presets.KINDS == ("persona", "human")

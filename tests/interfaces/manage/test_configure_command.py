"""`everlog configure`, `prompt` and `block`: a person changes an agent's settings, and sees each before and after."""

from pathlib import Path
from typing import Any

from tests.support.cli.command_line import Line


def changed(cli: Line, *words: str) -> dict[str, tuple[Any, Any]]:
    """Return the changes that a command reports, by name."""
    return {one["name"]: (one["before"], one["after"]) for one in cli.json(*words)["changed"]}


def test_every_setting_is_changed_by_one_event_and_reported_before_and_after(cli: Line) -> None:
    """The same command again changes nothing; `diff` shows the same changes; `create` takes the same options."""
    cli.ok("create", "sam", "--sampling", "seed=3", "--keep-last", "4")
    assert cli.json("configure", "sam")["settings"]["sampling"] == {"seed": 3}
    words = (
        "--model", "script", "--window", "9000", "--zone", "Europe/Oslo", "--calling", "schema", "--stream",
        "--sampling", "temperature=0.5", "--sampling", "max_tokens=200", "--summarizer", "small", "--fallback", "big",
        "--verify-first", "--first-attempts", "3", "--monologue-chars", "200", "--steps", "7", "--pressure", "0.5",
        "--summary-part", "0.6", "--keep-last", "5", "--day-tokens", "1000", "--day-cost", "1.5",
    )  # fmt: skip
    before = cli.json("memory", "sam")["as_of"]
    found = changed(cli, "configure", "sam", *words)
    assert found == {
        "model": ("offline", "script"),
        "window": (8192, 9000),
        "zone": ("UTC", "Europe/Oslo"),
        "calling": ("native", "schema"),
        "stream": (False, True),
        "sampling": ("seed 3", "temperature 0.5, max_tokens 200"),
        "summarizer": ("", "small"),
        "fallback": ("", "big"),
        "verify_first": (False, True),
        "first_attempts_max": (10, 3),
        "monologue_chars_max": (0, 200),
        "steps_max": (20, 7),
        "pressure_fraction": (0.75, 0.5),
        "summary_fraction": (0.75, 0.6),
        "keep_last": (4, 5),
        "day_tokens_max": (0, 1000),
        "day_cost_max": (0.0, 1.5),
    }
    assert changed(cli, "configure", "sam", *words) == {}
    assert "Nothing was changed" in cli.ok("configure", "sam", *words)
    assert "fallback: big -> none" in cli.ok("configure", "sam", "--fallback", "")
    assert cli.json("memory", "sam")["as_of"] == before + 2
    told = {one["name"] for one in cli.json("diff", "sam", "1")["configuration"]}
    assert {"sampling", "calling", "day_cost_max"} <= told
    assert "temperature 0.5" in cli.ok("configure", "sam")


def test_a_setting_that_cannot_be_is_refused(cli: Line) -> None:
    """The error names the allowed values, and the log is unchanged."""
    cli.ok("create", "sam")
    before = cli.json("memory", "sam")["as_of"]
    for words, why in (
        (("--sampling", "temperture=0.3"), "did you mean temperature?"),
        (("--sampling", "banana=1"), "there are temperature"),
        (("--sampling", "temperature=warm"), "temperature"),
        (("--sampling", "seed=1", "--sampling", "seed=2"), "once"),
        (("--pressure", "2"), "0.05 to 1"),
        (("--window", "10"), "4096"),
        (("--zone", "Mars/Base"), "time zone"),
        (("--var", "a=b"), "--section"),
        (("--sections", "/nowhere"), "cannot be read"),
    ):
        assert why in cli.fails("configure", "sam", *words)
    assert cli.json("memory", "sam")["as_of"] == before


def names(cli: Line) -> list[str]:
    """Return the names of the prompt's sections in order, those of hidden sections in brackets."""
    parts = cli.json("prompt", "show", "sam")["sections"]
    return [part["name"] if part["visible"] else f"({part['name']})" for part in parts]


def test_sections_are_shown_and_changed_by_commands(cli: Line, tmp_path: Path) -> None:
    """A preset has sections too; each edit is reported, and `reset` restores the preset."""
    cli.ok("create", "sam")
    assert names(cli) == ["base", "control_flow", "speaking", "memory", "tools", "closing"]
    (tmp_path / "who.md").write_text("You are {{ agent }}, {{ job }}.\n")
    added = cli.ok(
        "prompt", "add", "sam", "who", "--file", str(tmp_path / "who.md"), "--var", "job=a clerk", "--place", "1"
    )
    assert "sections: added who\n" in added
    assert "sections: hid tools\n" in cli.ok("prompt", "hide", "sam", "tools")
    cli.ok("prompt", "move", "sam", "memory", "2")
    cli.ok("prompt", "remove", "sam", "closing")
    assert names(cli) == ["who", "memory", "base", "control_flow", "speaking", "(tools)"]
    (part,) = cli.json("prompt", "show", "sam", "who")["sections"]
    assert (part["text"], part["template"]) == (
        "You are sam, a clerk.",
        '{% set job = "a clerk" %}You are {{ agent }}, {{ job }}.',
    )
    assert "--- template" in cli.ok("prompt", "show", "sam", "who")
    shown = cli.json("context", "sam")["messages"][0]["content"]
    assert shown.startswith("You are sam, a clerk.\n\nWhat you remember") and "pause_heartbeats" not in shown
    cli.ok("prompt", "unhide", "sam", "tools")
    cli.ok("prompt", "set", "sam", "who", "Plain.")
    assert cli.json("context", "sam")["messages"][0]["content"].startswith("Plain.\n\n")
    for words, why in (
        (("prompt", "set", "sam", "nobody", "x"), "no section 'nobody'"),
        (("prompt", "add", "sam", "who", "x"), "already"),
        (("prompt", "move", "sam", "who", "9"), "1 to 6"),
        (("prompt", "set", "sam", "who", "\n{{ nobody }}"), "'who', line 2"),
        (("prompt", "show", "sam", "nobody"), "no section"),
    ):
        assert why in cli.fails(*words)
    cli.ok("prompt", "reset", "sam")
    assert (names(cli)[0], cli.json("prompt", "show", "sam")["preset"]) == ("base", "chat")


def test_a_folder_of_sections_makes_the_prompt_of_a_new_agent(cli: Line, tmp_path: Path) -> None:
    """Sections are in the order of the files' names; --section with the name of a file replaces that file's text."""
    folder = tmp_path / "prompt"
    folder.mkdir()
    for name, text in (("20-memory.md", "Two"), ("10-base.md", "One"), ("30-end.txt", "Three"), ("notes.pdf", "no")):
        (folder / name).write_text(text)
    (tmp_path / "own.md").write_text("Own")
    cli.ok("create", "sam", "--sections", str(folder), "--section", f"memory={tmp_path / 'own.md'}")
    assert cli.json("context", "sam")["messages"][0]["content"].startswith("One\n\nOwn\n\nThree\n\n###")
    assert names(cli) == ["base", "memory", "end"]


def test_a_template_is_rendered_again_by_hand(cli: Line) -> None:
    """A block that is added later appears in the rendered template only after `prompt render`."""
    cli.ok("create", "sam")
    cli.ok("prompt", "set", "sam", "base", "{{ blocks|length }} blocks")
    cli.ok("block", "add", "sam", "plan", "Sail.")
    assert cli.json("context", "sam")["messages"][0]["content"].startswith("2 blocks")
    cli.ok("prompt", "render", "sam")
    assert cli.json("context", "sam")["messages"][0]["content"].startswith("3 blocks")


def test_blocks_are_added_changed_and_removed(cli: Line, tmp_path: Path) -> None:
    """`memory`, `diff` and `replay` show the change; as of an earlier moment the earlier settings are shown."""
    (tmp_path / "rules.txt").write_text("Be kind.\n")
    cli.ok("create", "sam", "--block", f"rules={tmp_path / 'rules.txt'}:50", "--block-description", "rules=Manners",
           "--block-read-only", "rules")  # fmt: skip
    born = cli.json("memory", "sam")["as_of"]
    assert [(b["label"], b["limit"], b["description"], b["read_only"]) for b in cli.json("memory", "sam")["blocks"]][
        2:
    ] == [("rules", 50, "Manners", True)]
    shown = cli.ok("memory", "sam")
    assert "Manners" in shown and "read-only" in shown
    assert cli.json("block", "set", "sam", "rules", "Be brief.") == {"agent": "sam", "block": "rules", "changed": True}
    assert cli.json("block", "set", "sam", "rules", "Be brief.")["changed"] is False
    assert "its limit is 3" in cli.fails("block", "set", "sam", "rules", "--limit", "3")
    cli.ok("block", "set", "sam", "rules", "--no-read-only", "--description", "")
    cli.ok("block", "remove", "sam", "human")
    told = {one["name"]: (one["before"], one["after"]) for one in cli.json("diff", "sam", str(born))["memory"]}
    assert told["rules"] == ("Be kind.", "Be brief.") and told["rules read-only"] == (True, False)
    assert told["human"][1] is None and told["rules description"] == ("Manners", "")
    assert len(cli.json("memory", "sam", "--as-of", str(born))["blocks"]) == 3
    assert cli.lines("replay", "sam")[-1]["changed"]["memory"]["operation"] == "ended"
    assert cli.json("verify", "sam")["faults"] == []


def test_a_removal_of_a_block_that_was_erased_is_no_mismatch(cli: Line) -> None:
    """The block is shown again, because its removal is no longer known; `verify` reports no fault."""
    cli.ok("create", "sam", "--model", "script")
    cli.ok("block", "remove", "sam", "human")
    seq = str(cli.json("memory", "sam")["as_of"])
    cli.ok("send", "sam", "Hello")
    cli.ok("erase", "sam", "--from", seq, "--to", seq, "--yes")
    assert [block["label"] for block in cli.json("memory", "sam")["blocks"]] == ["persona", "human"]
    assert cli.json("verify", "sam")["faults"] == []


def test_functions_are_reported_as_added_and_removed(cli: Line) -> None:
    """A change of the optional functions names those that came and went, and not the twelve that all agents have."""
    cli.ok("create", "sam")
    cli.ok("configure", "sam", "--function", "plan_make")
    assert cli.ok("configure", "sam", "--function", "message_agent", "--function", "ask_agent").splitlines() == [
        "functions: added ask_agent, added message_agent, removed plan_make"
    ]

"""The memory functions: their edits, refusals and results. Each edit is an event with the whole new value."""

import asyncio
import json
from typing import Any

import pytest

from everlog.events import Record, event_of
from tests.support.agent_world import World, completion, kinds, say


def call(world: World, function: str, **arguments: Any) -> tuple[str, bool]:
    """Return the result of one function call: its text, and True if it succeeded."""
    world.model.lines = [completion(calls=[(function, arguments)]), completion("Oh.")]
    left = asyncio.run(world.tell("go"))
    result = next(event_of(record) for record in left if record.type == "function_result")
    return result.text, result.ok


@pytest.fixture
def world() -> World:
    made = World(say("Hi."))
    asyncio.run(made.tell("Hello, I sail"))
    return made


def human(world: World) -> str:
    return next(block["value"] for block in world.system.view("sam").rows("core_memory") if block["label"] == "human")


def edits(world: World) -> list[Record]:
    return [record for record in world.log() if record.type == "memory_edited"]


def test_append_joins_with_a_newline(world: World) -> None:
    """The new value is the old text, a line break and the new text; the result is "None", as in MemGPT."""
    before = human(world)
    assert call(world, "core_memory_append", name="human", content="Name: Chad") == ("None", True)
    assert human(world) == f"{before}\nName: Chad"


def test_replace_changes_every_occurrence_and_empty_deletes(world: World) -> None:
    """Every exact occurrence is replaced; an empty new text deletes."""
    call(world, "core_memory_append", name="human", content="red red")
    call(world, "core_memory_replace", name="human", old_content="red", new_content="blue")
    assert human(world).endswith("blue blue")
    call(world, "core_memory_replace", name="human", old_content="blue", new_content="")
    assert "blue" not in human(world)


def test_remove_deletes_a_line(world: World) -> None:
    """core_memory_remove removes the text, and the line if nothing else is on it."""
    before = human(world)
    call(world, "core_memory_append", name="human", content="Likes tea.")
    call(world, "core_memory_remove", name="human", content="Likes tea.")
    assert human(world) == before


def test_a_text_that_is_not_there_or_empty_is_refused(world: World) -> None:
    """A missing or empty old text is refused; an empty text does not match between letters."""
    before = len(edits(world))
    text, ok = call(world, "core_memory_replace", name="human", old_content="Mars", new_content="x")
    assert "Content not found in 'human' (make sure to use the exact string)" in text
    assert not ok
    assert not call(world, "core_memory_replace", name="human", old_content="", new_content="x")[1]
    assert len(edits(world)) == before


def test_a_value_over_the_limit_is_refused_and_unchanged(world: World) -> None:
    """The error has MemGPT's words with both numbers, and the value is unchanged (MemGPT 0.3 kept the long one)."""
    before = human(world)
    text, ok = call(world, "core_memory_append", name="human", content="x" * 2000)
    assert f"Edit failed: Exceeds 2000 character limit (requested {len(before) + 2001})" in text
    assert not ok
    assert human(world) == before


def test_a_failed_call_leaves_no_part_of_itself(world: World) -> None:
    """A failed call after a successful one leaves the first edit and nothing of its own."""
    world.model.lines = [
        completion(
            calls=[
                ("core_memory_append", {"name": "human", "content": "kept"}),
                ("core_memory_append", {"name": "human", "content": "y" * 3000}),
            ]
        ),
        completion("Oh."),
    ]
    left = asyncio.run(world.tell("go"))
    assert kinds(left).count("memory_edited") == 1
    assert human(world).endswith("kept")


def listed(text: str) -> list[str]:
    """Return the results of a page as the model reads it."""
    found: list[str] = json.loads(text.split("): ", 1)[1])
    return found


def test_the_old_names_are_accepted(world: World) -> None:
    """edit_memory* and recall_memory_search* still work, as does `label` for `name`."""
    assert call(world, "edit_memory_append", label="human", content="old name")[1]
    assert "user - Hello, I sail" in listed(call(world, "recall_memory_search", query="sail")[0])[0]


def test_edit_memory_writes_the_whole_block(world: World) -> None:
    """MemGPT's first function, edit_memory(name, content), writes the whole text; with an old content it replaces."""
    assert call(world, "edit_memory", name="human", content="Name: Chad. Sails.")[1]
    assert human(world) == "Name: Chad. Sails."
    assert call(world, "edit_memory", name="human", old_content="Sails", new_content="Rows")[1]
    assert human(world) == "Name: Chad. Rows."
    text, ok = call(world, "edit_memory", name="human", content="x" * 2001)
    assert not ok and "Exceeds 2000 character limit (requested 2001)" in text
    text, ok = call(world, "edit_memory", name="nobody", content="x")
    assert not ok and "no memory block 'nobody'" in text
    assert [json.loads(record.payload)["operation"] for record in edits(world)[-2:]] == ["set", "replaced"]


def test_search_finds_sent_messages_with_correct_totals(world: World) -> None:
    """The words of send_message are found, before what stands beside them; system messages are not searched."""
    for number in range(12):
        world.model.lines = [say(f"Whale number {number}.")]
        asyncio.run(world.tell(f"message {number}"))
    pages = [call(world, "conversation_search", query="whale", page=page)[0] for page in range(2)]
    found = [one for page in pages for one in listed(page)]
    assert all(page.startswith("Showing 10 of ") for page in pages)
    assert ["Whale number" in one for one in found] == [True] * 12 + [False] * 8
    assert call(world, "conversation_search", query="xylophone")[0] == "No results found."


def test_percent_and_underscore_are_letters(world: World) -> None:
    """A query is plain text: percent and underscore are not patterns."""
    world.model.lines = [say("It is 100% sure.")]
    asyncio.run(world.tell("how sure?"))
    assert "It is 100% sure." in listed(call(world, "conversation_search", query="100%")[0])[0]
    assert call(world, "conversation_search", query="_")[0] == "No results found."


def test_search_by_date_includes_both_days_and_refuses_invalid_dates(world: World) -> None:
    """The end day counts whole; a date such as "now" gives an error, not a crash."""
    assert "of 2 results" in call(world, "conversation_search_date", start_date="2026-01-01", end_date="2026-01-01")[0]
    assert (
        call(world, "conversation_search_date", start_date="2025-01-01", end_date="2025-12-31")[0]
        == "No results found."
    )
    text, ok = call(world, "conversation_search_date", start_date="now", end_date="2026-01-01")
    assert "YYYY-MM-DD" in text
    assert not ok


def test_a_new_memory_is_found_at_once_with_its_time(world: World) -> None:
    """A new memory is found at once, with the time of its insertion."""
    assert call(world, "archival_memory_search", query="gold")[0] == "No results found."
    assert call(world, "archival_memory_insert", content="The gold is under the oak.") == ("None", True)
    world.clock.skip(86_400)
    text, _ = call(world, "archival_memory_search", query="gold")
    assert "timestamp: 2026-01-01" in text
    assert "under the oak" in text


def test_a_pause_is_capped_and_survives_a_restart(world: World) -> None:
    """A pause lasts 360 minutes at most, and a restart does not end it (MemGPT forgot it at exit)."""
    assert call(world, "pause_heartbeats", minutes=1000)[0] == "Pausing timed heartbeats for 360 min"
    paused = event_of(next(record for record in world.restarted().log() if record.type == "heartbeats_paused"))
    assert paused.minutes == 360
    assert paused.until - world.log()[-1].recorded_at > 359 * 60 * 1_000_000


def test_the_header_counts_are_those_of_the_last_change(world: World) -> None:
    """After an edit the header of the system message has the new sizes of recall and archival memory."""
    call(world, "archival_memory_insert", content="kept")
    call(world, "core_memory_append", name="human", content="x")
    world.model.lines = [say("Ok.")]
    asyncio.run(world.tell("so?"))
    system = world.model.messages()[0]["content"]
    said = sum(record.type in ("user_message", "message_sent") for record in world.log()) - 2
    assert f"\n{said} previous messages" in system
    assert "\n1 total memories" in system


def test_the_header_counts_what_was_archived_in_the_same_process(world: World) -> None:
    """The header has the memories that were archived just before the edit, without a restart in between."""
    calls = [("archival_memory_insert", {"content": "kept"}), ("core_memory_append", {"name": "human", "content": "x"})]
    world.model.lines = [completion(calls=calls), say("Ok.")]
    asyncio.run(world.tell("Keep it.", "so?"))
    assert "\n1 total memories" in world.model.messages()[0]["content"]

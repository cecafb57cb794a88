"""A story has at each seq the state that the projections have as of that seq."""

from typing import Any

from hypothesis import strategies as st

from everlog.events import MemoryEdited, Record, UserMessage
from everlog.interfaces.replay_console import load_timeline
from everlog.interfaces.replay_console.timeline import ReplayTimeline
from tests.laws.test_projections import BIRTH
from tests.support.cli.story_records import RECORDS, Past, recorded, story_of
from tests.support.event_strategies import lives, streams
from tests.support.law import law

LOGS = streams(birth=BIRTH) | lives(BIRTH)


def pressure(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["tokens"], row["window"] or 0, row["fraction"], row["warned"], row["summary_seq"]


def told(story: ReplayTimeline, seq: int) -> tuple[Any, ...]:
    gauge = story.gauge(seq)
    return gauge.tokens, gauge.window, gauge.fraction, gauge.warned, gauge.summary_seq


@law(LOGS, few=3, many=100)
def test_the_gauge_is_the_memory_pressure(records: list[Record]) -> None:
    """As of every record, tokens, window, warning mark, warning and last summary equal those of the projection."""
    with Past(records) as past:
        story = load_timeline.begun(past)
        rows = past.projections.batch("memory_pressure", [("sam", seq) for seq in range(1, story.last + 1)])
        found = {row["as_of"]: pressure(row) for row in rows}
        nothing = (0, 0, 0.75, False, None)
        assert {seq: told(story, seq) for seq in range(1, story.last + 1)} == {
            seq: found.get(seq, nothing) for seq in range(1, story.last + 1)
        }


@law(LOGS, few=3, many=100)
def test_the_blocks_are_core_memory(records: list[Record]) -> None:
    """As of every record, each block, its value and the event that wrote it equal those of the projection."""
    with Past(records) as past:
        story = load_timeline.begun(past)
        moments = range(1, story.last + 1)
        rows = past.projections.batch("core_memory", [("sam", seq) for seq in moments])
        for seq in moments:
            known = {row["label"]: (row["value"], row["seq"]) for row in rows if row["as_of"] == seq}
            assert {edit.label: (edit.value, edit.seq) for edit in story.blocks(seq)} == known


@law(LOGS, st.data(), few=3, many=100)
def test_a_story_that_grew_equals_the_story_loaded_at_once(records: list[Record], data: st.DataObject) -> None:
    """A story that grew by a few records at a time equals the story that was loaded at once."""
    whole = story_of(records)
    with Past(records, data.draw(st.integers(1, len(records)))) as past:
        grown = load_timeline.begun(past, past.head.seq)
        while grown.last < len(records):
            assert load_timeline.more(past, grown, data.draw(st.integers(grown.last + 1, len(records))))
        assert not load_timeline.more(past, grown, None)
    assert grown.edits == whole.edits
    for kind in ("turn", "summary", "edit", "failure"):
        assert grown.jump_points(kind) == whole.jump_points(kind)
    for seq in range(1, len(records) + 1):
        assert (grown.gauge(seq), grown.blocks(seq)) == (whole.gauge(seq), whole.blocks(seq))


def test_landmarks() -> None:
    """Turns, summaries, edits and failures are at their seqs."""
    story = story_of(RECORDS)
    found = {kind: list(story.jump_points(kind)) for kind in ("turn", "summary", "edit", "failure")}
    assert found == {"turn": [4, 13], "summary": [14], "edit": [3, 6], "failure": [11]}
    assert (story.after("edit", 3), story.before("edit", 3), story.count("edit", 5)) == (6, None, 1)
    assert story.calls(16, 2) == [820, 310]


def test_a_second_life_begins_with_nothing() -> None:
    """After the agent was created again, memory and gauge hold only data of the new incarnation."""
    born = [(event, 0, 0) for event in BIRTH]
    first = MemoryEdited(label="plans", operation="set", limit=100, text="old")
    again = MemoryEdited(label="plans", operation="set", limit=100, text="new")
    story = story_of(recorded([*born, (first, 0, 0), (UserMessage(text="x"), 1, 0), *born, (again, 0, 0)]))
    assert story.edits[story.last].before == ""
    labels = [[edit.label for edit in story.blocks(seq)] for seq in (story.last - 1, story.last)]
    assert labels == [["persona", "human"], ["persona", "human", "plans"]]

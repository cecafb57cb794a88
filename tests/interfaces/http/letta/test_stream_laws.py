"""Laws of ids and cursors: an id says which thing it means, and a cursor how far a reader has come."""

from collections.abc import Sequence

from hypothesis import strategies as st

from everlog.actors.formats.reply_preview import reported_beginning
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, digits_in, otid_of, place_in
from everlog.interfaces.http.letta.translation.stream_cursor import (
    AGAIN,
    CHARS_MAX,
    StreamCursor,
    characters_sent,
    check_of,
    checksum,
    cursor_of,
)
from everlog.interfaces.http.runs.agent_digests import digest_of
from tests.support.law import law

WORDS = st.text("abå [{<`", max_size=12)
CURSORS = st.builds(
    StreamCursor, st.integers(0, 2**27 - 1), st.integers(0, AGAIN + 100), st.integers(0, 511), st.booleans()
)


@law(CURSORS, few=50, many=2000)
def test_a_cursor_is_its_number(cursor: StreamCursor) -> None:
    """A cursor can be read from its number, which every client can hold exactly."""
    assert cursor_of(cursor.number) == cursor
    assert cursor.number < 2**53


@law(st.lists(WORDS, min_size=1, max_size=4), st.data(), few=100, many=5000)
def test_a_reader_has_what_its_cursor_says(texts: Sequence[str], data: st.DataObject) -> None:
    """For every part of a reply that was sent, with its thought whole or as far as it was reported, the characters of
    each text are found again, and the rest is what is missing.
    """
    thought = data.draw(st.sampled_from([texts[0], reported_beginning(texts[0])]))
    reported = [thought, *texts[1:]]
    whole = "".join(reported)
    count = data.draw(st.integers(0, len(whole)))
    cursor = StreamCursor(7, count, check_of(checksum(whole[:count])))
    sent = characters_sent(texts, cursor)
    assert sent is not None
    assert sum(sent) == count
    had = "".join(text[:chars] for text, chars in zip(texts, sent, strict=True))
    assert had == whole[:count] or check_of(checksum(had)) == cursor.check


@law(st.text(max_size=20), st.integers(1, 2**40), st.integers(1, 2**30), st.integers(1, 2**16 - 1), few=50, many=2000)
def test_an_id_says_its_agent_and_its_place(stream: str, seq: int, turn: int, step: int) -> None:
    """Ids have the form of a UUID of version 4, say the agent by the beginning of its digest, and the place; ids of
    different places differ, and those of parts of a message are the same but for their last digits.
    """
    ids = LettaIds(stream)
    assert digits_in("agent", ids.agent) == digest_of(stream)
    for kind, given in (("run", ids.run(seq)), ("message", ids.message_at(seq)), ("step", ids.step(turn, step))):
        place = place_in(kind, given)
        assert place is not None
        assert digest_of(stream).startswith(place.digest)
        assert given.split("-")[3][0] == "4"
        assert given.split("-")[4][0] in "89ab"
        assert (place.seq, place.step) == ((0, (turn, step)) if kind == "step" else (seq, (0, 0)))
        assert place_in("agent", given) is None
    message = ids.step(turn, step, "message")
    parts = {otid_of(message, part) for part in range(128)}
    assert len(parts) == 128
    assert all(f"message-{part}".startswith(message[:-2]) for part in parts)


def test_what_is_no_id_means_nothing() -> None:
    """Texts that are no id of a kind, in another form or of another kind, mean nothing."""
    good = LettaIds("sam").agent
    for given in (
        "",
        "agent-",
        good.upper(),
        good.replace("-", ""),
        f"{good}0",
        f" {good}",
        good.replace("agent", "run"),
    ):
        assert digits_in("agent", given) == ""
    assert place_in("run", "run-00000000-0000-0000-0000-000000000000") is None


def test_characters_beyond_the_count_are_not_counted() -> None:
    """A cursor never counts more characters than it can hold."""
    assert cursor_of(StreamCursor(1, CHARS_MAX).number).chars == CHARS_MAX

"""Lines of JSON become messages unchanged; a bad line is refused with its number."""

import json
from datetime import UTC, datetime

import pytest

from everlog.actors.agent.conversation_import import conversation
from everlog.events import BadInput

GOOD = {"role": "user", "content": "I sail.", "time": "2023-05-08T13:56:00+00:00"}


def line(**changed) -> bytes:
    return json.dumps({**GOOD, **changed}).encode() + b"\n"


def test_times_are_exact():
    """A time is kept to the microsecond, however far from 1970."""
    (said,) = conversation([line(time="8999-12-31T23:59:59.123457Z")], "talk")
    assert said.said_at == datetime(8999, 12, 31, 23, 59, 59, 123457, tzinfo=UTC)


@pytest.mark.parametrize(
    "time",
    ["0999-12-31T23:59:59", "9000-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "yesterday", ""],
)
def test_a_time_outside_the_supported_years_is_refused(time):
    """Only years that every zone can render are taken; the line is named."""
    with pytest.raises(BadInput, match="talk, line 2: "):
        conversation([line(), line(time=time)], "talk")


@pytest.mark.parametrize("content", ["", "  \n\t", "\u3000"])
def test_a_message_without_words_is_refused(content):
    """Empty or blank content is refused with the number of its line."""
    with pytest.raises(BadInput, match=r"talk, line 2: .*content"):
        conversation([line(), line(content=content)], "talk")


def test_a_byte_order_mark_is_accepted():
    """A UTF-8 byte order mark is skipped at the very beginning of the file only."""
    assert len(conversation([b"\xef\xbb\xbf" + line(), line()], "talk")) == 2
    with pytest.raises(BadInput, match="line 2"):
        conversation([line(), b"\xef\xbb\xbf" + line()], "talk")


@pytest.mark.parametrize(("given", "kept"), [(None, ""), ("", ""), ("D1:1", "D1:1"), (7, "7"), (0, "0")])
def test_refs(given, kept):
    """A ref of null means no ref, and a number is kept as its digits."""
    (said,) = conversation([line(ref=given, name=None)], "talk")
    assert (said.event.ref, said.event.name) == (kept, "")


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff\xfe{\x00}\x00\n",
        b'{"role": "user", "content": "caf\xe9", "time": "2023-05-08"}\n',
        b'{"role": "user", "content": "x", "time": "2023-05-08", "more": "caf\xe9"}\n',
        b'{"role": "user", "content": "\\ud800", "time": "2023-05-08"}\n',
        b'{"role": "user", "content": "x", "time": "2023-05-08", "ref": ' + b"9" * 5000 + b"}\n",
        b'{"role": "user", "content": "x", "time": "2023-05-08", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=["utf-16", "content", "elsewhere", "surrogate", "digits", "deep", "deeper"],
)
def test_an_invalid_line_is_named(bad):
    """Bytes that are not UTF-8, half characters and endless nesting are refused as a bad line, never with a
    traceback.
    """
    with pytest.raises(BadInput, match=r"talk, line 2: .*Nothing of the file was kept"):
        conversation([line(), bad], "talk")

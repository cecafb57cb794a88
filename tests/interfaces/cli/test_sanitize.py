"""Text from outside is escaped where it is printed for people."""

import pytest

from everlog.interfaces.common.error_output import escape_line, sanitize


@pytest.mark.parametrize("text", ["\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\u200b", "\xad", "\ufeff", "\u2060",
                                  "\U000e0041", "\u3164", "sam\u200d", "sam\u200cx"])  # fmt: skip
def test_characters_that_control_or_hide_are_escaped(text: str) -> None:
    """Controls of terminals, of directions, and invisible characters are shown as escapes."""
    assert sanitize(text).isascii()


@pytest.mark.parametrize("text", ["Grüß dich", "👩\u200d🚀", "می\u200cخواهم", "क्\u200dष", "שלום", "日本語", "a\nb\tc"])
def test_words_of_all_languages_stay_readable(text: str) -> None:
    """Joiners inside emoji and inside words of scripts that need them stay, as line feeds and tabs do."""
    assert sanitize(text) == text


def test_a_sentence_stays_on_its_line() -> None:
    """`escape_line` escapes line feeds and tabs too."""
    assert escape_line("a\nb\tc\x1b") == "a\\nb\\tc\\x1b"

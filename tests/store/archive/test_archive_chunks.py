"""Long texts are divided into parts at paragraphs, sentences or words, and no text is lost."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.store.embedding.chunks import chunks


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_a_short_text_is_one_part_as_it_is() -> None:
    assert chunks(" as it is \n") == [" as it is \n"] and chunks("") == [""] and chunks(" " * 3000) == [""]


def test_paragraphs_then_sentences_then_words_are_kept_whole() -> None:
    """A part ends at the largest boundary that fits."""
    text = "One two. Three four.\n\nFive six. Seven eight nine."
    assert chunks(text, 30) == ["One two. Three four.", "Five six. Seven eight nine."]
    assert chunks(text, 22) == ["One two. Three four.", "Five six.", "Seven eight nine."]
    assert chunks("Seven eight nine.", 12) == ["Seven eight", "nine."]
    assert chunks("今天天气很好。我们去公园。你来吗?", 8) == ["今天天气很好。", "我们去公园。", "你来吗?"]


def test_no_character_is_divided() -> None:
    """A combining mark stays with its letter; a joined emoji and a flag stay whole."""
    assert chunks("abcde\u0301fgh", 5) == ["abcd", "e\u0301fgh"]
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert chunks("ab" + family + "cd", 5) == ["ab", family, "cd"]
    assert chunks("abc\U0001f1e9\U0001f1eade", 4) == ["abc", "\U0001f1e9\U0001f1eade"]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="ab .!?\n。字\u0301\U0001f600", max_size=400), st.integers(5, 60))
def test_parts_are_short_in_order_and_hold_everything(text: str, chars_max: int) -> None:
    """The parts have all characters except white space, in order; no part is too long; dividing a part again changes
    nothing.
    """
    parts = chunks(text, chars_max)
    assert squeezed("".join(parts)) == squeezed(text)
    assert all(len(part) <= chars_max for part in parts)
    assert [chunks(part, chars_max) for part in parts] == [[part] for part in parts]


def test_a_heading_begins_a_part_and_never_ends_one() -> None:
    """A text is found by the words of its heading too, because a heading begins a part."""
    text = "\n\n".join(f"## Heading {number}\n\n{'some words. ' * 12}" for number in range(9))
    parts = chunks(text, 200)
    assert len(parts) == 9
    assert all(part.startswith(f"## Heading {number}\n\nsome") for number, part in enumerate(parts))

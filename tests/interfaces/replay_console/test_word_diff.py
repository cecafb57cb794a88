"""Word-by-word differences between two texts."""

from hypothesis import given
from hypothesis import strategies as st

from everlog.interfaces.replay_console.word_diff import NEAR_CHARS, WORDS_MAX, around, difference

TEXTS = st.text(st.sampled_from("ab \n,漢"), max_size=60)


@given(TEXTS, TEXTS)
def test_both_texts_are_in_it(before: str, after: str) -> None:
    """Without the added parts the diff is the old text, without the removed parts the new text; no part is empty."""
    pieces = difference(before, after)
    assert "".join(text for change, text in pieces if change != "added") == before
    assert "".join(text for change, text in pieces if change != "removed") == after
    assert all(text for _, text in pieces)


def test_words_change_whole() -> None:
    """Appended words are added, a replacement follows the replaced word, and missing words are removed."""
    assert difference("Name: Chad", "Name: Chad\nSails") == [("same", "Name: Chad"), ("added", "\nSails")]
    assert difference("lives in Bergen now", "lives in Oslo now") == [
        ("same", "lives in"),
        ("removed", " Bergen"),
        ("added", " Oslo"),
        ("same", " now"),
    ]
    assert difference("a b c", "a c") == [("same", "a"), ("removed", " b"), ("same", " c")]
    assert difference("same", "same") == [("same", "same")]
    assert difference("", "") == []


def test_too_much_change_is_not_compared() -> None:
    """Beyond a limit the whole middle counts as replaced, so that a frame never waits for the comparison."""
    before, after = (" ".join(f"{kind}{n % 7}" for n in range(WORDS_MAX + 1)) for kind in "ab")
    assert difference(f"x {before} y", f"x {after} y") == [
        ("same", "x"),
        ("removed", f" {before}"),
        ("added", f" {after}"),
        ("same", " y"),
    ]


def test_only_words_near_a_change_stay() -> None:
    """Around a change some whole words are kept and the rest becomes an ellipsis; the change itself is complete."""
    long = "word " * 50
    pieces = around(difference(f"{long}old {long}end", f"{long}new {long}end"))
    assert [change for change, _ in pieces] == ["same", "removed", "added", "same"]
    assert pieces[0][1].startswith("…")
    assert pieces[-1][1].endswith("…")
    assert all(len(text) <= NEAR_CHARS + 1 for change, text in pieces if change == "same")
    assert around(difference("a b", "a c")) == difference("a b", "a c")

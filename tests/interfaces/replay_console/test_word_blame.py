"""Blame: every character of a text belongs to the edit that put it there."""

from itertools import count, pairwise

from hypothesis import strategies as st

from everlog.interfaces.replay_console.word_blame import blamed
from tests.support.law import law

TEXTS = st.lists(st.text(alphabet="ab .\n", max_size=40), max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "delete"]), st.integers(0, 30), st.integers(1, 6)), min_size=1, max_size=25
)


@law(TEXTS, few=60, many=20_000)
def test_every_character_belongs_to_one_edit(values):
    """The parts together are the newest value, no two neighbours have the same edit, none is empty, and each part's
    words were in the value of the edit that it names, and not the whole of the value before.
    """
    edits = list(enumerate(values, start=1))
    parts = blamed(edits)
    assert "".join(part.text for part in parts) == (values[-1] if values else "")
    assert all(part.text for part in parts)
    assert all(one.seq != other.seq for one, other in pairwise(parts))
    for part in parts:
        assert part.text in values[part.seq - 1]
        assert part.seq == 1 or values[part.seq - 1] != values[part.seq - 2]


@law(STEPS, few=60, many=20_000)
def test_a_plain_model_of_words_agrees(steps):
    """A list that keeps beside every word the edit that inserted it says the same, as long as no word occurs twice and
    none is moved: then only one answer is right.
    """
    fresh = count()
    words: list[tuple[str, int]] = []
    edits = []
    for seq, (what, place, size) in enumerate(steps, start=1):
        at = min(place, len(words))
        if what == "insert":
            words[at:at] = [(f" w{next(fresh)}", seq) for _ in range(size)]
        else:
            del words[at : at + size]
        edits.append((seq, "".join(word for word, _ in words)))
    found = [seq for part in blamed(edits) for seq in [part.seq] * len(part.text)]
    assert found == [seq for word, seq in words for _ in word]


def test_words_that_stay_keep_their_edit():
    """An edit in the middle of a text takes over the words that it wrote, and nothing on either side."""
    values = [(3, "Ann has a dog, Rex. She sails."), (9, "Ann has a cat, Tom. She sails."), (12, "")]
    assert blamed(values[:2]) == [(3, "Ann has a"), (9, " cat, Tom."), (3, " She sails.")]
    assert blamed(values) == []


def test_a_block_that_was_removed_begins_again():
    """Words that come back after the block was removed belong to the edit that brought them back."""
    assert blamed([(1, "The dog is Rex."), (4, ""), (7, "The dog is Rex.")]) == [(7, "The dog is Rex.")]

"""Blame: every character of a text belongs to the edit that put it there."""

from itertools import count, pairwise

from hypothesis import strategies as st

from everlog.interfaces.replay_console import word_blame
from everlog.interfaces.replay_console.word_blame import blamed
from everlog.interfaces.replay_console.word_diff import difference
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


def values_of_steps(steps):
    """Return the values that a text has after each step, with words that stay for long."""
    text, values = "", []
    for what, place, other, words in steps:
        at, to = sorted((min(place, len(text)), min(other, len(text))))
        if what == "append":
            text += words
        elif what == "replace":
            text = text[:at] + words + text[to:]
        elif what == "move":
            text = text[:at] + text[to:] + text[at:to]
        elif what == "clear" and place == other:
            text = ""
        values.append(text)
    return values


EDITS = st.lists(
    st.tuples(st.sampled_from(["append", "replace", "move", "clear", "same"]), st.integers(0, 30), st.integers(0, 30),
              st.text(alphabet="ab \n", max_size=5)),
    max_size=25,
)  # fmt: skip


@law(TEXTS | EDITS.map(values_of_steps), few=60, many=20_000)
def test_looking_back_says_the_same_as_carrying_every_edit_forward(values):
    """The blame of all edits, carried forward from the first, is the same: what comes from a value keeps its edit, and
    what an edit adds gets its own.
    """
    owners: list[int] = []
    before = ""
    for seq, value in enumerate(values, start=1):
        kept, after = iter(owners), []
        for change, text in difference(before, value) if value != before else [("same", value)]:
            mine = [next(kept) for _ in text] if change != "added" else []
            after += {"same": mine, "added": [seq] * len(text), "removed": []}[change]
        owners, before = after, value
    parts = blamed(list(enumerate(values, start=1)))
    assert [seq for part in parts for seq in [part.seq] * len(part.text)] == owners


def test_an_old_word_is_found_behind_many_edits_without_comparing_each(monkeypatch):
    """Words at the beginning that thousands of edits left alone are traced to the first edit with few comparisons."""
    compared = []
    monkeypatch.setattr(word_blame, "difference", lambda *texts: compared.append(texts) or difference(*texts))
    values = [(seq, f"Name: Ann.\nLast seen on day {seq}.") for seq in range(1, 3000)]
    assert blamed(values) == [(1, "Name: Ann.\nLast seen on day"), (2999, " 2999.")]
    assert len(compared) == 2

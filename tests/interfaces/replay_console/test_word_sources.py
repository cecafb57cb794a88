"""Words of a text in the texts that its author had in sight: nothing is lost, and what is marked was really there."""

from hypothesis import strategies as st

from everlog.interfaces.replay_console.word_sources import SeenKind, SeenText, trace_words
from tests.support.law import law


def seen(*texts: str, kind: SeenKind = "user") -> list[SeenText]:
    """Return texts in sight, the first at event 1."""
    return [SeenText(seq, kind, "", seq, text) for seq, text in enumerate(texts, 1)]


def marked(text: str, sources: list[SeenText]) -> list[tuple[str, int]]:
    """Return the marked words of a text, each with the event that had them."""
    runs, _ = trace_words(text, sources)
    return [(run.text, sources[run.source].seq) for run in runs if run.source is not None]


def test_words_lead_to_the_text_that_had_them_first() -> None:
    """Of two texts with the same words the older one is named, and the longest run of equal words counts."""
    sources = seen("My dog Rex died in March.", "We sail on a lake.", "Rex was a good dog.", "Then Rex died in March")
    assert marked("I am sorry that Rex died in March; sail well!", sources) == [("Rex died in March", 1)]


def test_the_words_of_others_come_before_the_agents_own() -> None:
    """A text of the agent itself is named only if no other text has it."""
    own = SeenText(1, "agent", "sam", 1, "Lisbon is lovely")
    sources = [own, *(SeenText(2, "user", "", 2, text) for text in ("I live in Lisbon",))]
    assert marked("Lisbon, lovely", sources) == [("Lisbon", 2), ("lovely", 1)]


def test_words_that_are_everywhere_tell_nothing() -> None:
    """Short words, and words that many texts have, are not marked alone; four of them in a row are. A name or a number
    is marked however short it is, with the words between two of them, and without the words around them.
    """
    many = seen(*["this is what they said about that"] * 30)
    assert marked("about said that", many) == []
    assert marked("In May: the 7 of us, in Ulm", seen("We met in May", "the 7 dwarfs")) == [("May", 1), ("7", 2)]
    assert marked("It was an Old and Wise", seen("my Old and Wise cat")) == [("Old and Wise", 1)]
    assert marked("they said about that", many) == [("they said about that", 1)]
    assert marked("it is on", seen("it was so", "so on")) == []


def test_case_and_signs_do_not_matter() -> None:
    """Words are equal whatever their case, and whatever stands between them."""
    assert marked("harpsichord, LISBON", seen("Harpsichord Lisbon")) == [("harpsichord, LISBON", 1)]


def test_an_excerpt_of_a_long_text_has_the_words() -> None:
    """The excerpt of a long text is short, has the shared words whole, and says where something is left out."""
    long = f"{'so it is ' * 2000}Rex died in March{' and so on' * 2000}"
    _, shared = trace_words("Rex died in March", seen(long))
    pieces = shared[0].pieces
    assert [text for hit, text in pieces if hit] == ["Rex died in March"]
    assert sum(len(text) for _, text in pieces) < 400 and pieces[0][1].startswith("…") and pieces[-1][1].endswith("…")


texts = st.lists(st.sampled_from(["Rex", "dog", "died", "the", "in", "March", "sail", ", ", "\n", "é"]), max_size=30)


@law(texts, st.lists(texts, max_size=6), few=200, many=20_000)
def test_nothing_is_lost_and_nothing_is_made_up(given, sources):
    """The parts together are the text; every marked part has its words, in that order, in the text that it names; and
    every excerpt of a short text is that text.
    """
    text, known = " ".join(given), seen(*(" ".join(one) for one in sources))
    runs, shared = trace_words(text, known)
    assert "".join(run.text for run in runs) == text
    for run in runs:
        if run.source is not None:
            words = run.text.replace(",", " ").casefold().split()
            assert (
                f" {' '.join(words)} " in f" {' '.join(known[run.source].text.replace(',', ' ').casefold().split())} "
            )
            assert run.source in shared
    for one in shared.values():
        if len(one.seen.text) < 200:
            assert "".join(part for _, part in one.pieces) == one.seen.text

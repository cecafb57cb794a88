"""Index one agent's talk in memory: the words of each passage, and the facts of each message as arrays.

An index grows at its end only, and a `TalkView` shows its first messages, so a view of an earlier moment equals the
view of an index that was never given the later messages. Nothing of a neighbour is stored with a message: the message
before and after, the session, the day and the speaker's habits are computed from the view at each query.

Used by `recall_search`, which appends, and by the ranking, which reads views. An edit must not store anything that
depends on later messages, or on how many messages were appended at once. For one thread at a time; a view may be read
by another thread, except its postings.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from everlog.events.times import MICROSECONDS
from everlog.projections.search.talk_postings import TalkPostings
from everlog.projections.search.talk_words import STATED_SHIFT, UNIT_SHIFT, NewWords, StemNumbers
from everlog.projections.search.utterance import Utterance
from everlog.store.base.function_words import FUNCTION_WORDS
from everlog.store.base.stemming import stems
from everlog.store.embedding.chunks import passages

LINKED_US = 3600 * MICROSECONDS
"""Microseconds: a message continues the one before it if less time than this lies between them."""
LANGUAGES = tuple(FUNCTION_WORDS)
"""Names of the numbers of languages."""
AT_ONCE = 8192
"""Maximum number of messages that are indexed at once: more would take much memory for a moment."""
ROLES = ("user", "assistant")
"""Names of the numbers in `TalkView.role`."""

NO_STEM = -1
"""Number of a stem that does not occur."""
STEM_BYTES, TEXT_BYTES = 100, 120
"""Approximate bytes in memory of a stem without its postings, and of a message besides its characters."""


class TalkView:
    """Everything that had been said by a moment, in order: the first messages of an index.

    Arrays share memory with the index, and must not be changed. A message is named by its place, from 0, a passage by
    its unit, from 0.
    """

    def __init__(self, index: "TalkIndex", count: int) -> None:
        """Show the first `count` messages of an index."""
        columns = index.columns
        self._index = index
        self.seq = columns["seq"].first(count)
        self.time = columns["time"].first(count)
        """Microseconds UTC."""
        self.role = columns["role"].first(count)
        """Place in ROLES of the role of each message."""
        self.speaker = columns["speaker"].first(count)
        """Place in `names` of the speaker's name of each message."""
        self.names: Sequence[str] = index.names[: int(columns["names"].first(count)[-1]) if count else 1]
        """Names of speakers in the order of their first message, after the empty name of messages without one."""
        spoken = int(columns["languages"].first(count)[-1]) if count else 0
        self.languages = [name for number, name in enumerate(LANGUAGES) if spoken >> number & 1]
        """Languages of all messages."""
        self.chars = columns["chars"].first(count)
        """Length of each message in characters."""
        self.linked = columns["linked"].first(count)
        """True for each message that continues the one before it."""
        self.first_unit = columns["first_unit"].first(count + 1)
        """First unit of each message, and at the end the number of all units."""
        self.units = int(self.first_unit[-1])
        """Number of units."""
        self.unit_words = columns["unit_words"].first(self.units)
        """Number of stems of each unit."""
        self.unit_asked = columns["unit_asked"].first(self.units)
        """Number of stems of the questions of each unit."""
        self.message_of = columns["message_of"].first(self.units)
        """Place of the message of each unit."""
        self._postings: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.seq)

    @cached_property
    def name_stems(self) -> Sequence[frozenset[str]]:
        """Stems of each name in `names`."""
        return [frozenset(stems(name)) for name in self.names]

    def postings(self, stem: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the units that contain a stem, ascending (int32), and how often each contains it in statements and in
        questions (uint8, at most COUNT_MAX). They are unpacked once.
        """
        if (known := self._postings.get(stem)) is not None:
            return known
        packed = self._index.packed(stem)
        if len(self) < len(self._index):
            packed = packed[: int(np.searchsorted(packed, np.uint64(self.units << UNIT_SHIFT)))]
        units = (packed >> np.uint64(UNIT_SHIFT)).astype(np.int32)
        stated = (packed >> np.uint64(STATED_SHIFT)).astype(np.uint8)
        found = self._postings[stem] = units, stated, packed.astype(np.uint8)
        return found

    def places_with(self, stem: str) -> np.ndarray:
        """Return the places of the messages that contain a stem, ascending."""
        places = self.message_of[self.postings(stem)[0]]
        return places if self.units == len(self) else places[np.flatnonzero(np.diff(places, prepend=-1))]

    @property
    def introduced(self) -> dict[int, Any]:
        """Names that messages introduce, by the place of the message, for those that were read (`aliases`)."""
        return self._index.introduced

    def text(self, place: int) -> str:
        """Return the text of a message."""
        return self._index.texts[place]

    def ref(self, place: int) -> str:
        """Return the reference of a message in its source; empty if it has none."""
        return self._index.refs[place]

    def name(self, place: int) -> str:
        """Return the speaker's name of a message; empty if it has none."""
        return self.names[self.speaker[place]]

    def message(self, place: int) -> tuple[str, str, str]:
        """Return role, name and text of a message."""
        return ROLES[self.role[place]], self.name(place), self.text(place)

    def passages(self, place: int) -> list[str]:
        """Return the passages of a message: the texts of its units."""
        return passages(self._index.texts[place])

    def passage(self, unit: int) -> str:
        """Return the text of a unit."""
        place = int(self.message_of[unit])
        return self.passages(place)[unit - int(self.first_unit[place])]


class TalkIndex:
    """Messages of one incarnation of an agent, in the order in which they were said."""

    def __init__(self) -> None:
        self.columns = {
            "seq": _Column(np.int64), "time": _Column(np.int64), "role": _Column(np.int8),
            "speaker": _Column(np.int32), "names": _Column(np.int32), "chars": _Column(np.int32),
            "languages": _Column(np.int64), "linked": _Column(np.bool_), "first_unit": _Column(np.int64, [0]),
            "unit_words": _Column(np.float32), "unit_asked": _Column(np.float32), "message_of": _Column(np.int32),
        }  # fmt: skip
        """Facts of all messages, and of all units. `names`: number of names known by each message; `languages`: set of
        the languages that were spoken by then, a bit for each of LANGUAGES.
        """
        self.names = [""]
        self.texts: list[str] = []
        self.refs: list[str] = []
        self.introduced: dict[int, Any] = {}
        """Names that messages introduce, by place, as far as they were read: they depend on the message alone."""
        self._speakers = {"": 0}
        self._numbers = StemNumbers()
        self._postings = TalkPostings()
        self._text_bytes = self._languages = 0

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.texts)

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        columns = sum(column.size for column in self.columns.values())
        stems = len(self._numbers) * STEM_BYTES + self._postings.size
        return columns + stems + self._text_bytes + len(self.texts) * TEXT_BYTES

    def append(self, said: Iterable[Utterance]) -> None:
        """Add messages that were said after all that the index has."""
        rest = iter(said)
        words = NewWords(self._numbers, int(self.columns["first_unit"].first(len(self) + 1)[-1]))
        while some := list(islice(rest, AT_ONCE)):
            self._append(some, words)

    def _append(self, said: Sequence[Utterance], words: NewWords) -> None:
        begin, end = len(self), len(self) + len(said)
        facts = [self._facts(one, words) for one in said]
        names = ("seq", "time", "role", "speaker", "names", "chars", "languages", "first_unit")
        for name, values in zip(names, zip(*facts, strict=True), strict=True):
            self.columns[name].extend(values)
        time = self.columns["time"].first(end)[max(begin - 1, 0) :]
        linked = np.diff(time) < LINKED_US
        self.columns["linked"].extend(linked if begin else np.concatenate([[False], linked]))
        lengths = words.lengths()
        self.columns["unit_words"].extend(lengths.sum(axis=1))
        self.columns["unit_asked"].extend(lengths[:, 1])
        units = np.diff(self.columns["first_unit"].first(end + 1)[begin:])
        self.columns["message_of"].extend(np.repeat(np.arange(begin, end), units))
        self._postings.add(*words.take_postings())

    def _facts(self, one: Utterance, words: NewWords) -> tuple[int, ...]:
        """Add the texts of a message. Return its numbers."""
        speaker = self._speakers.setdefault(one.name, len(self.names))
        if speaker == len(self.names):
            self.names.append(one.name)
        self.texts.append(one.text)
        self.refs.append(one.ref)
        self._text_bytes += one.text.__sizeof__()
        units, language = words.add(one.text)
        self._languages |= 1 << LANGUAGES.index(language)
        return (
            one.seq, one.time, ROLES.index(one.role), speaker, len(self.names), len(one.text),
            self._languages, units,
        )  # fmt: skip

    def view(self, count: int | None = None) -> TalkView:
        """Return a view of the first `count` messages; None: of all."""
        return TalkView(self, len(self) if count is None else count)

    def packed(self, stem: str) -> np.ndarray:
        """Return the postings of a stem, ascending: unit, statements and questions in one number each."""
        return self._postings.of(self._numbers.get(stem, NO_STEM))


class _Column:
    """Numbers that are appended. Capacity grows by half; arrays that were handed out keep their values."""

    def __init__(self, kind: Any, values: Sequence[int] = ()) -> None:
        self._room = np.array(values, kind)
        self._count = len(values)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self._room.nbytes

    def first(self, count: int) -> np.ndarray:
        """Return the first `count` values, which must not be changed."""
        return self._room[:count]

    def extend(self, values: Any) -> None:
        """Append values."""
        end = self._count + len(values)
        if end > len(self._room):
            room = np.empty(end + end // 2, self._room.dtype)
            room[: self._count] = self._room[: self._count]
            self._room = room
        self._room[self._count : end] = values
        self._count = end

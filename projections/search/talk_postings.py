"""Keep the postings of all stems of one talk in a few arrays: an array for each stem takes 150 bytes before its first.

Part of `talk_index`. Postings come in the order of their units, so that those of a stem are in order as they came.
"""

import numpy as np

MERGED_PART = 8
"""New postings are merged with the others when there are more of them than one for so many others."""


class _SortedRun:
    """Postings by the number of their stem, and of one stem in the order in which they came."""

    def __init__(self) -> None:
        self.stems = np.empty(0, np.int32)
        self.packed = np.empty(0, np.uint64)

    def add(self, stems: np.ndarray, packed: np.ndarray) -> None:
        """Add later postings. Arrays that were handed out keep their values."""
        stems = np.concatenate([self.stems, stems.astype(np.int32)])
        order = np.argsort(stems, kind="stable")  # merges what is sorted already
        self.stems, self.packed = stems[order], np.concatenate([self.packed, packed])[order]

    def of(self, stem: int) -> np.ndarray:
        """Return the postings of a stem."""
        return self.packed[self.stems.searchsorted(stem) : self.stems.searchsorted(stem, "right")]


class TalkPostings:
    """Postings of the stems of one talk. For one thread at a time."""

    def __init__(self) -> None:
        self._old, self._new = _SortedRun(), _SortedRun()

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(run.stems.nbytes + run.packed.nbytes for run in (self._old, self._new))

    def add(self, stems: np.ndarray, packed: np.ndarray) -> None:
        """Add postings of later units, with the number of the stem of each."""
        self._new.add(stems, packed)
        if len(self._new.stems) * MERGED_PART > len(self._old.stems):
            self._old.add(self._new.stems, self._new.packed)
            self._new = _SortedRun()

    def of(self, stem: int) -> np.ndarray:
        """Return the postings of the stem of that number, in the order of their units. It must not be changed."""
        old, new = self._old.of(stem), self._new.of(stem)
        return np.concatenate([old, new]) if len(new) else old

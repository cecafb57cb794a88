"""P9 of the contract: extreme sizes, lengths, characters and counters."""

import pytest

from everlog.events import BadInput, WrongSequence
from everlog.store import APPEND_BYTES_MAX, Append, Log, Store
from tests.contract.draft_builders import Drafts

MIB = 2**20
SIZES = [0, 1, MIB // 16 - 1, MIB // 16, MIB // 16 + 1, 16 * MIB - 1, 16 * MIB, 16 * MIB + 1]
BORDERS = [99_999, 999_999, 2**31 - 1, 2**32 - 1, 2**53 - 1, 2**62]
"""Numbers beyond which counting in five or six digits, in 32 bits, or in floating point would fail."""
NAMES = [
    "/", "a/../b", "..", ".", "~", "C:\\x", "é" * 127 + "x", "x" * 255, "🦉" * 63, "\n", "\0", " ", " a", "CON", "-",
    "%2F", "ſ", "ß", "İ", "日本語", "אב", "a\u200db", "'; DROP TABLE records; --", "a" * 2, "A",
]  # fmt: skip


class WidthContract:
    """Tests that every implementation must pass."""

    def stand_at(self, store: Store, agent_id: str, seq: int, commit: int) -> None:
        """Leave one record of the registered `agent_id` with this seq and commit, as if all earlier ones existed."""
        raise NotImplementedError

    @pytest.mark.parametrize("border", BORDERS)
    def test_p9_counters_cross_their_borders(self, store: Store, drafts: Drafts, border: int) -> None:
        """Seq and commit continue beyond 99,999, 2**31, 2**32 and 2**53, also after the log is opened again."""
        store.register("sam")
        self.stand_at(store, "sam", border - 2, border - 2)
        for number in range(border - 1, border + 3):
            log = store.open("sam", "test")
            with pytest.raises(WrongSequence, match=str(number - 1)):
                log.append("sam", number, drafts.some(1))
            commit = log.append("sam", number - 1, drafts.some(1))
            assert (commit.number, commit.records[0].seq, commit.records[0].commit) == (number, number, number)
            assert log.append("sam", 0, drafts_of(commit, drafts)).repeated
            log.close()
        reader = store.reader("sam")
        assert reader.head("sam").seq == border + 2
        assert [record.seq for record in reader.read("sam", border, border + 1)] == [border, border + 1]
        assert reader.table().column("seq").to_pylist() == list(range(border - 2, border + 3))
        assert reader.table().column("commit").to_pylist() == list(range(border - 2, border + 3))

    @pytest.mark.parametrize("size", SIZES)
    def test_p9_text_and_payload_of_any_size(self, store: Store, log: Log, drafts: Drafts, size: int) -> None:
        """Texts and payloads of no bytes, one byte, 64 KiB and 16 MiB, and sizes next to these, are read back
        unchanged.
        """
        text, payload = "t" * size, '"' + "p" * max(0, size - 2) + '"' if size else ""
        log.append("sam", 0, [drafts.one(text, payload), drafts.one(None, payload), drafts.one("")])
        log.append("sam", 3, drafts.some(1))
        found = [(record.text, record.payload) for record in store.reader("sam").read("sam", 1, 3)]
        assert found == [(text, payload), (None, payload), ("", "{}")]

    def test_p9_a_commit_of_just_the_limit(self, store: Store, log: Log, drafts: Drafts) -> None:
        """APPEND_BYTES_MAX bytes of text are accepted; one byte more raises BadInput, with any characters."""
        with pytest.raises(BadInput):
            log.append("sam", 0, [drafts.one("é" * (APPEND_BYTES_MAX // 2 - 1) + "x")])
        with pytest.raises(BadInput):
            log.append("sam", 0, [drafts.one("x" * (APPEND_BYTES_MAX - 2)), drafts.one("", "1")])
        log.append("sam", 0, [drafts.one("x" * (APPEND_BYTES_MAX - 2))])
        assert len(next(iter(store.reader("sam").read("sam"))).text or "") == APPEND_BYTES_MAX - 2

    def test_p9_a_commit_of_many_events(self, store: Store, log: Log, drafts: Drafts) -> None:
        """A commit may have ten thousand events."""
        commit = log.append("sam", 0, drafts.some(10_000))
        assert {record.commit for record in commit.records} == {1}
        assert [record.seq for record in store.reader("sam").read("sam")] == list(range(1, 10_001))

    def test_p9_strange_names_share_a_partition(self, store: Store, log: Log, drafts: Drafts) -> None:
        """Names with slashes, control characters, quotes and all scripts are distinct agents in one group."""
        for _ in range(2):
            results = log.append_group([Append(name, log.head(name).seq, drafts.some(2)) for name in NAMES])
            assert [result.agent_id for result in results] == NAMES  # type: ignore[union-attr]
        reader = store.reader("sam")
        assert reader.agents() == sorted(NAMES)
        for name in NAMES:
            assert [(record.agent_id, record.seq) for record in reader.read(name)] == [
                (name, seq) for seq in range(1, 5)
            ]
            assert reader.table(name).num_rows == 4

    @pytest.mark.parametrize("name", ["", "x" * 256, "é" * 128, "\ud800"])
    def test_p9_an_append_to_an_impossible_name_is_refused(self, log: Log, drafts: Drafts, name: str) -> None:
        """A name of no bytes, of more than 255, or with half a character raises BadInput, and nothing of its group is
        written.
        """
        with pytest.raises(BadInput):
            log.append(name, 0, drafts.some(1))
        with pytest.raises(BadInput):
            log.append_group([Append("sam", 0, drafts.some(1)), Append(name, 0, drafts.some(1))])
        assert log.agents() == []


def drafts_of(commit, drafts: Drafts) -> list:
    """Return the drafts of this commit's records, to be sent again."""
    return [drafts.one(record.text, record.payload, event_id=record.event_id) for record in commit.records]

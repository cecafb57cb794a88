"""Reads as of any moment: a table up to a seq, the chain value at a seq, and the newest state up to a seq."""

import pyarrow as pa
import pytest

from everlog.events import GENESIS, BadInput, extend
from everlog.store import Log, LogReader, Store
from tests.contract.draft_builders import Drafts
from tests.contract.seal_contract import erasing


class Tally:
    """A `Derive` whose state has each agent's last seq and last text."""

    maker = "tally"

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        found = {row["agent_id"]: row for row in (earlier.to_pylist() if earlier is not None else [])}
        for row in records.to_pylist():
            before = found.get(row["agent_id"], {"seq": 0})
            assert row["seq"] == before["seq"] + 1, "a state is derived from every record, in order"
            found[row["agent_id"]] = {"agent_id": row["agent_id"], "seq": row["seq"], "said": row["text"]}
        schema = pa.schema([("agent_id", pa.string()), ("seq", pa.int64()), ("said", pa.string())])
        return pa.Table.from_pylist([found[name] for name in sorted(found)], schema=schema)


def assert_moments(reader: LogReader, agent_id: str = "sam") -> None:
    """Check the chain at every seq, and the newest state up to every seq, against the records."""
    records = list(reader.read(agent_id))
    chain = GENESIS
    assert reader.chain(agent_id, 0) == chain
    for record in records:
        chain = extend(chain, record)
        assert reader.chain(agent_id, record.seq) == chain
        assert_state(reader, agent_id, record.seq)
    assert chain == reader.head(agent_id).chain
    for seq in (-1, len(records) + 1, 2**62):
        with pytest.raises(BadInput, match=f"1 to {len(records)}\\."):
            reader.chain(agent_id, seq)


def assert_state(reader: LogReader, agent_id: str, as_of: int) -> None:
    """Check that the state up to a seq equals the records up to its own seq, and that it is the newest one: the state
    up to each seq from its own on, if that up to the seq before `as_of` was the newest one.
    """
    state = reader.state(agent_id, Tally.maker, as_of)
    if state is None:
        return
    assert state.seq <= as_of
    of = reader.table(agent_id, 1, state.seq).to_pylist()
    assert state.rows.to_pylist() == [{"agent_id": agent_id, "seq": len(of), "said": of[-1]["text"]}]
    if state.seq < as_of:
        before = reader.state(agent_id, Tally.maker, as_of - 1)
        assert before is not None and before.seq == state.seq


class MomentContract:
    """Tests that every implementation must pass; without stored states there is none at any moment."""

    def talk(self, log: Log, drafts: Drafts, rounds: int) -> None:
        for _ in range(rounds):
            for agent_id in ("ann", "sam"):
                log.append(agent_id, log.head(agent_id).seq, drafts.some(3))

    def test_a_table_has_the_requested_range(self, log: Log, drafts: Drafts) -> None:
        """from_seq and to_seq are inclusive, before and after sealing; beyond the head there are no records."""
        self.talk(log, drafts, 2)
        for _ in range(2):
            for start, end, expected in [(1, 4, [1, 2, 3, 4]), (2, 2, [2]), (5, 99, [5, 6]), (1, 0, []), (7, 8, [])]:
                assert log.table("sam", start, end).column("seq").to_pylist() == expected
            log.seal(Tally())

    def test_p19_the_chain_and_the_states_of_every_moment(self, store: Store, log: Log, drafts: Drafts) -> None:
        """Unsealed, sealed, merged and opened again, the chain at each seq is that of the records up to it."""
        assert log.chain("sam", 0) == GENESIS
        for rounds in (3, 1, 9):
            self.talk(log, drafts, rounds)
            assert_moments(log)
            log.seal(Tally())
            assert_moments(log)
            assert_moments(store.reader("sam"))
        log.append("sam", log.head("sam").seq, drafts.some(2))
        log.close()
        assert_moments(store.reader("sam"))
        assert_moments(store.reader("sam"), "ann")

    def test_p18_an_erasure_changes_no_chain_value_and_leaves_no_state_that_quotes(self, log: Log, drafts: Drafts
                                                                                    ) -> None:  # fmt: skip
        """After an erasure every later state equals the remaining records, and the chain is unchanged."""
        self.talk(log, drafts, 4)
        log.seal(Tally())
        chains = [log.chain("sam", seq) for seq in range(13)]
        log.append("sam", 12, [erasing(5, 7)])
        log.seal(Tally())
        assert [log.chain("sam", seq) for seq in range(13)] == chains
        assert_moments(log)
        assert_moments(log, "ann")

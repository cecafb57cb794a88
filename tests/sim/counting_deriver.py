"""A state that can be judged: the number of an agent's records, which must equal its last seq."""

import pyarrow as pa

SCHEMA = pa.schema([("agent_id", pa.string()), ("seq", pa.int64()), ("count", pa.int64())])


class Counting:
    """A `store.Derive`."""

    maker = "counting-1"

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        counts: dict[str, tuple[int, int]] = {}
        for row in [] if earlier is None else earlier.to_pylist():
            counts[row["agent_id"]] = (row["seq"], row["count"])
        for agent_id, seq in zip(
            records.column("agent_id").to_pylist(), records.column("seq").to_pylist(), strict=True
        ):
            counts[agent_id] = (seq, counts.get(agent_id, (0, 0))[1] + 1)
        rows = [{"agent_id": name, "seq": seq, "count": count} for name, (seq, count) in sorted(counts.items())]
        return pa.Table.from_pylist(rows, SCHEMA)

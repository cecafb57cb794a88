"""Make a fleet of many agents fast: one agent plays a conversation with the offline model, the others get its records.

Used by `bench.listing`. The logs are valid, requests and replies too: `everlog verify` finds no difference in them.
"""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

from everlog.actors.api import open_system
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Draft, Record, StoreError
from everlog.projections import DERIVER
from everlog.store import Append, FileStore, Log

IDS = RealIds()
SHARDS = 4
TEMPLATE = "template"
SAID = (
    "Good morning! My name is Ann.", "I have a dog, Rex.", "Where did I say that I live?", "Thank you, that is kind.",
)  # fmt: skip
"""Messages of the conversation."""
AGENTS_AT_ONCE = 500
"""Number of agents whose records are appended together."""
AWAKE_OF = 10
"""One in this many agents has its last turn in the open file of its shard; the records of the others are sealed."""


def make(folder: Path, agents: int) -> FileStore:
    """Create a store with `agents` agents and the one whose records they got."""
    records = asyncio.run(_played(folder))
    store = FileStore(folder, RealClock().now)
    names = [f"fleet-{number:05}" for number in range(1, agents + 1)]
    store.register_many(names, shared=True)
    last = next(place for place, record in enumerate(records) if record.turn == records[-1].turn)
    places = store.assigned()
    for partition, group in itertools.groupby(sorted(names, key=places.__getitem__), key=places.__getitem__):
        _write(store, partition, list(group), records, last)
    return store


async def _played(folder: Path) -> Sequence[Record]:
    """Return the records of an agent that has answered each message of `SAID`."""
    async with open_system(folder, runtime="local", placement="shared", shards=SHARDS) as system:
        agent = await system.agent(TEMPLATE)
        for text in SAID:
            await agent.ask(text)
        return list(system.store.reader(TEMPLATE).read(TEMPLATE))


def _write(store: FileStore, partition: str, names: Sequence[str], records: Sequence[Record], last: int) -> None:
    """Append `records` under each name. Those from `last` on stay unsealed for one agent in `AWAKE_OF`."""
    log = store.open_partition(partition, "bench.listing")
    copies = {name: _copied(records) for name in names}
    awake = names[::AWAKE_OF]
    try:
        ends = {**dict.fromkeys(names, len(records)), **dict.fromkeys(awake, last)}
        _append(log, [Append(name, 0, copies[name][: ends[name]]) for name in names])
        log.seal(DERIVER)
        _append(log, [Append(name, last, copies[name][last:]) for name in awake])
    finally:
        log.close()


def _append(log: Log, appends: Sequence[Append]) -> None:
    for start in range(0, len(appends), AGENTS_AT_ONCE):
        for outcome in log.append_group(appends[start : start + AGENTS_AT_ONCE]):
            if isinstance(outcome, StoreError):
                raise outcome


def _copied(records: Sequence[Record]) -> Sequence[Draft]:
    """Return drafts of the records with ids of their own. Times stay: requests contain them."""
    new = {record.event_id: IDS.new(record.recorded_at) for record in records}
    return [
        Draft(
            **{field: getattr(record, field) for field in Draft.__struct_fields__}
            | {"event_id": new[record.event_id], "cause": new.get(record.cause or "", record.cause)}
        )
        for record in records
    ]

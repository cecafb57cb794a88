"""Create agents with a past, fast: one imports a conversation, the others get its records, as many as they need.

Used by `bench.fleet`. The histories must be valid logs: agents are opened from them.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.replay import Pair
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.api import open_system
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Draft, MessageSent, Record, UserMessage
from everlog.events.times import moment
from everlog.projections import DERIVER
from everlog.store import FileStore

MESSAGES = 980
"""Number of messages that the template imports: with its first records and its summaries, about a thousand records."""
COMMIT_RECORDS = 20_000
FIRST_SAID_AT = 1_700_000_000_000_000
SPOKEN = ("user_message", "message_sent")


async def template(store: Path, pairs: Sequence[Pair], shards: int) -> Sequence[Record]:
    """Return the records of an agent that has imported a conversation."""
    said = itertools.islice(itertools.cycle(itertools.chain.from_iterable(pairs)), MESSAGES)
    kinds = (UserMessage, MessageSent)
    past = [
        ImportedMessage(kinds[number % 2](text=text, imported=True), moment(FIRST_SAID_AT + number * 1_000_000))
        for number, text in enumerate(said)
    ]
    async with open_system(store, runtime="local", placement="shared", shards=shards) as system:
        agent = await system.agent("template")
        await agent.import_messages(past)
        return list(system.store.reader("template").read("template"))


def grow(store: FileStore, records: Sequence[Record], ages: Mapping[str, int]) -> None:
    """Create agents with so many events each, in their shards, and seal them."""
    store.register_many(ages, shared=True)
    places = store.assigned()
    for partition, names in itertools.groupby(sorted(ages, key=places.__getitem__), key=places.__getitem__):
        log = store.open_partition(partition, "bench.fleet")
        try:
            for name in names:
                seq = 0
                drafts = _drafts(repeated_history(records, ages[name]))
                while some := list(itertools.islice(drafts, COMMIT_RECORDS)):
                    log.append(name, seq, some)
                    seq += len(some)
            log.seal(DERIVER)
        finally:
            log.close()


def repeated_history(records: Sequence[Record], events: int) -> Iterator[Record]:
    """Yield a history of `events` records, at least as many as `records`: the messages are repeated."""
    spoken = [record for record in records if record.type in SPOKEN]
    first = next(place for place, record in enumerate(records) if record.type in SPOKEN)
    rest = [record for record in records[first:] if record.type not in SPOKEN]
    more = max(0, events - len(records))
    yield from records[:first]
    yield from itertools.islice(itertools.cycle(spoken), len(spoken) + more)
    yield from (_later(record, more) for record in rest)


def _later(record: Record, by: int) -> Record:
    """Return a record; a summary is extended to cover `by` more records."""
    if record.type != "summary" or not by:
        return record
    payload = json.loads(record.payload)
    for key in ("covers_to", "kept_from", "hidden", "total"):
        payload[key] += by
    return Record(
        **{field: getattr(record, field) for field in Record.__struct_fields__} | {"payload": json.dumps(payload)}
    )


def _drafts(records: Iterable[Record]) -> Iterator[Draft]:
    clock, ids = RealClock(), RealIds()
    now = clock.now()
    for record in records:
        values = {field: getattr(record, field) for field in Draft.__struct_fields__}
        yield Draft(**values | {"event_id": ids.new(now), "recorded_at": now, "cause": None})

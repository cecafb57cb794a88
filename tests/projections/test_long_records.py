"""Long records take memory once: an agent whose model or user sent megabytes can be read again."""

import msgspec
import pyarrow as pa

from everlog.events import Call, Event, ModelReply, Record, Usage, draft, place, uuid7
from everlog.projections import Projections
from everlog.store import batch_of
from tests.laws.test_projections import BIRTH

MEGABYTE = 2**20


def long_replies(count: int, size: int) -> list[Record]:
    """Return the records of an agent whose model called a function so many times, with arguments of so many bytes."""
    usage = Usage(90, 10, 100, cached=7)
    life: list[Event] = list(BIRTH)
    for _ in range(count):
        called = Call("c", "message_agent", f'{{"name": "bob", "message": "{"a" * size}"}}')
        life.append(ModelReply(calls=[called], usage=usage, context_sha256="0", context_bytes=9))
    return [
        place(draft(event, event_id=uuid7(seq, seq), recorded_at=seq, turn=1, step=0), "sam", seq, seq)
        for seq, event in enumerate(life, 1)
    ]


def test_an_agent_with_many_long_replies_can_be_read() -> None:
    """An engine that has memory for twice the records takes them all, at once and one by one, with their figures."""
    records = long_replies(16, 2 * MEGABYTE)
    for portions in ([records], [[record] for record in records]):
        with Projections(memory_mb=100) as engine:
            for portion in portions:
                engine.load(pa.Table.from_batches([batch_of(portion)]))
            replies = engine.sql("SELECT tokens, ratio, cached FROM records WHERE ratio > 0")
            assert replies == [{"tokens": 100, "ratio": 10.0, "cached": 7}] * 16


def test_the_memory_of_all_agents_is_counted_however_many_portions_they_take() -> None:
    """Of agents whose records are inserted in several portions, each has the counts of its memory header."""
    long = long_replies(6, 2 * MEGABYTE)
    short = [msgspec.structs.replace(record, agent_id="ann") for record in long[: len(BIRTH)]]
    with Projections() as engine:
        engine.load(pa.Table.from_batches([batch_of([*short, *long])]))
        counted = engine.sql("SELECT agent_id FROM records WHERE recall IS NOT NULL")
    assert {row["agent_id"] for row in counted} == {"ann", "sam"}

"""Derive memories of one agent: read what is new, let a deriver conclude from it, and commit the conclusions together
with the cursor.

The cursor, `memories_derived`, is in the same commit as what it covers: an edit must keep that, because after a crash
the next derivation begins there, so nothing is lost or concluded twice. Used by the agent's host, and never in a turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol

from everlog.actors.derivation.conclusions import (
    Conclusions,
    DerivationReport,
    Deriver,
    Evidence,
    Material,
    checked,
    source_kinds,
)
from everlog.actors.ports.agent_constants import DERIVE_MESSAGES_MAX
from everlog.events import (
    AgentCreated,
    DerivationKind,
    DerivedEvent,
    Event,
    MemoriesDerived,
    MessageSent,
    Record,
    UserMessage,
    event_of,
    is_erased,
)


class DerivingAgent(Protocol):
    """Interface of the agent that a derivation uses."""

    agent_id: str
    head: int
    zone: str

    @property
    def turn(self) -> int: ...

    def records(self, from_seq: int) -> Iterator[Record]: ...

    def now(self) -> int: ...

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...

    async def commit(
        self, events: Any, *, turn: int | None, step: int, cause: str | None = None
    ) -> Sequence[Record]: ...


def evidence_of(record: Record) -> Evidence | None:
    """Return what a record says, if it is a message that was not erased; else None."""
    if record.type not in (UserMessage.kind, MessageSent.kind) or is_erased(record.payload):
        return None
    event = event_of(record)
    if not isinstance(event, UserMessage | MessageSent) or not event.text:
        return None
    role = "user" if isinstance(event, UserMessage) else "assistant"
    at = record.recorded_at if record.said_at is None else record.said_at
    return Evidence(record.seq, at, role, event.name, event.text)


class MemoryDerivation:
    """Derivation of memories of one kind and generation by one deriver."""

    def __init__(
        self,
        agent: DerivingAgent,
        derivation: DerivationKind,
        deriver: Deriver,
        generation: int = 1,
        *,
        messages_max: int = DERIVE_MESSAGES_MAX,
        chars_max: int | None = None,
    ) -> None:
        """`messages_max` and `chars_max`: most messages of one commit, and most characters of them, as a model can read
        at once; a longer message is alone in its commit.
        """
        self._agent = agent
        self._derivation = derivation
        self._deriver = deriver
        self._generation = generation
        self._messages_max, self._chars_max = messages_max, chars_max

    async def cursor(self) -> int:
        """Return the last seq that was read; 0 before the first derivation."""
        rows = await self._agent.rows("derivations")
        mine = (r["to_seq"] for r in rows if (r["derivation"], r["generation"]) == (self._derivation, self._generation))
        return max(mine, default=0)

    async def run(self, batches_max: int | None = None) -> DerivationReport:
        """Derive from all messages after the cursor, in batches, each one commit. Return what came of it.

        A derivation that finds nothing new commits nothing. `batches_max`: most batches. Raise ModelError; the batches
        before are committed.
        """
        head, after = self._agent.head, await self.cursor()
        read = noted = 0
        refused: list[str] = []
        for batch in islice(self._batches(after, head), batches_max):
            material = await self._material(batch)
            conclusions = await self._deriver.derive(material)
            left, reasons = await self.conclude(conclusions, batch[0].seq, batch[-1].seq, evidence=batch)
            read, after = read + len(batch), batch[-1].seq
            noted += len(left) - 1
            refused += reasons
        return DerivationReport(
            derivation=self._derivation, generation=self._generation, deriver=self._deriver.name, read=read,
            noted=noted, refused=refused, to_seq=after,
        )  # fmt: skip

    def _batches(self, after: int, head: int) -> Iterator[list[Evidence]]:
        """Yield the messages after `after` up to `head` (inclusive), those of one commit at a time."""
        batch: list[Evidence] = []
        chars = 0
        for message in self._messages(after, head):
            full = self._chars_max is not None and chars + len(message.text) > self._chars_max
            if batch and (full or len(batch) == self._messages_max):
                yield batch
                batch, chars = [], 0
            batch.append(message)
            chars += len(message.text)
        if batch:
            yield batch

    def _messages(self, after: int, head: int) -> Iterator[Evidence]:
        # An agent that was created again knows nothing of its earlier life. Its cursor is of this one.
        born = after or max((r.seq for r in self._agent.records(1) if r.type == AgentCreated.kind), default=0)
        for record in self._agent.records(born + 1):
            if record.seq > head:
                return
            said = evidence_of(record)
            if said is not None:
                yield said

    async def _material(self, batch: Sequence[Evidence]) -> Material:
        names = {row["alias"]: row["entity"] for row in self._own(await self._agent.rows("generation_names"))}
        return Material(
            agent_id=self._agent.agent_id, generation=self._generation, zone=self._agent.zone, now=self._agent.now(),
            evidence=batch, facts=self._own(await self._agent.rows("generation_facts")), names=names,
        )  # fmt: skip

    def _own(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the rows of this generation, which may not be the one in use; before its first derivation those of
        generation 0, which every generation has.
        """
        own = [row for row in rows if row["view"] == self._generation]
        return own or [row for row in rows if row["view"] == 0]

    async def conclude(
        self, conclusions: Conclusions, from_seq: int, to_seq: int, *, evidence: Sequence[Evidence], importance: int = 0
    ) -> tuple[Sequence[Record], list[str]]:
        """Commit the cursor and the conclusions that pass the checks. Return the records, and the reasons for which
        others were refused.

        `evidence`: what the deriver read; a source outside of it is looked up in the log.
        """
        reasons = list(conclusions.refused)
        wanted = {seq for event in conclusions.events for seq in event.sources if seq > 0}
        kinds = self._kinds(wanted)
        events = partial(self._events, conclusions.events, kinds, from_seq, to_seq, importance, reasons)
        cause = conclusions.replies[-1] if conclusions.replies else None
        return await self._agent.commit(events, turn=self._agent.turn, step=0, cause=cause), reasons

    def _kinds(self, wanted: set[int]) -> Mapping[int, str]:
        if not wanted:
            return {}
        between = (r for r in self._agent.records(min(wanted)) if r.seq in wanted)
        return source_kinds(islice(between, len(wanted)))

    def _events(
        self, proposed: Sequence[DerivedEvent], kinds: Mapping[int, str], from_seq: int, to_seq: int, importance: int,
        reasons: list[str], first_seq: int,
    ) -> Sequence[Event]:  # fmt: skip
        """Return the events of the commit that begins at `first_seq`; reasons for refusals are added to `reasons`."""
        kept, refused = checked(proposed, first_seq + 1, kinds)
        reasons += refused
        cursor = MemoriesDerived(
            derivation=self._derivation, from_seq=from_seq, to_seq=to_seq, noted=len(kept), refused=len(reasons),
            importance=importance, deriver=self._deriver.name, generation=self._generation,
        )  # fmt: skip
        return [cursor, *kept]

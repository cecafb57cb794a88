"""Plan an erasure: which records of which streams go, which others say the same, and what the agents lose by it.

Used by `AgentSystem.plan_erasure`, `erase_planned.py` and `everlog erase`. A plan changes nothing. It must be the same
after an interruption as before: the stream that was named is erased last, so a repeated command finds the words again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from everlog.actors.agent.erase_agent import check_own_records, forks_reached, unnotified_forks
from everlog.actors.erasure.derivation import WordSource
from everlog.actors.erasure.identity_loss import losses
from everlog.actors.erasure.record_words import SoughtWords
from everlog.actors.erasure.selection import Selection
from everlog.actors.erasure.sent_words import MAIL, received_words, sent_words
from everlog.actors.erasure.stream_scan import Marked, PlannedRecord, StreamScan, scan, select
from everlog.events import MemoryEdited, RecordsErased, SourceAttached, event_of
from everlog.store import LogReader, Store, is_agent, stream_of, stream_of_block


class ErasurePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of `plan_erasure`: nothing is changed yet."""

    agent_id: str
    """Stream that the erasure names."""
    everything: bool
    """True if all of the agent goes, and so the names that were given to it."""
    taken: Sequence[PlannedRecord]
    """Records that go, those of `agent_id` first."""
    left: Sequence[PlannedRecord]
    """Records that say the same and stay, because `derived` was not asked for."""
    spans: Mapping[str, Sequence[tuple[int, int]]]
    """Ranges to erase by stream, both ends inclusive, in the order of the erasure: `agent_id` is last."""
    forks: Sequence[str]
    """Forks, and forks of those, that share some of the records: they read no longer what is erased. Sorted."""
    losses: Sequence[str]
    """Sentences: each block of memory, configuration or deletion that goes with the records."""
    above: Sequence[int]
    """Seqs of an ancestor's records that were selected: they can only be erased there, and are not."""
    streams: Sequence[str]
    """All streams that were looked at, and that a search index may hold copies of."""
    unsought: bool
    """True if the records have more words than can be looked for: later records may say the same unnoticed."""


def plan_erasure(store: Store, agent_id: str, selection: Selection, *, derived: bool = False) -> ErasurePlan:
    """Return which records an erasure takes. `derived`: also the records that say the same as the selected ones.

    Reads the whole stream twice, each of its forks, shared blocks and sources once, and the logs of the agents to which
    selected words were sent. Raises BadInput for an empty selection, for a range beyond the head and for records of an
    ancestor; UnknownAgent, CorruptLog.
    """
    reader = store.reader(agent_id)
    selection.check(agent_id, reader.head(agent_id).seq)
    for first, _ in selection.seqs:
        check_own_records(store, agent_id, first)
    sought = SoughtWords(selection.match)
    marked, above = select(reader, agent_id, _own_from(store, agent_id), selection, WordSource(sought))
    if above and not marked:
        check_own_records(store, agent_id, above[0])
    family = _Family(store, agent_id, sought)
    family.add(agent_id, marked)
    family.add_forks(agent_id)
    family.add_linked(agent_id)
    family.add_receivers()
    scans = family.scans
    taken = [one for found in scans.values() for one in _taken(found, derived=derived)]
    left = [one for found in scans.values() for one in found.records if one.derived and not derived]
    spans = {name: _spans(found, {one.seq for one in taken if one.stream == name}) for name, found in scans.items()}
    if not any(spans.values()):
        spans[agent_id] = _without_notice(store, reader, agent_id)
    order = sorted((name for name in spans if spans[name]), key=family.place)
    return ErasurePlan(
        agent_id=agent_id,
        everything=selection.everything,
        taken=taken,
        left=left,
        spans={name: spans[name] for name in order},
        forks=sorted({fork for name in order for span in spans[name] for fork in forks_reached(store, name, *span)}),
        losses=list(_losses(store, scans, {name: spans[name] for name in order})),
        above=above,
        streams=sorted(scans),
        unsought=sought.is_full,
    )


def _taken(found: StreamScan, *, derived: bool) -> list[PlannedRecord]:
    if not derived:
        return [one for one in found.records if not one.derived]
    return sorted([*found.records, *found.bare], key=lambda one: one.seq)


class _Family:
    """Streams that may repeat what the erased records say, parents before forks, senders before receivers."""

    def __init__(self, store: Store, named: str, sought: SoughtWords) -> None:
        self._store = store
        self._named = named
        self._sought = sought
        self.scans: dict[str, StreamScan] = {}
        self._distance: dict[str, int] = {}
        """Number of messages between agents that led to a stream; those that are not here were reached by none."""
        self._since: dict[str, frozenset[str] | None] = {}

    def add(self, name: str, marked: Mapping[int, Marked], since: frozenset[str] | None = None) -> StreamScan:
        """Pass over a stream."""
        own_from = _own_from(self._store, name)
        found = scan(self._store.reader(name), name, own_from, marked, self._sought, since=since)
        self.scans[name], self._since[name] = found, since
        return found

    def add_forks(self, name: str, since: frozenset[str] | None = None) -> None:
        """Pass over the forks of an agent, and their forks."""
        forks = [fork for fork in self._store.forks_of(name) if self._store.reader(fork).head(fork).seq]
        for fork in sorted(forks, key=lambda fork: (_generation(self._store, fork), fork)):
            parent, cut = self._store.parent_of(fork) or (name, 0)
            marked = self.scans[parent].marked if parent in self.scans else {}
            if fork not in self.scans:
                self.add(fork, {seq: mark for seq, mark in marked.items() if seq <= cut}, since)

    def add_linked(self, name: str) -> None:
        """Pass over the shared blocks and sources of the agents, and over the other agents that have copies of them."""
        known = {*self._store.assigned()}
        linked = {stream for found in self.scans.values() for stream in found.linked} & known
        repeating = set() if is_agent(name) else {name}
        for stream in sorted(linked - self.scans.keys()):
            found = self.add(stream, {})
            # A tombstone counts too: an interrupted erasure may have taken the block before the agents that copied it.
            if found.records or found.blank:
                repeating.add(stream)
        if not repeating:
            return
        since = frozenset(repeating)
        agents = [agent for agent in self._store.agents() if agent not in self.scans and self._has_copy(agent, since)]
        for agent in sorted(agents, key=lambda agent: (_generation(self._store, agent), agent)):
            if agent not in self.scans:
                parent, cut = self._store.parent_of(agent) or ("", 0)
                shared = self.scans[parent].marked if parent in self.scans else {}
                self.add(agent, {seq: mark for seq, mark in shared.items() if seq <= cut}, since)

    def add_receivers(self) -> None:
        """Pass over the agents to which the words were sent, in messages or answers, over those that these wrote to
        because of them, and so on.
        """
        senders = [name for name, found in self.scans.items() if not MAIL.isdisjoint(found.kinds)]
        known = {*self._store.assigned()}
        for sender in senders:  # grows
            sent = sent_words(self._store.reader(sender).read(sender), self.scans[sender].marked)
            for name in sent.receivers(self.scans):
                if name not in known or not is_agent(name):
                    continue
                before = self.scans[name].marked if name in self.scans else {}
                found = received_words(self._store.reader(name).read(name), name, sender, sent)
                new = {seq: mark for seq, mark in found.items() if seq not in before or before[seq].by_words}
                if new:
                    self._distance.setdefault(name, self._distance.get(sender, 0) + 1)
                    self.add(name, {**before, **new}, self._since.get(name, frozenset()))
                    self.add_forks(name, frozenset())
                    senders.append(name)

    def place(self, name: str) -> tuple[bool, int, int, str]:
        """Return the place of a stream in the erasure: receivers of words before their senders, forks before their
        parents, the stream that was named last. So what an interruption leaves leads to the rest.
        """
        distance, above = self._distance.get(name, 0), self._store.parent_of(name)
        while above is not None:
            distance, above = max(distance, self._distance.get(above[0], 0)), self._store.parent_of(above[0])
        return name == self._named, -distance, -_generation(self._store, name), name

    def _has_copy(self, agent: str, streams: frozenset[str]) -> bool:
        reader = self._store.reader(agent)
        if not reader.head(agent).seq:
            return False
        for record in reader.read(agent):
            if record.type not in (MemoryEdited.kind, SourceAttached.kind):
                continue
            event = event_of(record)
            if isinstance(event, MemoryEdited) and event.origin and stream_of_block(event.origin) in streams:
                return True
            if isinstance(event, SourceAttached) and stream_of(event.source) in streams:
                return True
        return False


def _own_from(store: Store, name: str) -> int:
    ancestor = store.parent_of(name)
    return 1 if ancestor is None else ancestor[1] + 1


def _generation(store: Store, name: str) -> int:
    """Return the number of ancestors of a stream."""
    ancestor = store.parent_of(name)
    return 0 if ancestor is None else 1 + _generation(store, ancestor[0])


def _spans(found: StreamScan, seqs: set[int]) -> list[tuple[int, int]]:
    """Return the ranges of the records. A range runs over records without content, so that there are few."""
    spans: list[tuple[int, int]] = []
    for seq in sorted(seqs):
        between = range(spans[-1][1] + 1, seq) if spans else range(0)
        if spans and all(other in found.blank for other in between):
            spans[-1] = spans[-1][0], seq
        else:
            spans.append((seq, seq))
    return spans


def _without_notice(store: Store, reader: LogReader, agent_id: str) -> list[tuple[int, int]]:
    """Return erased ranges of which a fork has no record: it was made meanwhile, and the erasure was interrupted."""
    events = [event_of(record) for record in reader.read(agent_id) if record.type == RecordsErased.kind]
    found = [(event.from_seq, event.to_seq) for event in events if isinstance(event, RecordsErased)]
    first = _own_from(store, agent_id)
    return [span for span in found if span[0] >= first and unnotified_forks(store, agent_id, *span)]


def _losses(
    store: Store, scans: Mapping[str, StreamScan], spans: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[str]:
    """Yield what the agents lose, the named agent first."""
    for name, found in scans.items():
        seqs = set(_seqs(spans.get(name, ())))
        ancestor = store.parent_of(name)
        while ancestor is not None:
            parent, cut = ancestor
            seqs |= {seq for seq in _seqs(spans.get(parent, ())) if seq <= cut}
            ancestor = store.parent_of(parent)
            if ancestor is not None:
                ancestor = ancestor[0], min(cut, ancestor[1])
        if seqs:
            yield from losses(found, seqs)


def _seqs(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, last in spans:
        yield from range(first, last + 1)

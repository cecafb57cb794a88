"""Show what a memory rests on, down to messages, and what rests on it. Pure.

Sources are earlier records, so the memories form a graph without circles. Each is in it once, however many ways lead
to it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.recollection.memory_items import MemoryItem
from everlog.events import is_erased


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """One memory of a tree."""

    seq: int
    kind: str
    """Kind of memory, such as `fact`; of other records the kind of record, such as `fact_ended`; or `erased`."""
    at: int = msgspec.field(name="time")
    """Time at which it was said or noted, microseconds UTC."""
    name: str = ""
    text: str = ""
    sources: Sequence[int] = ()
    """Seqs of the records that it rests on."""
    resting: Sequence[int] = ()
    """Seqs of the memories that rest on it: those that count, in the tree of which they are a part."""
    outdated: bool = False
    withdrawn: bool = False
    """True if it does not count any more, because the agent or a person said so."""
    deriver: str = ""


class MemoryTree(msgspec.Struct, frozen=True):
    """A memory with all that it rests on, and all that rests on it."""

    seq: int
    """Seq of the memory."""
    nodes: Mapping[int, TreeNode]
    """All memories of the tree by seq."""

    @property
    def root(self) -> TreeNode:
        """The memory itself."""
        return self.nodes[self.seq]

    def down(self) -> Iterator[tuple[int, TreeNode]]:
        """Yield the memory and what it rests on, each with its distance from the memory, a source after what rests on
        it. What was yielded before is not yielded again.
        """
        yield from self._walk("sources")

    def up(self) -> Iterator[tuple[int, TreeNode]]:
        """Yield the memory and what rests on it, like `down`."""
        yield from self._walk("resting")

    def _walk(self, edges: str) -> Iterator[tuple[int, TreeNode]]:
        shown: set[int] = set()
        waiting = [(0, self.seq)]
        while waiting:
            depth, seq = waiting.pop()
            if seq not in shown:
                shown.add(seq)
                yield depth, self.nodes[seq]
                following = getattr(self.nodes[seq], edges)
                waiting += [(depth + 1, one) for one in reversed(following) if one in self.nodes]


def reached(seq: int, edges: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the seqs that are reached from `seq` by any number of edges, itself included."""
    found = {seq}
    waiting = [seq]
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def edges_of(derived: Iterable[Mapping[str, Any]]) -> tuple[dict[int, Sequence[int]], dict[int, list[int]]]:
    """Return the sources of each derived record, and for each record the memories that count and rest on it.

    `derived`: rows of the projection `derived_records`.
    """
    sources: dict[int, Sequence[int]] = {}
    resting: dict[int, list[int]] = {}
    for row in derived:
        sources[row["seq"]] = sorted(row["sources"])
        if row["in_use"] and not row["withdrawn"] and row["type"] in _KINDS:
            for source in row["sources"]:
                resting.setdefault(source, []).append(row["seq"])
    return sources, {seq: sorted(some) for seq, some in resting.items()}


_KINDS = {"insight_noted": "insight", "fact_noted": "fact", "plan_made": "plan"}
"""Kinds of memories by the kinds of records that note them."""
_RECORD_KINDS = {"user_message": "message", "message_sent": "message", "archival_inserted": "archival", **_KINDS}


def tree_of(
    seq: int, items: Iterable[MemoryItem], derived: Sequence[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]
) -> MemoryTree:
    """Return the tree of the memory of that seq.

    `items`: all memories; `derived`: rows of `derived_records`; `others`: rows (seq, type, time, text, payload) of the
    records of the tree that are neither, such as a stored text that was deleted since.
    """
    sources, resting = edges_of(derived)
    shown = reached(seq, sources) | reached(seq, resting)
    nodes: dict[int, TreeNode] = {}
    for item in items:
        if item.seq in shown:
            before = nodes.get(item.seq)  # of a plan: each item is a memory
            text = f"{before.text}; {item.text}" if before else item.text
            nodes[item.seq] = TreeNode(
                seq=item.seq, kind=item.kind, at=item.at, name=item.name, text=text, outdated=item.outdated,
                deriver=item.deriver,
            )  # fmt: skip
    for row in derived:
        if row["seq"] in shown and row["seq"] not in nodes:
            nodes[row["seq"]] = TreeNode(
                seq=row["seq"], kind=_KINDS.get(row["type"], row["type"]), at=row["recorded_at"], text=row["text"],
                withdrawn=row["withdrawn"], deriver=row["deriver"],
            )  # fmt: skip
    for row in others:
        if row["seq"] in shown and row["seq"] not in nodes:
            nodes[row["seq"]] = _of_record(row)
    known = shown & nodes.keys()
    linked = {
        one: msgspec.structs.replace(
            nodes[one], sources=sources.get(one, ()), resting=[up for up in resting.get(one, ()) if up in known]
        )
        for one in sorted(known)
    }
    return MemoryTree(seq, linked)


def _of_record(row: Mapping[str, Any]) -> TreeNode:
    if is_erased(row["payload"]):
        return TreeNode(seq=row["seq"], kind="erased", at=row["time"])
    kind = _RECORD_KINDS.get(row["type"], row["type"])
    return TreeNode(seq=row["seq"], kind=kind, at=row["time"], text=row["text"] or "")

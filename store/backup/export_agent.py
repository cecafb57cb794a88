"""Export an agent into one file, with its ancestors and a checksum over everything.

The export holds a prefix of each stream: the agent up to its head at that moment, its ancestors up to the fork point.
The store is only read, so agents may run meanwhile. The exported records are verified against the chain of each stream
before the file gets its name.

Used by `actors/reports/export_restore.py`, for `everlog export`.
"""

import errno
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from everlog.events import GENESIS, BadInput, CorruptLog, Record, StoreError, extend, is_erased
from everlog.store.backup.export_file import ExportReader, ExportWriter, damaged_error
from everlog.store.backup.record_rules import CommitRules
from everlog.store.base.contract import Head, Progress, Store
from everlog.store.base.export_types import ExportedStream, ExportHeader
from everlog.store.base.move_records import chain_before, fork_in, is_departure, move_in
from everlog.store.base.names import name_of, partition_of, typed
from everlog.store.base.permissions import open_private
from everlog.store.base.store_constants import EXPORT_VERSION, ROW_GROUP_BYTES, ROW_GROUP_ROWS
from everlog.store.partition.partition import token

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without hard links, such as those of many portable disks."""
_IS_SHARD = re.compile(r"shard-[0-9]{3}").fullmatch


class StreamRange(NamedTuple):
    """A stream and the range of its records that is exported."""

    agent_id: str
    from_seq: int
    to_seq: int
    parent: str = ""
    parent_seq: int = 0


def export(store: Store, agent_id: str, path: Path, *, store_id: str, made_at: int, sources: Sequence[str] = (),
           streams: Sequence[str] = (), replace: bool = False, progress: Progress | None = None,
           ) -> ExportHeader:  # fmt: skip
    """Export an agent, and the ancestors of a fork up to the fork point, into the file `path`: whole and durable, or
    not at all.

    `sources` are those that the agent can search, which are only listed; `streams` are other streams to include. An
    existing file is replaced only with `replace`. Raises BadInput, UnknownAgent, CorruptLog, StoreError.
    """
    name = name_of(agent_id)
    parts = lineage(store, name)
    for stream in streams:
        parts += lineage(store, stream)
    if path.exists() and not replace:
        raise _exists_error(path)
    temporary = path.with_name(f".{path.name}.{token()}.tmp")
    total = sum(part.to_seq - part.from_seq + 1 for part in parts)
    try:
        with open_private(temporary, "wb") as file, ExportWriter(file) as writer:
            count = counting(total, progress)
            written = [_write_stream(store, part, writer, count) for part in parts]
            contents = ExportHeader(EXPORT_VERSION, name, store_id, made_at, written, sorted(sources))
            writer.finish(contents)
            file.flush()
            # Synced before the file gets its name, and the folder after: a power loss leaves no partial export under
            # that name.
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            _put(temporary, path)
        _sync_folder(path.parent)
    except FileExistsError as error:  # the file was created meanwhile
        raise _exists_error(path) from error
    except OSError as error:
        raise StoreError(
            f"{path} could not be written: {error.strerror or error}. The store, and any file of that name, are "
            "unchanged. Remove the cause, then export again."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return contents


def _exists_error(path: Path) -> BadInput:
    return BadInput(f"There is a file {path} already. Nothing was written; use --force to replace it.")


def _put(temporary: Path, path: Path) -> None:
    """Name a file if the name is free; without hard links in two steps. Raises FileExistsError."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Reserve the name exclusively, then replace the empty file.
        open_private(path, "xb").close()
        os.replace(temporary, path)


def counting(total: int, progress: Progress | None) -> Callable[[int], None]:
    """Return a function that adds up record counts and reports them to `progress`, as done and `total`."""
    done = 0

    def count(records: int) -> None:
        nonlocal done
        done += records
        if progress is not None:
            progress(done, total)

    return count


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lineage(store: Store, name: str) -> list[StreamRange]:
    """Return the streams through which an agent is read, oldest ancestor first, the agent last. Raises BadInput,
    UnknownAgent.
    """
    head = store.reader(name).head(name)
    upto = head.seq - head.away  # a pending departure to another partition is not exported
    if not upto:
        raise BadInput(f"{name!r} has no records yet: there is nothing to export.")
    return _lineage(store, name, upto)


def _lineage(store: Store, name: str, upto: int) -> list[StreamRange]:
    """Return the same for the first `upto` records. An ancestor that wrote none of them is left out."""
    ancestor = store.parent_of(name)
    if ancestor is None:
        return [StreamRange(name, 1, upto)]
    parent, cut = ancestor
    if upto <= cut:
        return _lineage(store, parent, upto)
    before = _lineage(store, parent, cut)
    last = before[-1]
    before[-1] = last._replace(to_seq=_end_of_commit(store, last.agent_id, cut))
    return [*before, StreamRange(name, cut + 1, upto, last.agent_id, cut)]


def _end_of_commit(store: Store, name: str, cut: int) -> int:
    """Return the end of the commit that holds the record `cut`, and of a move if it is part of one: neither is ever
    split.

    Raises BadInput while the agent is moving to another partition.
    """
    before: Record | None = None
    for record in store.reader(name).read(name, cut):
        if before is not None and record.commit != before.commit and not is_departure(before):
            break
        before = record
    if before is None or is_departure(before):
        raise BadInput(f"{name!r} is moving to another partition now. Export again when the move is finished.")
    return before.seq


def _write_stream(
    store: Store, part: StreamRange, writer: ExportWriter, count: Callable[[int], None]
) -> ExportedStream:
    """Write one stream. Raises CorruptLog if its records do not form one chain."""
    name, reader = part.agent_id, store.reader(part.agent_id)
    chain = reader.chain(name, part.from_seq - 1)
    kept: list[Record] = []
    seq, size, erased = part.from_seq - 1, 0, 0
    for commit in _commits(reader.read(name, part.from_seq, part.to_seq)):
        for record in commit:
            if record.seq != seq + 1 or record.agent_id != name or _names_other_chain(record, chain):
                raise _broken_chain_error(name, seq + 1)
            seq, chain = record.seq, extend(chain, record)
            erased += is_erased(record.payload)
            size += len(record.payload) + len(record.text or "")
        kept += commit
        if len(kept) >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            writer.write(kept)
            count(len(kept))
            kept, size = [], 0
    writer.write(kept)
    count(len(kept))
    head = reader.head(name)
    if (seq, chain) != (part.to_seq, head.chain if head.seq == seq else reader.chain(name, part.to_seq)):
        raise _broken_chain_error(name, seq)
    return ExportedStream(name, part.from_seq, part.to_seq, chain.hex(), part.parent, part.parent_seq, erased)


def _names_other_chain(record: Record, chain: bytes) -> bool:
    """Return True if the record is part of a move that names another chain value than `chain` as the value before
    it.
    """
    move = move_in(record)
    return move is not None and move.chain != chain.hex()


def _broken_chain_error(name: str, seq: int) -> CorruptLog:
    return CorruptLog(
        f"The log of {name!r} has a broken chain at seq {seq}: nothing was exported. Run `everlog log check "
        f"{typed(name)} --deep` to find the damage."
    )


def _commits(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield whole commits, renumbered from 1, because commits of two partitions can have the same number."""
    number, before = 0, None
    commit: list[Record] = []
    for record in records:
        if before is None or record.commit != before.commit or is_departure(before):
            if commit:
                yield commit
            number, commit = number + 1, []
        commit.append(msgspec.structs.replace(record, commit=number))
        before = record
    if commit:
        yield commit


def commits_of(export: ExportReader) -> Iterator[tuple[ExportedStream, list[Record]]]:
    """Yield the commits of an export, each with its stream, in the order of the file. Raises CorruptLog."""
    streams = {stream.agent_id: stream for stream in export.contents.streams}
    for (agent_id, _), records in groupby(export.records(), key=lambda record: (record.agent_id, record.commit)):
        if agent_id not in streams:
            raise damaged_error(export.path, f"it has records of {agent_id!r}, which its header does not name")
        yield streams[agent_id], list(records)


class _StreamVerifier:
    """Position in one stream while an export is verified."""

    def __init__(self, stream: ExportedStream, chain: bytes, others: Collection[str]) -> None:
        """Start before the first record. `others` names all streams of the same export."""
        self.stream = stream
        self.others = others
        self.rules = CommitRules()
        self.seq = stream.from_seq - 1
        self.chain = chain
        self.commit = 0
        self.away = False

    def follow(self, record: Record) -> str:
        """Advance past a record. Return the fault of the record, or an empty text."""
        if record.seq != self.seq + 1:
            return f"seq {record.seq} comes after {self.seq}"
        if record.commit not in (self.commit, self.commit + 1):
            return f"commit {record.commit} comes after {self.commit} at seq {record.seq}"
        if self.away and chain_before(record, record.seq, Head(self.seq, self.chain, away=True)) != self.chain:
            return f"seq {self.seq} begins a move, and seq {record.seq} does not end it"
        move = move_in(record)
        if move is not None and not _is_possible_partition(self.stream.agent_id, move.partition):
            return f"seq {record.seq} is a move to or from {move.partition!r}, and no store has such a partition"
        wrong = self._wrong_beginning(record)
        if wrong:
            return wrong
        self.seq, self.commit, self.chain = record.seq, record.commit, extend(self.chain, record)
        self.away = move is not None and is_departure(record)
        return ""

    def _wrong_beginning(self, record: Record) -> str:
        """Return the fault in the beginning of the stream, or an empty text. An ancestor without records may have been
        left out.
        """
        fork, parent = fork_in(record), self.stream.parent
        if self.commit or not parent:
            return "" if fork is None else f"seq {record.seq} begins a fork of {fork.parent!r}, but the header has none"
        if fork is None or chain_before(record, record.seq, Head(0, GENESIS)) != self.chain:
            return f"its first record does not say that it is a fork of {parent!r}"
        if fork.parent != parent and fork.parent in self.others:
            return (
                f"its first record says that it is a fork of {fork.parent!r}, and the header that it is of {parent!r}"
            )
        return ""

    @property
    def done(self) -> bool:
        """True if the stream ends here, as its header says."""
        here, said = (self.seq, self.chain.hex()), (self.stream.to_seq, self.stream.chain)
        return here == said and not self.away and self.rules.erased >= self.stream.erased


def _is_possible_partition(name: str, partition: str) -> bool:
    """Return True if an agent of that name can have been in that partition, in any store."""
    return partition == partition_of(name) or _IS_SHARD(partition) is not None


def verify(export: ExportReader, places: Mapping[str, int], count: Callable[[int], None]
           ) -> dict[tuple[str, int], bytes]:  # fmt: skip
    """Verify every record against the chain of its stream. Return the chain values at `places`, a seq by agent, and at
    fork points.

    Raises CorruptLog if a stream has a gap, ends elsewhere than the header says, or does not continue its parent.
    """
    wanted = {*places.items(), *((stream.parent, stream.parent_seq) for stream in export.contents.streams)}
    found: dict[tuple[str, int], bytes] = {}
    names = frozenset(stream.agent_id for stream in export.contents.streams)
    walk: _StreamVerifier | None = None
    ended: set[str] = set()
    for stream, records in commits_of(export):
        name = stream.agent_id
        if walk is None or walk.stream is not stream:
            if name in ended or (walk is not None and not walk.done):
                raise damaged_error(export.path, f"the records of {name!r} are in the wrong place")
            walk = _StreamVerifier(stream, _chain_before(export, stream, found), names)
            ended.add(name)
        wrong = walk.rules.fault(records)
        for record in () if wrong else records:
            wrong = walk.follow(record)
            if wrong:
                break
            if (name, record.seq) in wanted:
                found[name, record.seq] = walk.chain
        if wrong:
            raise damaged_error(export.path, f"in the records of {name!r}, {wrong}")
        count(len(records))
    missing = [stream.agent_id for stream in export.contents.streams if stream.agent_id not in ended]
    if missing or walk is None or not walk.done:
        raise damaged_error(export.path, f"records are missing, of {', '.join(missing) or export.contents.agent_id!r}")
    return found


def _chain_before(export: ExportReader, stream: ExportedStream, found: Mapping[tuple[str, int], bytes]) -> bytes:
    """Return the chain value that a stream continues from."""
    if not stream.parent and stream.from_seq == 1:
        return GENESIS
    chain = found.get((stream.parent, stream.parent_seq))
    if chain is None or stream.from_seq != stream.parent_seq + 1:
        raise damaged_error(
            export.path, f"the records before seq {stream.from_seq} of {stream.agent_id!r} are not in the export"
        )
    return chain

"""Hold the register against the partitions, in both directions: no name, no partition and no stream may be missing.

Used by `everlog log check` and `everlog agents`, and by `everlog sql` as far as no log must be read. Reads only, and
continues after a finding. A partition that cannot be read is left out here: `check_partition` reports it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from everlog.events import AgentForked, CorruptLog, StoreError, event_of
from everlog.store.base.disk import storage
from everlog.store.base.names import hash_of, partition_of
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register import RegisterScan, missing_log_error
from everlog.store.streams.register_file import REPAIR, Assignment
from everlog.store.streams.shard_numbers import first_shards
from everlog.store.streams.stream_evidence import StreamEnd, ends_in, lost_file_error


class RegisterReport(msgspec.Struct):
    """Findings of `check_register`."""

    errors: list[str] = []
    """Faults; each names its cure."""
    notes: list[str] = []
    """Names without a record that were registered by everlog 0.1: begun or not, nothing tells."""


class StreamSurvey(NamedTuple):
    """Streams that the partitions of a store hold."""

    ends: dict[str, dict[str, StreamEnd]]
    """End of each stream, by partition and name; only of partitions that can be read."""
    unread: dict[str, str]
    """Reasons why the other partitions cannot be read."""

    def places(self) -> dict[str, list[str]]:
        """Return the partitions that each stream has records in, sorted by name."""
        found: dict[str, list[str]] = defaultdict(list)
        for partition, ends in sorted(self.ends.items()):
            for name in ends:
                found[name].append(partition)
        return dict(sorted(found.items()))


def survey(store: FileStore, partitions: Collection[str] | None = None) -> StreamSurvey:
    """Read which streams the partitions of a store hold, these or all. Raises no error for a damaged partition."""
    found = StreamSurvey({}, {})
    for name in store.partitions():
        if partitions is None or name in partitions:
            try:
                found.ends[name] = ends_in(store.partition(name))
            except StoreError as error:
                found.unread[name] = str(error)
    return found


def check_presence(store: FileStore) -> list[str]:
    """Return the errors of `check_register` that no log must be read for: damaged files of the register, and missing
    folders of partitions. Raises StoreError if the folder of the register cannot be read.
    """
    scan = store.register_files.scan()
    return [*map(str, scan.damaged.values()), *_missing(store, scan.routes)]


def check_register(
    store: FileStore, names: Collection[str] | None = None, scan: RegisterScan | None = None
) -> RegisterReport:
    """Return the findings about the register and the partitions, of the streams in `names` or of all. Raises
    StoreError if the folder of the register cannot be read.

    `scan`: what the register says, for a caller that has read it already.
    """
    report = RegisterReport()
    scan = scan or store.register_files.scan()
    digests = None if names is None else {hash_of(name) for name in names}
    report.errors += [str(e) for path, e in scan.damaged.items() if digests is None or path.name[:64] in digests]
    routes = {name: route for name, route in scan.routes.items() if names is None or name in names}
    if names is None:
        found = survey(store)
    else:
        wanted = {place.partition for route in routes.values() for place in route} | set(map(partition_of, names))
        numbers = store.shard_numbers.all()
        found = survey(store, wanted.union(*(first_shards(name, numbers) for name in names)))
    report.errors += _missing(store, routes)
    for name, route in routes.items():
        try:
            _check_begun(store, route[-1], found, report)
            report.errors += _lost_parent(store, name, route, found)
        except StoreError as error:
            report.errors.append(str(error))
    report.errors += _unregistered(store, scan, found, names)
    report.errors += store.aliases.faults() if names is None else ()
    report.errors += filter(None, [store.shard_numbers.fault()] if names is None else ())
    return report


def _missing(store: FileStore, routes: dict[str, list[Assignment]]) -> Iterator[str]:
    """Yield an error for each partition of the register whose folder is missing."""
    inside: dict[str, list[str]] = defaultdict(list)
    for name, route in routes.items():
        for partition in {place.partition for place in route}:
            inside[partition].append(name)
    for partition, names in sorted(inside.items()):
        where = store.partition(partition)
        with storage("look for", where.path):
            there = where.disk.exists(where.path)
        if not there:
            yield str(missing_log_error(where.path, names))


def _check_begun(store: FileStore, assignment: Assignment, found: StreamSurvey, report: RegisterReport) -> None:
    """Report a stream that has lost the records in its partition."""
    name, partition = assignment.agent_id, assignment.partition
    if partition not in found.ends:
        return
    end = found.ends[partition].get(name)
    if end is not None and not end.away:
        return
    try:
        store.check_not_lost(name)
    except CorruptLog as error:
        report.errors.append(str(error))
        return
    path = store.register_files.path_of(name, assignment.epoch)
    if end is None and not store.register_files.read(path).signed:
        report.notes.append(f"{name!r} is registered and has no record; {path} is of everlog 0.1, so none may be lost")


def _lost_parent(store: FileStore, name: str, route: list[Assignment], found: StreamSurvey) -> Iterator[str]:
    """Yield an error for a fork that the register does not call one. A fork begins in its dedicated partition."""
    place = partition_of(name)
    if route[0].parent or name not in found.ends.get(place, ()):
        return
    first = next(PartitionReader(store.partition(place)).read(name), None)
    event = event_of(first) if first is not None and first.type == AgentForked.kind else None
    if first is not None and isinstance(event, AgentForked) and event.parent_seq == first.seq - 1:
        yield (
            f"{name!r} seq {first.seq}: forked from {event.parent!r} at seq {event.parent_seq} according to the log, "
            f"but no fork according to the register, so earlier records are not read. `{REPAIR}` registers it again."
        )


def _unregistered(
    store: FileStore, scan: RegisterScan, found: StreamSurvey, names: Collection[str] | None
) -> Iterator[str]:
    """Yield an error for each stream that the register does not know, or has in other partitions."""
    for name, places in found.places().items():
        if names is not None and name not in names:
            continue
        for partition in places:
            if name not in scan.routes:
                if not scan.is_damaged(name):
                    yield str(lost_file_error(name, store.partition(partition).path))
            elif partition not in {place.partition for place in scan.routes[name]}:
                yield (
                    f"{store.partition(partition).path} holds records of {name!r}, but the register has it in "
                    f"{scan.routes[name][-1].partition}. `{REPAIR}` registers it again by what the logs say."
                )

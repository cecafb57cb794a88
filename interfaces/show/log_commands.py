"""The commands that look after the files of the logs: log check, log stats, log seal. Each partition by itself."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from everlog.actors.hosting.log_warnings import truncated_warning
from everlog.events import EverlogError
from everlog.interfaces.common.bootstrap import leaving_alone, store_of, warn
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.interfaces.show.verify_command import print_proof
from everlog.projections import DERIVER
from everlog.store import (
    CheckReport,
    FileStore,
    PartitionStats,
    SealReport,
    check_forks,
    check_moves,
    name_of,
    partition_of,
)
from everlog.store import check as check_partition
from everlog.store import stats as stats_of

LogObject = dict[str, Any]


class _LogPartition(NamedTuple):
    """A partition that is meant."""

    name: str
    agent: str | None
    """The agent whose own it is, if it is one's and known."""

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.agent or self.name


def _parts(args: Namespace, store: FileStore, *, restoring: bool) -> list[_LogPartition]:
    """The partition of the agent that is named, or all of the store, and where one is restored. Raises UnknownAgent."""
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        name = name_of(args.name)
        return [_LogPartition(store.reader(name).partition, name)]
    owners = {partition_of(name): name for name in store.assigned()}  # sources too
    parts = (_LogPartition(name, owners.get(name)) for name in store.partitions(restoring=restoring))
    return sorted(parts, key=lambda part: part.label)


class _LogTask:
    """Does something to partition after partition; one that cannot be done is told of, and the others go on."""

    def __init__(self, args: Namespace, store: FileStore, what: str, *, restoring: bool = False) -> None:
        self._args = args
        self._what = what
        self.store = store
        self.parts = _parts(args, store, restoring=restoring)
        self.found: list[LogObject] = []
        self.failed = False

    def each(self) -> Iterator[tuple[_LogPartition, str]]:
        """Each partition, and what is said of it while it takes its time."""
        for number, part in enumerate(self.parts, 1):
            count = f" ({number:,} of {len(self.parts):,})" if self._args.all else ""
            yield part, f"{self._what} {part.label}{count}"

    def failure(self, part: _LogPartition, error: EverlogError) -> None:
        """Tell why it could not be done; raises it where it was the only one."""
        if not self._args.all:
            raise error
        complain(error)
        self.failed = True
        self.found.append({"agent": part.agent, "partition": part.name, "error": str(error)})

    def done(self, *, fine: bool = True) -> int:
        """Print what was found as JSON, if that was asked for; the exit code."""
        if self._args.json:
            print(json_shapes.line(self.found if self._args.all else self.found[0]))
        sys.stdout.flush()
        return int(self.failed or not fine)


def check(args: Namespace, world: CommandEnvironment) -> int:
    """The command `log check`."""
    doing = _LogTask(args, store_of(args, world), "checking", restoring=True)
    fine = True
    for part, what in doing.each():
        with progress_bar.shown(what) as moved:
            report = check_partition(
                doing.store.partition(part.name), deep=args.deep, derive=DERIVER if args.deep else None, progress=moved
            )
        fine &= report.ok
        if not args.json:
            print_proof(part.label, _count_text(report), report.errors, report.notes, "whole")
        doing.found.append({"agent": part.agent, **msgspec.to_builtins(report)})
    for wrong in _check_streams(args, doing.store):
        fine = False
        complain(sanitize(wrong))
    return doing.done(fine=fine)


def _check_streams(args: Namespace, store: FileStore) -> list[str]:
    """What is wrong with what logs say of each other: of all with --all, where one agent begins with --deep."""
    if args.all:
        return [*check_moves(store), *check_forks(store)]
    return check_forks(store, [name_of(args.name)]) if args.deep else []


def _count_text(report: CheckReport) -> str:
    return f"{report.records:,} records in {report.commits:,} commits, {_files(report.bytes, report.files)}"


def _files(count: int, files: int) -> str:
    return f"{json_shapes.size(count)} in {files:,} file{'s' * (files != 1)}"


def stats(args: Namespace, world: CommandEnvironment) -> int:
    """The command `log stats`."""
    doing = _LogTask(args, store_of(args, world), "counting")
    counted: list[tuple[str, PartitionStats]] = []
    for part, what in doing.each():
        try:
            with progress_bar.shown(what):
                found = stats_of(doing.store.partition(part.name))
        except EverlogError as error:
            doing.failure(part, error)
            continue
        counted.append((part.label, found))
        doing.found.append({"agent": part.agent, "partition": part.name, **_shape(found)})
    total = PartitionStats.sum(found for _, found in counted)
    if args.json and args.all:
        print(json_shapes.line({"logs": doing.found, "total": _shape(total)}))
        return int(doing.failed)
    if not args.json:
        from everlog.interfaces.output import show_pages

        show_pages.show(show_pages.stats_of_all(counted, total) if args.all else show_pages.stats(*counted[0]))
    return doing.done()


def _shape(found: PartitionStats) -> LogObject:
    ratio = found.amplification
    every = {"files": found.all.files, "bytes": found.all.bytes}
    return {**msgspec.to_builtins(found), "all": every, "amplification": None if ratio is None else round(ratio, 4)}


def seal(args: Namespace, world: CommandEnvironment) -> int:
    """The command `log seal`."""
    doing = _LogTask(args, store_of(args, world), "sealing")
    for part, what in doing.each():
        where = doing.store.partition(part.name)
        try:
            with leaving_alone(), progress_bar.shown(what) as moved:
                log = doing.store.open_partition(part.name, f"everlog {args.command}", label=part.label)
                try:
                    if log.cut is not None:
                        warn(truncated_warning(part.label, log.cut))
                    before = stats_of(where)
                    done = log.seal(DERIVER, moved)
                    after = stats_of(where)
                finally:
                    log.close()
        except EverlogError as error:
            doing.failure(part, error)
            continue
        if not args.json:
            print(sanitize(_sealed(part.label, done, before, after)))
        doing.found.append({"agent": part.agent, "partition": part.name, **msgspec.to_builtins(done)})
    return doing.done()


def _sealed(label: str, done: SealReport, before: PartitionStats, after: PartitionStats) -> str:
    if not done.files:
        return f"{label}: nothing to seal"
    then, now = _record_bytes(before), _record_bytes(after)
    gone = f", {done.erased:,} of them erased" if done.erased else ""
    return f"{label}: {after.records:,} records{gone}, {then} → {now}"


def _record_bytes(found: PartitionStats) -> str:
    """What the records themselves take up: derived states and what is empty do not count."""
    kinds = [kind for kind in (found.open, found.frames, found.sealed) if kind.bytes]
    return _files(sum(kind.bytes for kind in kinds), sum(kind.files for kind in kinds))

"""Commands for the files of the logs: log check, log stats, log seal. Each partition is processed by itself.

Called by `cli.command_run`.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from everlog.actors.ports.log_warnings import truncated_warning
from everlog.events import EverlogError
from everlog.interfaces.common.error_output import complain, escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of, warn, without_take_over
from everlog.interfaces.common.plural import plural
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
    check_register,
    exposure,
    name_of,
    partition_of,
)
from everlog.store import check as check_partition
from everlog.store import stats as stats_of

LogObject = dict[str, Any]


class _LogPartition(NamedTuple):
    """A partition that a command processes."""

    name: str
    agent: str | None
    """Agent or source that has the partition to itself; None for a shared partition, or if it is not in the
    register.
    """

    @property
    def label(self) -> str:
        """Name of the partition in messages to people."""
        return self.agent or self.name


def _parts(args: Namespace, store: FileStore, *, restoring: bool) -> list[_LogPartition]:
    """Return the partition of the named agent, or with --all every partition of the store.

    `restoring`: include partitions that are being restored. Raises UnknownAgent.
    """
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        name = name_of(args.name)
        return [_LogPartition(store.reader(name).partition, name)]
    owners = {partition_of(name): name for name in store.register_files.scan().routes}  # sources have partitions too
    parts = (_LogPartition(name, owners.get(name)) for name in store.partitions(restoring=restoring))
    return sorted(parts, key=lambda part: part.label)


class _LogTask:
    """Loop over partitions. With --all, the failure of a partition is reported and the next one follows."""

    def __init__(self, args: Namespace, store: FileStore, what: str, *, restoring: bool = False) -> None:
        self._args = args
        self._what = what
        self.store = store
        self.parts = _parts(args, store, restoring=restoring)
        self.found: list[LogObject] = []
        self.failed = False

    def each(self) -> Iterator[tuple[_LogPartition, str]]:
        """Yield each partition with the description for its progress bar."""
        for number, part in enumerate(self.parts, 1):
            count = f" ({number:,} of {len(self.parts):,})" if self._args.all else ""
            yield part, f"{self._what} {part.label}{count}"

    def failure(self, part: _LogPartition, error: EverlogError) -> None:
        """Report the failure of a partition. Raises the error if only this partition was asked for."""
        if not self._args.all:
            raise error
        complain(error)
        self.failed = True
        self.found.append({"agent": part.agent, "partition": part.name, "error": str(error)})

    def done(self, *, fine: bool = True) -> int:
        """Print the results as JSON if --json is given. Return the exit code."""
        if self._args.json:
            print(json_shapes.line(self.found if self._args.all else self.found[0]))
        sys.stdout.flush()
        return int(self.failed or not fine)


def check(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog log check` and return its exit code."""
    store = store_of(args, world)
    found = check_logs(args, store)
    if open_to_others := exposure(store.root):
        warn(sanitize(open_to_others))
    for wrong in found.contradictions:
        complain(sanitize(wrong))
    if args.json:
        print(json_shapes.line(found.logs if args.all else found.logs[0]))
    sys.stdout.flush()
    return int(not found.fine)


class LogFindings(NamedTuple):
    """Findings of `check_logs`."""

    logs: list[LogObject]
    """Report of each log, in the form of JSON."""
    contradictions: list[str]
    """Faults that no log has by itself: of the register, of moves and of forks."""
    fine: bool


def check_logs(args: Namespace, store: FileStore) -> LogFindings:
    """Check the log of the named agent, or with --all every log and the register. Print each report, unless --json is
    given.
    """
    doing = _LogTask(args, store, "checking", restoring=True)
    fine = True
    for part, what in doing.each():
        with progress_bar.shown(what) as moved:
            report = check_partition(
                doing.store.partition(part.name), deep=args.deep, derive=DERIVER if args.deep else None, progress=moved
            )
        fine &= report.ok
        if not args.json:
            print_proof(part.label, _count_text(report), report.errors, report.notes, "no damage")
        doing.found.append({"agent": part.agent, **msgspec.to_builtins(report)})
    registered = check_register(doing.store, None if args.all else [name_of(args.name)])
    for note in registered.notes if not args.json else ():
        print(sanitize(f"register: {note}"))
    wrong = list(dict.fromkeys([*registered.errors, *_check_streams(args, doing.store)]))
    return LogFindings(doing.found, wrong, fine and not wrong)


def _check_streams(args: Namespace, store: FileStore) -> list[str]:
    """Return the contradictions between logs: of all logs with --all, or with --deep between one agent and its
    parent.
    """
    if args.all:
        return [*check_moves(store), *check_forks(store)]
    return check_forks(store, [name_of(args.name)]) if args.deep else []


def _count_text(report: CheckReport) -> str:
    counts = f"{plural(report.records, 'record')} in {plural(report.commits, 'commit')}"
    return f"{counts}, {_files(report.bytes, report.files)}"


def _files(count: int, files: int) -> str:
    return f"{json_shapes.size(count)} in {plural(files, 'file')}"


def stats(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog log stats` and return its exit code."""
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
    """Run `everlog log seal` and return its exit code."""
    doing = _LogTask(args, store_of(args, world), "sealing")
    for part, what in doing.each():
        where = doing.store.partition(part.name)
        try:
            with without_take_over(), progress_bar.shown(what) as moved:
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
            print(escape_line(_sealed(part.label, done, before, after)))
        doing.found.append({"agent": part.agent, "partition": part.name, **msgspec.to_builtins(done)})
    return doing.done()


def _sealed(label: str, done: SealReport, before: PartitionStats, after: PartitionStats) -> str:
    if not done.files:
        return f"{label}: nothing to seal"
    then, now = _record_bytes(before), _record_bytes(after)
    gone = f", {done.erased:,} of them erased" if done.erased else ""
    return f"{label}: {plural(after.records, 'record')}{gone}, {then} → {now}"


def _record_bytes(found: PartitionStats) -> str:
    """Return size and number of the files that hold records: derived states are left out."""
    kinds = [kind for kind in (found.open, found.frames, found.sealed) if kind.bytes]
    return _files(sum(kind.bytes for kind in kinds), sum(kind.files for kind in kinds))

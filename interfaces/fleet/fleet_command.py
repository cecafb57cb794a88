"""`everlog fleet`: send messages to many agents at once; report time, memory, and whether a message was lost.

The agents live in a store of their own, which is removed at the end, unless the user names a store: so they never come
among a user's agents by chance.

Called by `cli.command_run`; `bench.fleet` and `bench.prefixes` use its messages and figures. The fields of
`FleetReport` are the keys of `--json`.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent_system import AgentSystem
from everlog.actors.hosting.cluster_status import StatusSource
from everlog.actors.hosting.process_memory import own_memory_bytes
from everlog.actors.ports.real_clock import monotonic_us
from everlog.events import BadInput, UsageError, UserMessage
from everlog.interfaces.common.bootstrap import agents_of
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import lines_of, root_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.fleet import load_generator as load
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import Progress, typed

NAME = "fleet-{:05}"
PROGRESS_PARTS = 10
"""Progress lines that are printed if stderr is not a terminal."""
EXAMPLE_CHARS = 200
"""Length of the longest example of an error in the report."""
AGENTS_OF_A_SHARE = 500
"""Agents from which on the memory of an agent is printed."""
PERCENTILES = (50, 95, 99)


class ErrorCount(msgspec.Struct, kw_only=True):
    """Errors of one kind."""

    kind: str
    count: int
    example: str
    refused: bool
    """True if a full queue rejected the message until the retries ended."""


class FleetReport(msgspec.Struct, kw_only=True):
    """All figures of a run: the keys that `--json` prints."""

    agents: int
    created_s: float
    messages: int
    """Answered messages."""
    seconds: float
    messages_per_s: float
    latency_ms: dict[str, float]
    """p50, p95 and p99; empty if no message was answered."""
    model_calls: int
    searched: int
    acted: int
    retried: int
    errors: list[ErrorCount]
    hosts: int
    """0 if the agents ran in the process of the command."""
    memory_bytes: int
    """Growth of the memory that the processes of the hosts share with no other process."""
    bytes_per_message: int
    acknowledged: int
    lost: int
    doubled: int
    unanswered: int
    interrupted: bool
    store: str | None
    """Folder of the store that holds the agents; None if it was removed at the end."""

    @property
    def fine(self) -> bool:
        """True if no message is lost or duplicated, and all errors are rejections by a full queue."""
        return not (self.lost or self.doubled or any(not failed.refused for failed in self.errors))


def fleet(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `fleet`."""
    words = lines(args.file)
    names = [NAME.format(number) for number in range(1, args.agents + 1)]
    with _store(args):
        report = asyncio.run(_fleet(args, world, names, words))
    print(json_shapes.line(report) if args.json else sanitize(page(report)), flush=True)
    if report.interrupted:
        raise KeyboardInterrupt("acknowledged messages are in the logs, and unfinished turns are completed later.")
    return int(not report.fine)


@contextmanager
def _store(args: Namespace) -> Iterator[None]:
    """Choose the store of the run, as `args.store`: a temporary one, unless the user names another. Say where."""
    if args.here or args.store is not None:
        where = root_of(args)
    elif args.keep is not None:
        where = Path(args.keep).expanduser()
        if where.exists() and any(where.iterdir()):
            raise BadInput(
                f"--keep {args.keep}: the folder is not empty. Name a new one, or add to a store with --store."
            )
    else:
        with TemporaryDirectory(prefix="everlog-fleet-") as folder:
            args.store, args.removed = folder, True
            _say_where(folder, ", which is removed at the end; --keep DIR keeps it")
            yield
        return
    args.store = str(where)
    _say_where(args.store, "")
    yield


def _say_where(folder: str, more: str) -> None:
    print(escape_line(f"everlog: the agents are in the store {folder}{more}"), file=sys.stderr, flush=True)


def lines(path: str | None) -> list[str]:
    """Return the messages to send: the lines of a text file, the user's messages of a .jsonl file, or built-in lines.

    Raises BadInput.
    """
    if path is None:
        return files(__package__).joinpath("everyday.txt").read_text(encoding="utf-8").splitlines()
    if path.endswith(".jsonl"):
        said = [message.event for message in conversation(lines_of(path), Path(path).name)]
        found = [event.text for event in said if isinstance(event, UserMessage)]
    else:
        found = [text for number, line in enumerate(lines_of(path), 1) if (text := _text(line, path, number))]
    if not found:
        raise BadInput(f"{path} has no messages of a user; write one message per line. Nothing was sent.")
    return found


def _text(line: bytes, path: str, number: int) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}, line {number}: it is not UTF-8 (byte {error.start + 1} of the line). Nothing was sent."
        ) from error


async def _fleet(args: Namespace, world: CommandEnvironment, names: Sequence[str], words: Sequence[str]) -> FleetReport:
    async with agents_of(args, world) as system:
        before, _ = await memory_of(system)
        began = monotonic_us()
        await _make(args, world, system, names)
        created_s = (monotonic_us() - began) / 1e6
        size = load.store_bytes(system.store, names)
        with progress_lines("messages") as moved:
            run = load.LoadRun(
                system, names, words, args.messages, at_once=args.at_once, now=monotonic_us, sleep=world.sleep,
                moved=moved,
            )  # fmt: skip
            interrupted = await _until_interrupted(run)
        after, hosts = await memory_of(system)
        size = load.store_bytes(system.store, names) - size
    tally = run.tally
    checked = load.check(system.store, names, tally.acknowledged)
    return FleetReport(
        agents=len(names),
        created_s=round(created_s, 3),
        messages=tally.answered,
        seconds=round(tally.seconds, 3),
        messages_per_s=round(tally.per_s, 1),
        latency_ms=latencies(tally.latencies_us),
        model_calls=tally.model_calls,
        searched=tally.searched,
        acted=tally.acted,
        retried=tally.retried,
        errors=[ErrorCount(kind=kind, **msgspec.structs.asdict(fault)) for kind, fault in sorted(tally.faults.items())],
        hosts=hosts,
        memory_bytes=after - before,
        bytes_per_message=max(0, round(size / max(1, tally.answered))),
        interrupted=interrupted,
        store=None if getattr(args, "removed", False) else args.store,
        **msgspec.structs.asdict(checked),
    )


async def _make(args: Namespace, world: CommandEnvironment, system: AgentSystem, names: Sequence[str]) -> None:
    with progress_lines("agents") as moved:
        failed = await load.make(
            system, names, Settings(model=args.model), at_once=args.at_once, sleep=world.sleep, moved=moved
        )
    if failed:
        raise UsageError(
            f"{len(failed):,} of {plural(len(names), 'agent')} could not be opened, and no message was sent. "
            f"{failed[0].agent_id}: {failed[0].error}"
        )


async def _until_interrupted(run: load.LoadRun) -> bool:
    """Run the load. Return True if Ctrl-C ended it; the cancellation is then cleared, so that the report follows."""
    try:
        await run.run()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        return True
    return False


async def memory_of(system: AgentSystem) -> tuple[int, int]:
    """Return the memory in bytes that the processes with agents share with no other, and the number of hosts.

    0 hosts mean that the agents run in this process. 0 bytes mean that the operating system does not report it.
    """
    if isinstance(system.runtime, StatusSource):
        hosts = (await system.runtime.status()).hosts
        return sum(host.memory_bytes for host in hosts), len(hosts)
    return own_memory_bytes(), 0


def latencies(taken_us: Sequence[int]) -> dict[str, float]:
    """Return percentiles by nearest rank, in milliseconds."""
    ordered = sorted(taken_us)
    return {f"p{part}": ordered[-(-len(ordered) * part // 100) - 1] / 1000 for part in PERCENTILES if ordered}


@contextmanager
def progress_lines(what: str) -> Iterator[Progress]:
    """Show progress: a bar on a terminal, else a line on stderr after each tenth."""
    if sys.stderr.isatty():
        with progress_bar.shown(what) as moved:
            yield moved
        return
    last = 0

    def notify(done: int, total: int) -> None:
        nonlocal last
        part = done * PROGRESS_PARTS // max(1, total)
        if part > last:
            last = part
            print(f"{done:,} of {total:,} {what}", file=sys.stderr, flush=True)

    yield notify


def page(report: FleetReport) -> str:
    """Return the report as text: the figures, then commands that show more."""
    rows = [
        ("agents", f"{report.agents:,}, ready after {report.created_s:,.1f} s"),
        ("messages", f"{report.messages:,} answered in {report.seconds:,.1f} s: {report.messages_per_s:,.0f}/s"),
        ("latency", ", ".join(f"{part} {_ms(ms)}" for part, ms in report.latency_ms.items()) or "–"),
        ("model calls", _calls(report)),
        ("memory", _memory(report)),
        ("log", f"{json_shapes.size(report.bytes_per_message)} per message, before it is sealed"),
        ("retried", f"{report.retried:,}"),
        *_errors(report),
        ("lost", f"{report.lost:,} of {report.acknowledged:,} acknowledged, all looked up in the logs"),
        ("doubled", f"{report.doubled:,}"),
    ]
    if report.unanswered:
        rows.append(("unanswered", f"{report.unanswered:,}: the turn ended, and the agent sent no message"))
    width = max(len(key) for key, _ in rows)
    report_lines = [f"{key:>{width}}: {value}" for key, value in rows]
    return "\n".join([*report_lines, "", *_next(report)])


def _ms(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def _calls(report: FleetReport) -> str:
    searched, acted = _share(report.searched, report), _share(report.acted, report)
    return f"{report.model_calls:,}; {searched} of the messages led to a memory search, {acted} to any function call"


def _share(count: int, report: FleetReport) -> str:
    return f"{count / max(1, report.acknowledged):.0%}"


def _memory(report: FleetReport) -> str:
    """Return the growth of memory. Divided by few agents, the fixed cost of a host would look like that of an agent."""
    where = plural(report.hosts, "host") if report.hosts else "this process"
    grown = max(0, report.memory_bytes)
    each = f", {json_shapes.size(grown // report.agents)} per agent" if report.agents >= AGENTS_OF_A_SHARE else ""
    return f"{json_shapes.size(grown)} more than before in {where}{each}"


def _errors(report: FleetReport) -> Iterator[tuple[str, str]]:
    if not report.errors:
        yield "errors", "none"
    for failed in report.errors:
        words = " ".join(failed.example.split())
        example = words if len(words) <= EXAMPLE_CHARS else words[: EXAMPLE_CHARS - 1] + "…"
        yield "refused" if failed.refused else "errors", f"{failed.count:,} {failed.kind}, for example: {example}"


def _next(report: FleetReport) -> Iterator[str]:
    """Yield the commands that show more; of a store that was removed, how to keep it."""
    if report.store is None:
        yield "The store was removed. `everlog fleet --keep DIR` keeps it, to look into."
        return
    everlog = f"everlog --store {typed(report.store)}"
    first = NAME.format(1)
    yield f"See also: {everlog} chat {first}, {everlog} events {first}, {everlog} log stats --all" + (
        f", {everlog} cluster status" if report.hosts else ""
    )

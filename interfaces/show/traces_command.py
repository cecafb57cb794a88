"""`everlog traces`: the past of agents as traces of OpenTelemetry, into a file or to a receiver. It writes no log.

Called by `cli.command_run`. The spans are made in `actors/reports/trace_spans.py`, from the log alone.
"""

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.reports.dataset import TimeSpan
from everlog.actors.reports.otlp_json import otlp_body
from everlog.actors.reports.trace_spans import TraceSpan, spans_of
from everlog.events import AgentConfigured, decode
from everlog.interfaces.common.agent_patterns import select
from everlog.interfaces.common.as_of import time_of
from everlog.interfaces.common.bootstrap import system_of
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.installed import installed_version
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.whole_file import check_free, write_whole
from everlog.interfaces.show.trace_receiver import TraceReceiver, headers_in
from everlog.projections import Projections
from everlog.store import name_of

SPANS_AT_ONCE = 512
"""Spans in one request, and in one line of a file."""


class _Counted:
    """Numbers of what was exported."""

    def __init__(self) -> None:
        self.spans = 0
        self.traces: set[str] = set()
        self.agents: set[str] = set()


def traces(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `traces`."""
    if (args.otlp is None) == (args.out is None):
        args.fail("give either --otlp URL or --out FILE")
    within = TimeSpan(time_of(args.since, "--since", world), time_of(args.until, "--until", world))
    if args.out is not None:
        check_free(Path(args.out).expanduser(), force=args.force)
    receiver = None if args.otlp is None else TraceReceiver(args.otlp, headers_in(os.environ), world.sleep)
    system, counted = system_of(args, world), _Counted()
    names = select(args, args.names, system.agents())
    given = store_of(args, world).aliases.shown()
    spans = _spans(system, names, given, within, counted, content=args.content)
    version = installed_version()
    bodies = (otlp_body(some, version) for some in _batches(spans))
    rejected, reason = 0, ""
    with interruptible():
        if receiver is None:
            write_whole(Path(args.out).expanduser(), (body + b"\n" for body in bodies))
        else:
            rejected, reason = asyncio.run(receiver.send(bodies))
    if rejected:
        complain(f"the receiver rejected {plural(rejected, 'span')}: {reason or 'it gave no reason'}")
    target = args.out if receiver is None else receiver.url
    if args.json:
        print(json_shapes.line({"to": target, "agents": len(counted.agents), "traces": len(counted.traces),
                                "spans": counted.spans, "rejected": rejected}))  # fmt: skip
    else:
        print(escape_line(f"Exported {plural(counted.spans, 'span')} of {plural(len(counted.traces), 'trace')} of "
                          f"{plural(len(counted.agents), 'agent')} to {target}."))  # fmt: skip
    return int(bool(rejected))


def _spans(
    system: LocalSystem,
    names: Sequence[str],
    given: Mapping[str, str],
    within: TimeSpan,
    counted: _Counted,
    *,
    content: bool,
) -> Iterator[TraceSpan]:
    """Yield the spans of all agents, one agent after the other, and count them."""
    projections = Projections()
    try:
        for name in names:
            view = system.view(name_of(name), projections)
            try:
                for span in _spans_of_agent(view, given.get(view.agent_id, view.agent_id), within, content=content):
                    counted.spans += 1
                    counted.traces.add(span.trace_id)
                    counted.agents.add(name)
                    yield span
            finally:
                view.close()
    finally:
        projections.close()


def _spans_of_agent(view: AgentView, name: str, within: TimeSpan, *, content: bool) -> Iterator[TraceSpan]:
    """Yield the spans of one agent. Only records from the first time on are read, and the configuration before them."""
    first = 1 if within.first is None else view.reader.seq_at(view.agent_id, within.first - 1) + 1
    config = None
    for row in view.rows("configurations") if first > 1 else []:
        if row["seq"] < first:
            event = decode(AgentConfigured.kind, row["version"], row["text"], row["payload"])
            config = event if isinstance(event, AgentConfigured) else config
    records = view.reader.read(view.agent_id, first)
    return spans_of(view.agent_id, records, name=name, config=config, within=within, content=content)


def _batches(spans: Iterator[TraceSpan]) -> Iterator[Sequence[TraceSpan]]:
    """Yield the spans in batches of SPANS_AT_ONCE."""
    while some := list(islice(spans, SPANS_AT_ONCE)):
        yield some

"""Show the plan of an erasure: as a table for people, as JSON for programs.

Used by `erase_command.py`. What an agent loses is printed on stderr, on lines of its own, also with --yes and --json: a
list of records does not say that one of them was the agent's persona.
"""

from collections.abc import Iterable, Sequence

from everlog.actors.erasure.erase_planned import ErasureReport
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.stream_scan import PlannedRecord
from everlog.events.times import iso
from everlog.interfaces.common.error_output import complain, escape_line, sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.output.json_shapes import JsonObject
from everlog.interfaces.output.terminal_output import console, one_line

LISTED_MAX = 100
"""Most records of a plan that are listed before the question; --dry-run lists all."""
WIDE_COLUMNS = 100
"""Columns from which the list has room for the time of each record."""
TEXT_CHARS, TEXT_CHARS_NARROW = 40, 24
"""Characters of a record that the list shows: in a wide terminal, and in a narrow one."""


def show(plan: ErasurePlan, *, whole: bool) -> None:
    """Print the records that go and those that say the same, and what the agents lose by it."""
    _table(plan.taken, whole=whole)
    if plan.left:
        print(f"{plural(len(plan.left), 'other record')} will still say the same; --derived erases them too:")
        _table(plan.left, whole=whole)
    warn(plan)


def warn(plan: ErasurePlan) -> None:
    """Print what the agents lose, and what cannot be erased or found, on stderr."""
    for loss in plan.losses:
        complain(f"warning: {loss}.")
    if plan.above:
        seqs = ", ".join(map(str, plan.above))
        complain(f"warning: seq {seqs} of an ancestor of {plan.agent_id!r} say it too. Erase them in the ancestor.")
    if plan.unsought:
        complain(
            "warning: the records hold more words than can be looked for at once, so other records may say the same "
            "and are not listed. Look with `everlog search`."
        )


def _table(records: Sequence[PlannedRecord], *, whole: bool) -> None:
    shown = records if whole else records[:LISTED_MAX]
    streams = {one.stream for one in records}
    wide = console().width >= WIDE_COLUMNS
    chars = TEXT_CHARS if wide else TEXT_CHARS_NARROW
    width = max((len(escape_line(one.stream)) for one in shown), default=0)
    for one in shown:
        stream = f"{escape_line(one.stream):<{width}}  " if len(streams) > 1 else ""
        words = one_line(one.text, chars)
        time = f"  {clock(one.recorded_at)}" if wide else ""
        line = f"{stream}{one.seq:>6}{time}  {one.type:<17}  {words:<{chars}}  {sanitize(one.why)}"
        print(line.rstrip())
    if len(shown) < len(records):
        print(f"and {plural(len(records) - len(shown), 'more record')}: --dry-run lists all.")


def total(plan: ErasurePlan) -> str:
    """Return what is erased, in words: "6 records of sam (seq 8 to 13), 1 record of team (seq 2)"."""
    streams = dict.fromkeys([plan.agent_id, *plan.spans])
    parts = []
    for stream in streams:
        seqs = [one.seq for one in plan.taken if one.stream == stream]
        if seqs:
            where = places(plan.spans.get(stream, ()))
            parts.append(f"{plural(len(seqs), 'record')} of {escape_line(stream)} ({where})")
    return ", ".join(parts) or f"0 records of {escape_line(plan.agent_id)}"


def places(spans: Iterable[tuple[int, int]]) -> str:
    """Return ranges of seqs in words: "seq 8 to 13, 20"."""
    said = [str(first) if first == last else f"{first} to {last}" for first, last in spans]
    return f"seq {', '.join(said)}"


def shape(plan: ErasurePlan, report: ErasureReport | None) -> JsonObject:
    """Return the plan as JSON, with the report of the erasure; None: nothing was erased."""
    own = [one.seq for one in plan.taken if one.stream == plan.agent_id]
    return {
        "agent": plan.agent_id,
        "from_seq": min(own, default=None),
        "to_seq": max(own, default=None),
        "erased": 0 if report is None else report.erased,
        "forks": list(plan.forks),
        "bytes_before": 0 if report is None else report.bytes_before,
        "bytes_after": 0 if report is None else report.bytes_after,
        "exports_reached": False,
        "dry_run": report is None,
        "records": [_record(one) for one in plan.taken],
        "left": [_record(one) for one in plan.left],
        "losses": list(plan.losses),
        "ancestor_seqs": list(plan.above),
    }


def _record(one: PlannedRecord) -> JsonObject:
    return {
        "stream": one.stream, "seq": one.seq, "type": one.type, "recorded_at": iso(one.recorded_at), "why": one.why,
        "derived": one.derived, "text": one.text,
    }  # fmt: skip

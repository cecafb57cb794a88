"""The command `reparse`: recorded replies read again. It writes nothing."""

from argparse import Namespace
from collections import Counter

import msgspec

from everlog.actors.replay.reparse import Reparsed, Reread
from everlog.actors.replay.reparse import reparse as read_again
from everlog.events import EverlogError
from everlog.interfaces.common.contract import World
from everlog.interfaces.common.opening import looking, system_of
from everlog.interfaces.output import progress, shapes
from everlog.interfaces.show.proving import names_of

WORDS = {
    "otherwise": "would now be read otherwise",
    "readable": "could now be read",
    "unreadable": "still cannot be read",
}
SHOWN_CHARS = 200


def reparse(args: Namespace, world: World) -> int:
    """The command `reparse`. Exit 1 where a log cannot be read; what is read otherwise is no fault."""
    system = system_of(args, world)
    names = names_of(args, system)
    reports: list[Reparsed] = []
    faults: dict[str, str] = {}
    for number, name in enumerate(names):
        try:
            with progress.shown(f"reading {name} again") as moved, looking(system, name) as view:
                if args.all:
                    moved(number, len(names))
                reports.append(read_again(name, view.reader.read(name)))
        except EverlogError as error:
            if not args.all:
                raise
            faults[name] = str(error)
    if args.json:
        found = [{**msgspec.to_builtins(_keyed(report)), "faults": []} for report in reports]
        found += [{"agent": name, "read": 0, "found": [], "faults": [fault]} for name, fault in faults.items()]
        print(shapes.line(found if args.all else found[0]))
    else:
        _print(reports, faults)
    return int(bool(faults))


def _keyed(report: Reparsed) -> dict[str, object]:
    return {"agent": report.agent_id, "read": report.read, "found": report.found}


def _print(reports: list[Reparsed], faults: dict[str, str]) -> None:
    from rich.text import Text

    from everlog.interfaces.common.complaints import plain
    from everlog.interfaces.output.terminal import console

    out = console()
    for report in reports:
        counts = Counter(item.verdict for item in report.found)
        told = [f"{count:,} {WORDS[verdict]}" for verdict, count in sorted(counts.items())]
        summary = "; ".join(told) or "all read as they were"
        out.print(Text(plain(f"{report.agent_id}: {report.read:,} replies read again: {summary}")))
        for item in report.found:
            for line in _lines(item):
                out.print(Text(plain(line)))
    for name, fault in faults.items():
        out.print(Text(plain(f"{name}: {fault}")))


def _lines(item: Reread) -> list[str]:
    """What is told of one reply."""
    how = f" ({item.repair}{': a guess' if item.lossy else ''})" if item.repair else ""
    head = f"  seq {item.seq} ({item.type}, turn {item.turn}): {WORDS[item.verdict]}{how}"
    return [head, f"    - {_cut(item.was)}", f"    + {_cut(item.now)}"]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"

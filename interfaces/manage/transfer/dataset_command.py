"""Write a dataset of conversations: `everlog dataset`. Called by `cli.command_run`."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from everlog.actors.reports.dataset import JsonLine, TimeSpan, models_saw, people_saw
from everlog.events import BadInput
from everlog.interfaces.common.as_of import time_of
from everlog.interfaces.common.bootstrap import system_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.whole_file import check_free, write_whole


def dataset(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `dataset`."""
    path, left_out = Path(args.out).expanduser(), Counter[str]()
    if args.view == "models" and args.turns is not None:
        raise BadInput("--turns divides what people saw: leave it out with --view models, whose lines are requests.")
    check_free(path, force=args.force)
    span = TimeSpan(time_of(args.since, "--since", world), time_of(args.until, "--until", world))
    system = system_of(args, world)
    names = [name for name in system.agents() if fnmatchcase(name, args.pattern)]
    if not names:
        raise BadInput(f"No agent matches {args.pattern!r}. `everlog agents` lists them. Nothing was written.")
    agents: set[str] = set()

    def lines() -> Iterator[JsonLine]:
        for name in names:
            with system.view(name) as view:
                if view.rows("standing")[0]["deleted"]:
                    continue
                saw = people_saw(view, span, args.turns) if args.view == "people" else models_saw(view, span, left_out)
                for line in saw:
                    agents.add(name)
                    yield line

    count = write_whole(path, (msgspec.json.encode(line) + b"\n" for line in lines()))
    reasons = {reason: number for reason, number in sorted(left_out.items()) if number}
    shape = {"file": str(path), "lines": count, "agents": len(agents), "left_out": reasons}
    if args.json:
        print(json_shapes.line(shape))
        return 0
    print(escape_line(f"Wrote {plural(count, 'line')} of {plural(len(agents), 'agent')} to {path}."))
    for reason, number in reasons.items():
        print(f"Left out: {plural(number, 'request')} ({reason}).")
    return 0

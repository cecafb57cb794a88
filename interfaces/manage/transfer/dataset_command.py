"""Write a dataset of conversations: `everlog dataset`. Called by `cli.command_run`.

The file appears whole or not at all: it is written beside its name first.
"""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from everlog.actors.reports.dataset import JsonLine, TimeSpan, models_saw, people_saw
from everlog.events import BadInput, StoreError
from everlog.interfaces.common.as_of import time_of
from everlog.interfaces.common.bootstrap import system_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.store import open_private


def dataset(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `dataset`."""
    path, left_out = Path(args.out).expanduser(), Counter[str]()
    if args.view == "models" and args.turns is not None:
        raise BadInput("--turns divides what people saw: leave it out with --view models, whose lines are requests.")
    if path.exists() and not args.force:
        raise BadInput(f"{path} exists already. Choose another file, or --force to overwrite it. Nothing was written.")
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

    count = _write(path, lines())
    reasons = {reason: number for reason, number in sorted(left_out.items()) if number}
    shape = {"file": str(path), "lines": count, "agents": len(agents), "left_out": reasons}
    if args.json:
        print(json_shapes.line(shape))
        return 0
    print(escape_line(f"Wrote {plural(count, 'line')} of {plural(len(agents), 'agent')} to {path}."))
    for reason, number in reasons.items():
        print(f"Left out: {plural(number, 'request')} ({reason}).")
    return 0


def _write(path: Path, lines: Iterator[JsonLine]) -> int:
    """Write the lines, and return their number. Raises StoreError."""
    beside, count, whole = path.with_name(f"{path.name}.part"), 0, False
    try:
        with open_private(beside, "wb") as file:
            for line in lines:
                file.write(msgspec.json.encode(line) + b"\n")
                count += 1
        beside.replace(path)
        whole = True
    except OSError as error:
        raise StoreError(f"could not write {path}: {error.strerror}. Nothing was written.") from error
    finally:
        if not whole:
            beside.unlink(missing_ok=True)
    return count

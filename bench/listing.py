"""Measure commands over a whole fleet as it grows: CPU time and memory of `agents`, `pressure`, `cost`, and of
`verify --all --sample 1`.

Run as `python -m bench.listing`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

Each command is a fresh process over a store of so many agents, from its start to its end, with the CPU time of all its
threads and its largest resident memory. The floor is a fresh Python that only imports the libraries of the store and
the projections, measured in turns with the commands.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from bench.support import large_fleet
from bench.support.harness import ROOT, Figure, Line, Noise, among, line, median, noise, options, show, workspace

COMMANDS: Mapping[str, Sequence[str]] = {
    "agents": ("agents", "fleet-*", "--sort", "messages", "--json"),
    "pressure": ("pressure", "fleet-*", "--sort", "used", "--json"),
    "cost": ("cost", "fleet-*", "--sort", "cost", "--json"),
    "verify": ("verify", "--all", "--sample", "1", "--json"),
}
"""Arguments of each command that is measured, by the name of its figures."""
CPU_GOALS = {"agents": 2, "pressure": 2, "cost": 2, "verify": 60}
"""Seconds of CPU time over 10,000 agents, at most."""
MIB_GOAL = 512
"""MiB of resident memory over 10,000 agents, at most."""
KEYS = tuple(f"{command}_{unit}" for command in COMMANDS for unit in ("cpu_s", "mib"))
METER = """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)"""
"""Program of a small process that starts the measured one: a process inherits the memory figure of its parent."""
FLOOR = "floor"
FLOOR_CODE = ("-c", "import duckdb, pyarrow, msgspec")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    sizes: Sequence[int] = (100, 1000, 10_000)
    """Numbers of agents, ascending; the figures are those of the last."""
    runs: int = 3


QUICK = Plan(sizes=(100, 1000), runs=1)


class Used(NamedTuple):
    """Resources of one process."""

    cpu_s: float
    mib: float


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    used: dict[tuple[int, str], list[Used]]
    """Runs by the number of agents and the command, or `FLOOR`."""


def measure(plan: Plan) -> Seen:
    """Make a fleet of each size, and run the commands over it in turns."""
    used: dict[tuple[int, str], list[Used]] = {}
    with workspace() as folder:
        quiet = noise(folder)
        for size in plan.sizes:
            store = folder / f"fleet-{size}"
            large_fleet.make(store, size)
            for _ in range(plan.runs):
                used.setdefault((size, FLOOR), []).append(process(*FLOOR_CODE))
                for command, arguments in COMMANDS.items():
                    asked = ("-m", "everlog.interfaces.cli.main", "--store", str(store), *arguments)
                    used.setdefault((size, command), []).append(process(*asked))
    return Seen(quiet, used)


def process(*arguments: str) -> Used:
    """Return what a fresh Python used until its end. Raise RuntimeError if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVERLOG_LOG": ""}
    command = [sys.executable, "-c", METER, sys.executable, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} ended with {run.returncode}: {run.stderr}")
    cpu_s, kib = map(float, run.stdout.split())
    return Used(cpu_s, kib / 1024)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures of the largest fleet."""
    size = max(size for size, _ in seen.used)
    found = []
    for command in COMMANDS:
        ours, bare = seen.used[size, command], seen.used[size, FLOOR]
        for field, key, unit in (("cpu_s", "cpu_s", "s"), ("mib", "mib", "MiB")):
            values, floors = ([getattr(one, field) for one in some] for some in (ours, bare))
            found.append(Figure(f"{command}_{key}", median(values), unit, median(floors)))
    return found


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table: the figures, and the same of the smaller fleets below each."""
    by_key = {figure.key: figure for figure in found}
    sizes = sorted({size for size, _ in seen.used}, reverse=True)
    rows = []
    for command in COMMANDS:
        cpu = [one.cpu_s for one in seen.used[sizes[0], command]]
        rows.append(line(by_key[f"{command}_cpu_s"], f"<= {CPU_GOALS[command]}", among(cpu)))
        rows.append(line(by_key[f"{command}_mib"], f"<= {MIB_GOAL}"))
        for size in sizes[1:]:
            some = seen.used[size, command]
            name = f"  {command}, {size:,} agents"
            rows.append(Line(name, f"{median([u.cpu_s for u in some]):.3g} s", "", "", f"{_mib(some):.0f} MiB"))
    return [*rows, Line("  agents in the figures", f"{sizes[0]:,}")]


def _mib(some: Sequence[Used]) -> float:
    return median([one.mib for one in some])


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("listing", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("listing", "Commands over a fleet of up to 10,000 agents: CPU time and memory.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run all quick figures and compare them with those that were landed last: `python -m bench`.

docs/explanation/benchmarks.md says when to run it. Each benchmark runs in a process of its own, one after the other.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from bench.support import landed
from bench.support.harness import ROOT

BENCHES = (
    "step", "append", "replay", "replay_agent", "archive", "analytics", "listing", "retrieval", "cold_start", "gateway",
    "derivation", "serve", "surfaces", "console", "dedicated", "fleet",
)  # fmt: skip
"""Benchmarks with `--quick`, those with a Ray of their own last."""


def run_quick(bench: str) -> landed.BenchRun:
    """Run one benchmark with `--quick`. Raises RuntimeError if it fails."""
    command = [sys.executable, "-m", f"bench.{bench}", "--quick"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"bench.{bench} ended with {run.returncode}:\n{run.stderr}")
    return landed.parsed_run(run.stdout)


def table_of(changes: Sequence[landed.FigureChange]) -> Table:
    """Return the table of one benchmark."""
    table = Table(Column("figure", min_width=26), "landed", "now", "over floor", "times better", "")
    for change in changes:
        was, now = change.landed, change.figure
        ratios = " -> ".join(f"{landed.over_floor(one):.3g}" for one in (was, now) if one)
        table.add_row(
            now.key, f"{was.value:.4g}" if was else "", f"{now.value:.4g} {now.unit}", ratios,
            f"{change.factor:.2f}" if was else "", change.verdict,
        )  # fmt: skip
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and compare. Return 1 if a figure is worse than the landed one."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Run all quick figures and compare each, as a ratio to its floor, with bench/landed.json.",
        epilog="example: python -m bench step fleet",
    )
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"only these ({', '.join(BENCHES)})")
    parser.add_argument("--write", action="store_true", help="keep these figures as the landed ones")
    args = parser.parse_args(argv)
    unknown = set(args.benches) - set(BENCHES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}. There are {', '.join(BENCHES)}.")
    console, before = Console(width=None if Console().is_terminal else 110), landed.landed_runs(landed.LANDED)
    runs = dict(before)
    worse = []
    for bench in args.benches or BENCHES:
        runs[bench] = run = run_quick(bench)
        changes = landed.compared(run, before.get(bench))
        noise = f"noise: loop {run.noise.loop_ms} ms ({run.noise.loop_spread}), sync {run.noise.fdatasync_ms} ms"
        console.print(f"bench.{bench}   {noise} ({run.noise.fdatasync_spread})", table_of(changes), highlight=False)
        worse += [f"{bench}.{change.figure.key}" for change in changes if change.verdict == "worse"]
    if args.write:
        landed.write_landed(runs, landed.LANDED)
        console.print(f"written to bench/{landed.LANDED.name}")
    console.print(f"worse than landed: {', '.join(worse)}" if worse else "nothing is worse than landed")
    return 1 if worse and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())

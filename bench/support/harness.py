"""Run and report benchmarks: figures with their floors, the noise of the machine, and the output.

Used by every benchmark. `tests/bench` checks the keys of the last line, which programs read.

A benchmark prints a table for people and, as its last line, one JSON object `{bench, noise, figures: [{key, value,
unit, floor}]}`. A floor is the raw cost of the same work (a bare write and sync, a bare import), measured in the same
run and in turns with the figure, so that a busy minute affects both.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Column, Table

ROOT = Path(__file__).resolve().parents[2]
LOOPS = 60
SYNCS = 60
SYNC_BYTES = 4096

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the figures of a start would be those of compiling the modules


class Figure(msgspec.Struct, frozen=True):
    """One number that a benchmark claims, and the floor with which it is compared."""

    key: str
    value: float
    unit: str
    floor: float


class Noise(msgspec.Struct, frozen=True):
    """Noise of the machine during the measurement: a spread of 1.0 to 1.1 is quiet; above 1.5, wall times are
    unreliable.
    """

    loop_ms: float
    """Median milliseconds of a fixed Python loop."""
    loop_spread: float
    """p90 of the loop over its p50."""
    fdatasync_ms: float
    """Median milliseconds of a bare append of 4 KiB and its fdatasync, on the measured volume."""
    fdatasync_spread: float


class Line(msgspec.Struct, frozen=True):
    """One row of the table: a figure with its goal, or a note without a key."""

    name: str
    value: str
    floor: str = ""
    goal: str = ""
    runs: str = ""


def median(values: Sequence[float]) -> float:
    """Return the middle value; of an even number of values, the mean of the two in the middle."""
    return float(statistics.median(values))


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value that a fraction `part` of the values do not exceed, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1))]


def spread(values: Sequence[float]) -> float:
    """Return p90 over p50."""
    return quantile(values, 0.9) / median(values)


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Return each value over its counterpart."""
    return [a / b for a, b in zip(over, under, strict=True)]


def timed(work: Callable[[], object]) -> float:
    """Return the wall milliseconds of one call."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def together(work: Callable[[int], None], count: int) -> float:
    """Return the seconds until `count` threads, started together, have done `work`; each gets its number."""
    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - begun


class BareFile:
    """Floor of a durable write: the same bytes appended to a plain file and synced, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, count: int) -> None:
        """Write `count` bytes and make them durable."""
        os.write(self._fd, b"\x5a" * count)
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def noise(folder: Path) -> Noise:
    """Measure the machine: a fixed loop, and bare syncs in `folder`."""
    loops = [timed(_loop) for _ in range(LOOPS)]
    file = BareFile(folder / "noise")
    syncs = [timed(lambda: file.append(SYNC_BYTES)) for _ in range(SYNCS)]
    file.close()
    return Noise(
        loop_ms=_rounded(median(loops)),
        loop_spread=_rounded(spread(loops)),
        fdatasync_ms=_rounded(median(syncs)),
        fdatasync_spread=_rounded(spread(syncs)),
    )


def _loop() -> int:
    total = 0
    for number in range(60_000):
        total += number * number % 7
    return total


@contextmanager
def workspace() -> Iterator[Path]:
    """Create a folder on the current folder's file system; remove it afterwards."""
    path = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path.cwd()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def options(
    bench: str,
    about: str,
    argv: Sequence[str] | None = None,
    more: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> argparse.Namespace:
    """Parse the arguments that every benchmark has, and those that `more` adds."""
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.{bench}",
        description=about,
        epilog=f"example: python -m bench.{bench} --quick | tail -1 | python -m json.tool",
    )
    parser.add_argument("--quick", action="store_true", help="under 45 s on 2 cores; fewer runs, the same keys")
    more(parser)
    return parser.parse_args(argv)


def among(values: Sequence[float], digits: int = 2) -> str:
    """Return the range of the runs behind a median, lowest to highest."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f} ({len(values)})" if len(values) > 1 else "1"


def line(figure: Figure, goal: str = "", runs: str = "") -> Line:
    """Return a figure as a row of the table."""
    return Line(figure.key, f"{figure.value:.3g} {figure.unit}", f"{figure.floor:.3g}", goal, runs)


def show(bench: str, noise: Noise, figures: Sequence[Figure], lines: Sequence[Line]) -> None:
    """Print the table, then the JSON line."""
    keys = Column("figure", min_width=max(len(row.name) for row in lines))  # a key is never truncated
    table = Table(keys, "value", "floor", "goal", "runs", title=f"bench.{bench}", title_justify="left")
    for row in lines:
        table.add_row(row.name, row.value, row.floor, row.goal, row.runs)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(table)
    console.print(
        f"noise: a fixed loop {noise.loop_ms} ms (p90/p50 {noise.loop_spread}); 4 KiB + fdatasync {noise.fdatasync_ms} "
        f"ms (p90/p50 {noise.fdatasync_spread})",
        highlight=False,
    )
    print(last_line(bench, noise, figures), flush=True)


def last_line(bench: str, noise: Noise, figures: Sequence[Figure]) -> str:
    """Return the JSON line."""
    rounded = [msgspec.structs.replace(f, value=_rounded(f.value), floor=_rounded(f.floor)) for f in figures]
    return msgspec.json.encode({"bench": bench, "noise": noise, "figures": rounded}).decode()


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")

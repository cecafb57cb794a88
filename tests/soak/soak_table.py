"""Samples of a cluster under a constant load, their tables in Markdown, and the verdict on each process.

Used by `constant_load`. Pure. A table without its verdicts must not be read as a result: a load that stalls makes every
process level, so the answered messages of each interval are a part of the verdict.
"""

from collections.abc import Mapping, Sequence

import msgspec

GROWTH_PART_MAX = 0.10
"""Share by which a process may grow from the middle of the run to its end."""
GROWTH_MIB_MAX = 8.0
"""MiB by which it may grow in any case: a small process changes by more than a tenth."""
FILES_MAX = 8
"""Number of open files by which a process may exceed its number in the middle of the run."""
STALLED_PART = 0.5
"""Share of the usual rate below which an interval counts as stalled."""
LOG_MONITOR = "log_monitor.py"
"""Process of Ray that keeps logs of ended workers open up to its own limit, and is therefore not checked for files."""
MIB = 2**20


class ProcessSample(msgspec.Struct, frozen=True):
    """Memory, in bytes, and open files of a process."""

    resident: int
    shared_out: int
    """PSS: memory that several processes share counts in part."""
    files: int


class ArchiveSizes(msgspec.Struct, frozen=True):
    """Sizes of the archive, as `everlog cluster status` shows them."""

    memories: int = 0
    messages: int = 0
    behind: int = 0
    row_cache_bytes: int = 0
    row_cache_bytes_max: int = 0
    table_cache_bytes: int = 0
    table_cache_bytes_max: int = 0
    versions: int = 0
    files: int = 0
    disk_bytes: int = 0

    @property
    def cache_bytes(self) -> int:
        """Bytes of all caches in memory."""
        return self.row_cache_bytes + self.table_cache_bytes

    @property
    def caches_have_room(self) -> bool:
        """True if every cache is below its limit."""
        return self.row_cache_bytes <= self.row_cache_bytes_max and self.table_cache_bytes <= self.table_cache_bytes_max


class Sample(msgspec.Struct, frozen=True):
    """Measurement of a whole cluster at one moment."""

    minute: float
    answered: int
    """Messages answered since the load began."""
    failed: int
    late: int
    """Messages that were not sent, because too many others were not answered yet."""
    processes: Mapping[str, ProcessSample]
    """Processes by name and id."""
    archive: ArchiveSizes


def process_table(samples: Sequence[Sample]) -> str:
    """Return a row for each process that is in every sample: resident and proportional MiB, and open files."""
    lines = [f"| process: RSS / PSS MiB, files | {' | '.join(f'min {one.minute:g}' for one in samples)} |"]
    lines.append("|---" * (len(samples) + 1) + "|")
    for name in _steady(samples):
        cells = [one.processes[name] for one in samples]
        texts = [f"{one.resident / MIB:.0f} / {one.shared_out / MIB:.0f}, {one.files}" for one in cells]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def archive_table(samples: Sequence[Sample]) -> str:
    """Return a row for each figure of the load and of the archive."""
    rows: Mapping[str, Sequence[str]] = {
        "answered in the interval": [f"{count:,}" for count in _in_intervals([one.answered for one in samples])],
        "answered a second": [f"{rate:.1f}" for rate in rates(samples)],
        "failed, late": [f"{one.failed:,}, {one.late:,}" for one in samples],
        "memories, messages in the archive": [f"{one.archive.memories:,}, {one.archive.messages:,}" for one in samples],
        "logs behind": [f"{one.archive.behind}" for one in samples],
        "row caches MiB, limit": [_of(one.archive.row_cache_bytes, one.archive.row_cache_bytes_max) for one in samples],
        "table caches MiB, limit": [
            _of(one.archive.table_cache_bytes, one.archive.table_cache_bytes_max) for one in samples
        ],
        "versions, files": [f"{one.archive.versions}, {one.archive.files}" for one in samples],
        "archive MiB on disk": [f"{one.archive.disk_bytes / MIB:.0f}" for one in samples],
    }
    lines = [f"| load and archive | {' | '.join(f'min {one.minute:g}' for one in samples)} |"]
    lines.append("|---" * (len(samples) + 1) + "|")
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())])


def _of(used: int, limit: int) -> str:
    return f"{used / MIB:.1f} of {limit / MIB:.0f}"


def _in_intervals(counts: Sequence[int]) -> list[int]:
    return [now - before for before, now in zip([0, *counts], counts, strict=False)]


def rates(samples: Sequence[Sample]) -> list[float]:
    """Return the messages answered a second in each interval; 0 for an interval without duration."""
    minutes = [one.minute for one in samples]
    spans = [now - before for before, now in zip([0.0, *minutes], minutes, strict=False)]
    counts = _in_intervals([one.answered for one in samples])
    return [count / (span * 60) if span > 0 else 0.0 for count, span in zip(counts, spans, strict=True)]


def _steady(samples: Sequence[Sample]) -> list[str]:
    """Return the processes that are in every sample."""
    return sorted(set.intersection(*(set(one.processes) for one in samples))) if samples else []


def verdicts(samples: Sequence[Sample], wanted_rate: float) -> dict[str, str]:
    """Return a verdict for each process, and for the load: it begins with `level` or `ok` if all is well."""
    found = {"load": _load_verdict(samples, wanted_rate)}
    middle = next((one for one in samples if one.minute >= samples[-1].minute / 2), samples[-1])
    for name in _steady(samples):
        found[name] = _verdict(name, middle, samples[-1])
    return found


def is_level(found: Mapping[str, str]) -> bool:
    """Return True if every verdict says that all is well."""
    return all(text.startswith(("level", "ok")) for text in found.values())


def _load_verdict(samples: Sequence[Sample], wanted_rate: float) -> str:
    found = rates(samples)
    stalled = [f"{rate:.1f}" for rate in found if rate < STALLED_PART * wanted_rate]
    if stalled:
        return f"STALLED: {', '.join(stalled)} messages a second were answered in an interval, not {wanted_rate:g}"
    if samples[-1].failed:
        return f"FAILED: {samples[-1].failed:,} messages"
    return f"ok: {samples[-1].answered:,} answered, {min(found):.1f} to {max(found):.1f} a second"


def _verdict(name: str, middle: Sample, last: Sample) -> str:
    """Return the verdict on one process: its growth from the middle of the run to the end."""
    before, now = middle.processes[name], last.processes[name]
    grown = now.resident - before.resident
    text = f"{before.resident / MIB:.0f} -> {now.resident / MIB:.0f} MiB"
    if now.files > before.files + FILES_MAX and LOG_MONITOR not in name:
        return f"OPENS FILES: {before.files} -> {now.files}"
    allowed = max(GROWTH_PART_MAX * before.resident, GROWTH_MIB_MAX * MIB)
    if grown <= allowed:
        return f"level: {text}"
    cached = last.archive.cache_bytes - middle.archive.cache_bytes
    if "Archive" in name and last.archive.caches_have_room and grown - cached <= allowed:
        return f"level: {text}, of which {cached / MIB:.0f} MiB in caches below their limits"
    return f"GROWS: {text}"

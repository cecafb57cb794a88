"""Tables and verdicts of the soak with a constant load: growth, open files and a stalled load are all seen."""

from everlog.actors.hosting.cluster_status import ArchiveStatus
from tests.soak.constant_load import archive_sizes
from tests.soak.soak_table import (
    MIB,
    ArchiveSizes,
    ProcessSample,
    Sample,
    archive_table,
    is_level,
    process_table,
    rates,
    verdicts,
)

MINUTES = (5, 10, 20, 30, 40)
ROOM = ArchiveSizes(row_cache_bytes_max=256 * MIB, table_cache_bytes_max=64 * MIB)
ARCHIVE = "ray::ArchiveActor (7)"


def sample(minute: float, resident: float, *, answered: int | None = None, files: int = 40, failed: int = 0,
           name: str = "host (1)", archive: ArchiveSizes = ROOM) -> Sample:  # fmt: skip
    """Return a sample of one process; 20 messages a second unless `answered` says otherwise."""
    told = round(minute * 60 * 20) if answered is None else answered
    found = {name: ProcessSample(round(resident * MIB), round(resident * MIB / 2), files)}
    return Sample(minute, told, failed, 0, found, archive)


def judged(*residents: float, **more: object) -> dict[str, str]:
    """Return the verdicts on a process of these sizes, in MiB, at the five moments."""
    return verdicts([sample(minute, size, **more) for minute, size in zip(MINUTES, residents, strict=True)], 20)  # type: ignore[arg-type]


def test_growth_after_the_middle_is_seen_and_growth_before_is_not() -> None:
    """A process is level if its end is at most a tenth above its middle, however much it grew until then."""
    assert is_level(judged(100, 180, 200, 210, 219))
    found = judged(100, 180, 200, 210, 221)
    assert found["host (1)"] == "GROWS: 200 -> 221 MiB" and not is_level(found)
    assert is_level(judged(20, 20, 20, 24, 27.9)), "a small process may change by some MiB"


def test_growth_of_the_archive_is_explained_by_caches_below_their_limits_only() -> None:
    """Growth of the archive's process is level as far as its caches grew; not for a cache above its limit, and not for
    other processes.
    """

    def run(name: str, cached: int) -> dict[str, str]:
        sizes = [
            ArchiveSizes(row_cache_bytes=size * MIB, row_cache_bytes_max=256 * MIB) for size in (0, 10, 20, 60, cached)
        ]
        return verdicts(
            [
                sample(at, 200 + one.row_cache_bytes / MIB, name=name, archive=one)
                for at, one in zip(MINUTES, sizes, strict=True)
            ],
            20,
        )

    assert run(ARCHIVE, 100)[ARCHIVE] == "level: 220 -> 300 MiB, of which 80 MiB in caches below their limits"
    assert run(ARCHIVE, 300)[ARCHIVE] == "GROWS: 220 -> 500 MiB"
    assert run("host (1)", 100)["host (1)"] == "GROWS: 220 -> 300 MiB"


def test_files_that_stay_open_are_seen() -> None:
    """A process whose number of open files grows is not level; Ray's log monitor keeps some, up to its own limit."""
    for name, level in (("host (1)", False), ("log_monitor.py (3)", True)):
        samples = [sample(minute, 100, files=40 + minute, name=name) for minute in MINUTES]
        assert is_level(verdicts(samples, 20)) == level


def test_a_stalled_load_fails_the_run() -> None:
    """Without answers in one interval, or with a failed message, level processes prove nothing."""
    samples = [sample(minute, 100) for minute in MINUTES]
    assert verdicts(samples, 20)["load"].startswith("ok: 48,000 answered, 20.0 to 20.0 a second")
    stalled = [*samples[:3], sample(30, 100, answered=24_000), sample(40, 100, answered=48_000)]
    assert rates(stalled) == [20, 20, 20, 0, 40]
    found = verdicts(stalled, 20)
    assert found["load"] == "STALLED: 0.0 messages a second were answered in an interval, not 20" and not is_level(
        found
    )
    assert not is_level(verdicts([*samples[:-1], sample(40, 100, failed=1)], 20))


def test_tables_have_a_column_for_each_sample_and_a_row_for_each_steady_process() -> None:
    """A process that ended or began during the run has no row; every figure of the archive has one."""
    samples = [sample(minute, 100) for minute in MINUTES]
    samples[2].processes["gone (9)"] = ProcessSample(1, 1, 1)  # type: ignore[index]
    lines = process_table(samples).splitlines()
    assert lines[0] == "| process: RSS / PSS MiB, files | min 5 | min 10 | min 20 | min 30 | min 40 |"
    assert lines[2:] == ["| host (1) |" + " 100 / 50, 40 |" * 5]
    archive = archive_table(samples).splitlines()
    assert {line.count("|") for line in (*lines, *archive)} == {7}
    assert "| answered in the interval | 6,000 | 6,000 | 12,000 | 12,000 | 12,000 |" in archive


def test_sizes_of_the_archive_are_those_of_its_status() -> None:
    """Each figure of a sample is a figure of the cluster's status; an archive that does not answer has none."""
    assert archive_sizes(ArchiveStatus(versions=3, table_cache_bytes=5)) == ArchiveSizes(
        versions=3, table_cache_bytes=5
    )
    assert archive_sizes(None) == ArchiveSizes()

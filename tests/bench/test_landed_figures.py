"""`python -m bench` compares figures with the landed ones, and says which are worse."""

from pathlib import Path

import pytest

from bench import __main__ as command
from bench.support import landed
from bench.support.harness import Figure, Noise, last_line

QUIET = Noise(1, 1, 1, 1)


def run(key: str, value: float, floor: float = 1.0) -> landed.BenchRun:
    return landed.BenchRun("step", QUIET, [Figure(key, value, "ms", floor)])


@pytest.mark.parametrize(
    ("key", "before", "now", "verdict"),
    [
        ("turn_cpu_ms", (8, 1), (8.5, 1), ""),
        ("turn_cpu_ms", (8, 1), (11, 1), "worse"),
        ("turn_cpu_ms", (8, 1), (4, 1), "better"),
        ("turn_cpu_ms", (8, 1), (16, 2), ""),
        ("messages_per_s", (2000, 100), (1000, 100), "worse"),
        ("messages_per_s", (2000, 100), (1000, 50), ""),
        ("recall_at_10_hybrid", (0.78, 0.1), (0.7799, 0.1), "worse"),
        ("recall_at_10_hybrid", (0.78, 0.1), (0.78, 0.2), ""),
        ("pages_by_words", (0, 1), (1, 1), "worse"),
        ("pages_by_words", (0, 1), (0, 1), ""),
        ("page_chars", (2000, 0), (3000, 0), "worse"),
    ],
)
def test_a_figure_is_judged_by_its_ratio_to_its_floor(
    key: str, before: tuple[float, float], now: tuple[float, float], verdict: str
) -> None:
    """A busy machine moves a figure and its floor alike, and that is no regression; a score may not fall at all."""
    (change,) = landed.compared(run(key, *now), run(key, *before))
    assert change.verdict == verdict


def test_a_new_figure_has_no_verdict_and_a_lost_one_is_refused() -> None:
    (change,) = landed.compared(run("turn_cpu_ms", 8), None)
    assert change.verdict == "new"
    with pytest.raises(ValueError, match="no longer prints turn_ms_200"):
        landed.compared(run("turn_cpu_ms", 8), run("turn_ms_200", 8))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "landed.json"
    assert landed.landed_runs(path) == {}
    found = landed.parsed_run("a table\n" + last_line("step", QUIET, [Figure("turn_cpu_ms", 8, "ms", 0.25)]) + "\n")
    landed.write_landed({"step": found}, path)
    assert landed.landed_runs(path) == {"step": found}


def test_every_landed_benchmark_is_one_that_the_command_runs() -> None:
    assert landed.landed_runs(landed.LANDED).keys() <= set(command.BENCHES)


def test_the_command_fails_when_a_figure_is_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code and the last line name what is worse; `--write` keeps the new figures as the landed ones."""
    path = tmp_path / "landed.json"
    landed.write_landed({"step": run("turn_cpu_ms", 8)}, path)
    monkeypatch.setattr(command, "run_quick", lambda _: run("turn_cpu_ms", 80))
    monkeypatch.setattr(landed, "LANDED", path)
    assert command.main(["step"]) == 1
    assert "worse than landed: step.turn_cpu_ms" in capsys.readouterr().out
    assert command.main(["step", "--write"]) == 0
    assert command.main(["step"]) == 0
    assert "nothing is worse" in capsys.readouterr().out

"""The benchmarks answer in the shape that was promised, and their arithmetic is right. How fast is not asked here.

They run in processes of their own: what they make is thrown away, and is not for the suite's last test to verify.
"""

import json
import math
import subprocess
import sys

import pytest

from bench import cold_start, harness, step
from bench.script import InstantModel, words
from tests.tidy.source import ROOT

TINY = {
    "step": "step.report(step.Plan(young=24, old=26, measured=2, runs=1, window=4096))",
    "cold_start": "cold_start.report(cold_start.Plan(runs=1, turns=12, window=4096))",
}
KEYS = {"step": step.KEYS, "cold_start": cold_start.KEYS}


def python(*arguments: str) -> str:
    run = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("bench", TINY)
def test_help_has_an_example(bench: str) -> None:
    said = python("-m", f"bench.{bench}", "--help")
    assert "--quick" in said and f"example: python -m bench.{bench}" in said


@pytest.mark.parametrize("bench", TINY)
def test_the_last_line_is_for_machines(bench: str) -> None:
    """A tiny run ends in one JSON object with exactly the promised keys, and leaves nothing behind."""
    said = python("-c", f"from bench import {bench}; {TINY[bench]}").rstrip("\n").split("\n")
    found = json.loads(said[-1])
    assert list(found) == ["bench", "noise", "figures"]
    assert found["bench"] == bench
    assert found["noise"]["loop_ms"] > 0 and found["noise"]["fdatasync_ms"] > 0
    assert tuple(figure["key"] for figure in found["figures"]) == KEYS[bench]
    for figure in found["figures"]:
        assert set(figure) == {"key", "value", "unit", "floor"}
        assert figure["value"] > 0 and math.isfinite(figure["value"]) and figure["floor"] > 0
        assert any(figure["key"] in line for line in said[:-1]), "the table for people lacks it"
    assert not list(ROOT.glob(".bench-*"))


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        cold_start.process("-c", "import sys; sys.exit(3)")
    with pytest.raises(RuntimeError, match="said ''"):
        cold_start.process("-c", "pass")


def turn(wall_ms: float, syncs: int = 2) -> step.Turn:
    return step.Turn(wall_ms, wall_ms / 2, syncs, 0.5, 0.25, 1000, syncs)


def test_figures_are_medians_of_medians() -> None:
    """One wild turn, or one wild run, moves no figure of time; every sync counts in theirs."""
    runs = [
        step.Run(young=[turn(4), turn(5), turn(900)], old=[turn(1), turn(6), turn(7, syncs=5)]),
        step.Run(young=[turn(5), turn(5), turn(5)], old=[turn(5), turn(5), turn(5)]),
        step.Run(young=[turn(50), turn(50), turn(50)], old=[turn(70), turn(70), turn(70)]),
    ]
    values = {figure.key: (figure.value, figure.floor) for figure in step.figures(runs)}
    assert values["turn_ms_200"] == (5, 0.5)
    assert values["turn_ms_1000"] == (6, 0.5)
    assert values["turn_growth"] == (1.2, 1)
    assert values["turn_cpu_ms"] == (3, 0.25)
    assert values["syncs_per_turn"] == pytest.approx((21 / 9, 21 / 9))


@pytest.mark.parametrize(
    ("values", "median", "p90"), [([3], 3, 3), ([4, 1], 2.5, 4), ([9, 1, 5], 5, 9), ([*range(1, 11)], 5.5, 9)]
)
def test_medians_and_quantiles(values: list[float], median: float, p90: float) -> None:
    assert harness.median(values) == median
    assert harness.quantile(values, 0.9) == p90
    assert harness.spread(values) == p90 / median


def test_messages_have_a_realistic_length_and_differ() -> None:
    import random

    said = [words(random.Random(seed), step.MESSAGE_WORDS) for seed in range(200)]
    assert len(set(said)) == 200
    assert 18 < harness.median([len(text.split()) for text in said]) < 22


async def _asked(request: bytes) -> dict:
    return json.loads((await InstantModel().ask(request)).raw)


def test_the_model_counts_a_token_for_four_bytes() -> None:
    import asyncio

    body = b'{"messages":[],"tools":[],"tool_choice":"auto"}'
    answer = asyncio.run(_asked(body))
    assert answer["usage"]["prompt_tokens"] == len(body) // 4
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "send_message"
    assert "tool_calls" not in asyncio.run(_asked(b'{"messages":[]}'))["choices"][0]["message"]

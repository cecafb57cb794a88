"""The benchmarks print the promised keys, and their arithmetic is right.

Speed is not tested here. The benchmarks run in processes of their own: the stores that they make are thrown away, and
the suite does not verify those at its end.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import (  # fmt: skip
    analytics,
    append,
    archive,
    cold_start,
    console,
    dedicated,
    derivation,
    fleet,
    gateway,
    listing,
    replay,
    replay_agent,
    retrieval,
    serve,
    step,
    surfaces,
)
from bench.support import harness, hosted, peers
from bench.support.script import InstantModel, words
from tests.support.seeds import split
from tests.tidy.parsed_source import ROOT

TINY = {
    "analytics": "analytics.report(analytics.Plan(agents=40, events=30, runs=1, pairs=1, stretch_s=0.05))",
    "step": "step.report(step.Plan(young=24, old=26, measured=2, runs=1, window=4096))",
    "dedicated": "dedicated.report(dedicated.Plan(actors=2))",
    "cold_start": "cold_start.report(cold_start.Plan(runs=1, turns=12, window=4096, ray_runs=0))",
    "append": "append.report(append.Plan(runs=1, singles=3, agents=4, groups=4, young=3, old=1200, compared=3))",
    "archive": "archive.report(archive.Plan(own=200, few=1, many=2, searches=4, burst=128, rebuilds=1))",
    "console": "console.report(console.Plan(life=console.as_of.Plan(events=800, turns=60), looks=1, agents=5, "
    "starts=1))",
    "derivation": "derivation.report(derivation.Plan(messages=60, runs=1))",
    "fleet": "fleet.report(fleet.Plan(agents=20, messages=2, rounds=1, few=4, registered=40, cold=4, events=1000, "
    "old=2, events_old=2000, gateway_agents=4, gateway_messages=2))",
    "gateway": "gateway.report(gateway.Plan(at_once=(1, 2), runs=2, rounds=1, turns=4))",
    "listing": "listing.report(listing.Plan(sizes=(5, 10), runs=1))",
    "replay": "replay.report(replay.Plan(runs=2, turns=12, window=4096))",
    "replay_agent": "replay_agent.report(replay_agent.Plan(calls=40, window=4096, runs=2, long=replay_agent.as_of.Plan("
    "events=2000, turns=60, looks=2)))",
    "serve": "serve.report(serve.Plan(agents=4, messages=2, rounds=1, streams=8, idle_s=0.2, records=2000, resumes=2, "
    "starts=1))",
    "surfaces": "surfaces.report(surfaces.Plan(agents=2, messages=2, rounds=1))",
}
SLOW = ("dedicated", "fleet", "gateway")
"""Benchmarks that start a Ray of their own, which takes longer than all the others together."""
DIFFERENCES = {"single_extra_us", "kb_per_agent", "http_added_cpu_ms", "idle_stream_kb"}
"""Differences of measurements: in a few runs on a busy machine, a difference may come out below zero."""
NO_PEER = importlib.util.find_spec(peers.EVENTSOURCING) is None
KEYS = {
    "analytics": analytics.KEYS,
    "step": step.KEYS,
    "dedicated": dedicated.KEYS,
    "cold_start": cold_start.KEYS[:2],  # those with Ray are asked of `bench.dedicated`
    "append": append.KEYS,
    "archive": archive.KEYS,
    "console": console.KEYS,
    "derivation": derivation.KEYS,
    "fleet": fleet.KEYS,
    "gateway": ("gateway_ratio_1", "gateway_ratio_2", gateway.KEYS[3]),
    "listing": listing.KEYS,
    "replay_agent": replay_agent.KEYS,
    "serve": serve.KEYS,
    "surfaces": surfaces.KEYS,
    "replay": tuple(key for key in replay.KEYS if not (NO_PEER and peers.EVENTSOURCING in key)),
}


def python(*arguments: str, folder: Path = ROOT) -> str:
    run = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("bench", split([*TINY], 2, label="help", part="bench"))
def test_help_has_an_example(bench: str) -> None:
    said = python("-m", f"bench.{bench}", "--help")
    assert "--quick" in said and f"example: python -m bench.{bench}" in said


QUICK = [bench for bench in TINY if bench not in SLOW]


@pytest.mark.parametrize(
    "bench",
    [
        *split(QUICK, 1, label="benches", part="bench"),
        *(pytest.param(bench, marks=[pytest.mark.long, pytest.mark.bench]) for bench in SLOW),
    ],
)
def test_the_last_line_is_for_machines(bench: str, tmp_path: Path) -> None:
    """A tiny run ends in one JSON object with exactly the promised keys, and leaves no file behind."""
    said = python("-c", f"from bench import {bench}; {TINY[bench]}", folder=tmp_path).rstrip("\n").split("\n")
    found = json.loads(said[-1])
    assert list(found) == ["bench", "noise", "figures"]
    assert found["bench"] == bench
    assert found["noise"]["loop_ms"] > 0 and found["noise"]["fdatasync_ms"] > 0
    assert tuple(figure["key"] for figure in found["figures"]) == KEYS[bench]
    for figure in found["figures"]:
        assert set(figure) == {"key", "value", "unit", "floor"}
        assert math.isfinite(figure["value"]) and figure["floor"] > 0
        assert figure["value"] > 0 or figure["key"] in DIFFERENCES
        assert any(figure["key"] in line for line in said[:-1]), "the table for people lacks it"
    assert not list(tmp_path.iterdir())


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        cold_start.process("-c", "import sys; sys.exit(3)")
    with pytest.raises(RuntimeError, match="said ''"):
        cold_start.process("-c", "pass")


def turn(wall_ms: float, syncs: int = 2) -> step.Turn:
    return step.Turn(wall_ms, wall_ms / 2, syncs, 0.5, 0.25, 1000, syncs)


def test_figures_are_medians_of_medians() -> None:
    """One outlier turn, or one outlier run, moves no time; the number of syncs per turn counts every sync."""
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


def append_run(single: float, bare: float, sqlite: float, group: float, bare_group: float) -> append.Run:
    """Return a run in which every commit took the same number of microseconds."""
    us = 1e-3
    return append.Run(
        single={"log": [single * us] * 3, "bare": [bare * us] * 3, "sqlite": [sqlite * us] * 3},
        group={"log": [group * us] * 3, "bare": [bare_group * us] * 3},
    )


def append_seen() -> append.Seen:
    runs = [
        append_run(300, 200, 330, 800, 400),
        append_run(9000, 200, 9000, 9000, 400),
        append_run(310, 200, 341, 800, 400),
    ]
    ages = [
        {
            "young": append.Age(wall=[2.0], cpu=[1.0]),
            "again": append.Age(wall=[2.0], cpu=[1.0]),
            "old": append.Age(wall=[2.1], cpu=[1.2]),
        }
    ]
    return append.Seen(harness.Noise(1, 1, 1, 1), runs, ages, 1000.0, 2000.0, (1152, 17768))


def test_figures_of_append_are_medians_of_runs() -> None:
    """One outlier run moves no figure; growth is the worse of wall time and CPU time."""
    plan = append.Plan(agents=64)
    values = {figure.key: (figure.value, figure.floor) for figure in append.figures(append_seen(), plan)}
    assert values["single_extra_us"] == pytest.approx((110, 200))
    assert values["group_vs_floor"] == pytest.approx((0.5, 1))
    assert values["growth"] == pytest.approx((1.2, 1))
    assert values["single_vs_sqlite"] == pytest.approx((1.1, 1.705))
    assert values["group_vs_sqlite"] == pytest.approx((341 / 800 * 64, 341 / 400 * 64))


def test_a_missing_peer_has_no_figure_and_is_reported() -> None:
    sealed = replay.Sealed("words", 40, {".parquet": 3000, "manifest": 500}, {"text": 1200}, 1000)
    seen = replay.Seen(harness.Noise(1, 1, 1, 1), sealed, replay.Replays([2.0, 4.0], [1.0, 1.0], [1.0, 1.0], []))
    plan = replay.Plan(turns=10)
    found = replay.figures(seen, plan)
    values = {figure.key: (figure.value, figure.floor) for figure in found}
    assert values == {
        "replay_vs_decode": (0.375, 1),
        "amplification": (3.5, 1),
        "bytes_per_turn_sealed": (350, 100),
    }
    assert any("not installed" in row.goal for row in replay.lines(seen, found, plan))


def test_a_replay_uses_real_conversations_or_random_words() -> None:
    """The texts are real conversations if the data set is present, else random words; the number of turns is the
    requested one.
    """
    where, said = replay.pairs(30)
    assert where
    assert len(said) == 30
    assert all(heard and answer for heard, answer in said)


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


@pytest.mark.long
@pytest.mark.bench
def test_retrieval_reports_the_scores_of_everlog_and_of_memgpt(data_dir: Path, tmp_path: Path) -> None:
    """With three questions of each conversation, every promised figure exists; each ratio is at most 1, and above its
    floor where that is MemGPT's search.
    """
    plan = f"retrieval.Plan(questions=3, quick=True, nested=False, hosted=2, data=Path({str(data_dir)!r}))"
    code = f"from pathlib import Path; from bench import retrieval; retrieval.report({plan})"
    found = json.loads(python("-c", code, folder=tmp_path).rstrip().split("\n")[-1])
    assert tuple(figure["key"] for figure in found["figures"]) == retrieval.KEYS + hosted.KEYS
    for figure in found["figures"]:
        assert 0 <= figure["value"] <= 1 or figure["unit"] != "ratio"
        assert figure["floor"] < figure["value"] or not figure["key"].startswith(("recall", "ndcg"))
    assert not list(tmp_path.iterdir())


def test_verification_is_timed_only_if_every_request_is_equal(tmp_path: Path) -> None:
    """A request that renders differently from the recorded one ends the benchmark: its seconds would be worth
    nothing.
    """
    run = (
        "import asyncio; from pathlib import Path\n"
        "from everlog.actors.formats import render_request as render; from bench import replay_agent as b\n"
        "plan = b.Plan(calls=6, runs=1); store = b.store_in(Path('s')); asyncio.run(b.grow(store, plan))\n"
        "assert b.verified(store, plan).equal == 1\n"
        "render.ACCESS = '(otherwise)'\n"
        "try: b.verified(store, plan)\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert "differ from the sent ones" in python("-c", run, folder=tmp_path)

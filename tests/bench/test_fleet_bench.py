"""`bench.fleet` computes its figures as it states, and the logs that it makes are valid."""

import json

import pytest

from bench import fleet
from bench.support import fleet_history, fleet_rig, harness
from everlog.events import Record, uuid7
from everlog.interfaces.fleet import load_generator as load


def told(answered: int, seconds: float) -> fleet_rig.Round:
    tally = load.LoadTally(answered=answered, latencies_us=[1000] * answered, began_us=0, ended_us=int(seconds * 1e6))
    return fleet_rig.Round(tally, 0.1, 0.4, 0.6)


def seen() -> fleet.Seen:
    return fleet.Seen(
        "words",
        harness.Noise(1, 1, 2.0, 1),
        rounds=[told(1000, 1.0), told(1000, 10.0), told(1000, 0.5)],
        worded=told(10, 1.0),
        few_bytes=10_000_000,
        all_bytes=29_000_000,
        worded_bytes=105_000_000,
        log_bytes=9_500_000,
        empty_mib=200.0,
        full_mib=500.0,
        cold_ms=[8.0] * 98 + [30.0, 50.0],
        old_ms=[9.0, 12.0, 99.0],
        warm_ms=[2.0, 3.0, 4.0],
        gateway=told(200, 0.5),
        bare_per_s=5000.0,
        check=load.LoadCheck(3000, 0, 0, 0),
    )


def test_figures_are_medians_and_differences() -> None:
    """One slow round moves no rate; the memory figure counts only the agents that were added."""
    found = {figure.key: (figure.value, figure.floor) for figure in fleet.figures(seen(), fleet.Plan())}
    assert tuple(found) == fleet.KEYS
    assert found["messages_per_s"] == (1000, 250)
    assert found["kb_per_agent"] == (20, 10)
    assert found["mib_10k"] == (500, 200)
    assert found["activation_ms_p50"] == (8, 3)
    assert found["activation_ms_p99"] == (30, 3)
    assert found["activation_growth"] == (1.5, 1)
    assert found["gateway_messages_per_s"] == (400, 5000)
    assert found["real_messages_per_s"] == (10, 1000)
    assert found["real_cpu_ms"] == (0.6, 0.6)
    assert found["real_kb_per_agent"] == (100, 20)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("messages_per_s", 3000, ">= 3,000: met"),
        ("messages_per_s", 2999, ">= 3,000: MISSED"),
        ("kb_per_agent", 48, "<= 48: met"),
        ("real_cpu_ms", 3.6, "<= 3.5: MISSED"),
        ("activation_growth", 2.1, "<= 2: MISSED"),
    ],
)
def test_each_figure_says_whether_its_goal_is_met(key: str, value: float, told: str) -> None:
    """Rates meet a goal when they are high, all other figures when they are low."""
    assert fleet.goal(key, value) == told


def record(seq: int, kind: str, payload: str = "{}") -> Record:
    return Record(
        agent_id="template", seq=seq, commit=1, event_id=uuid7(seq, seq), recorded_at=seq, said_at=None, type=kind,
        turn=0, step=0, cause=None, version=1, text="words", payload=payload,
    )  # fmt: skip


def test_a_longer_past_keeps_its_end_in_view() -> None:
    """Conversations are repeated up to the requested number; a summary leaves as many records in view as before."""
    summary = json.dumps({"covers_from": 3, "covers_to": 4, "kept_from": 5, "hidden": 2, "total": 4})
    template = [
        record(1, "agent_created"),
        record(2, "agent_configured"),
        *(record(seq, kind) for seq, kind in enumerate(["user_message", "message_sent"] * 2, 3)),
        record(7, "summary", summary),
    ]
    past = list(fleet_history.repeated_history(template, 107))
    assert len(past) == 107
    assert [entry.type for entry in past[:4]] == ["agent_created", "agent_configured", "user_message", "message_sent"]
    assert json.loads(past[-1].payload) == {
        "covers_from": 3,
        "covers_to": 104,
        "kept_from": 105,
        "hidden": 102,
        "total": 104,
    }
    assert list(fleet_history.repeated_history(template, 3)) == template

"""Times of `everlog report`: days, weeks or months, the limits --since and --until, failures over time, latencies."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.actors.reports.time_buckets import (
    BUCKETS_MAX,
    UNITS,
    beginning,
    count_between,
    last_buckets,
    unit_for,
)
from everlog.events import ModelError
from tests.support.cli.command_line import Line, completion, says

DAYS = st.dates(date(1990, 1, 1), date(2040, 1, 1))


def charts(found: dict[str, Any]) -> dict[str, Any]:
    return {chart["key"]: chart for chart in found["charts"]}


def imported(cli: Line, folder: Path, days: list[str]) -> Line:
    """Import one message of the user for each day."""
    lines = [json.dumps({"role": "user", "content": f"On {day} I sailed.", "time": f"{day}T12:00:00Z"}) for day in days]
    (folder / "past.jsonl").write_text("\n".join(lines) + "\n")
    cli.ok("import", "mel", str(folder / "past.jsonl"))
    return cli


@given(DAYS, st.integers(0, 5000), st.sampled_from(UNITS))
def test_buckets_cover_every_day_once(first: date, length: int, unit: Any) -> None:
    """Each day of a span is in exactly one bucket, buckets follow each other, and the count is that of the buckets."""
    last = first + timedelta(days=length)
    days = [first + timedelta(days=number) for number in range(length + 1)]
    buckets = sorted({beginning(day, unit) for day in days})
    assert count_between(first, last, unit) == len(buckets)
    assert last_buckets(first, last, unit) == buckets[-BUCKETS_MAX:]
    assert all(bucket.weekday() == 0 for bucket in buckets) or unit != "week"


@pytest.mark.parametrize(
    ("length", "unit"), [(0, "day"), (59, "day"), (60, "week"), (400, "week"), (1402, "month"), (3000, "year")]
)
def test_the_unit_suits_the_span(length: int, unit: str) -> None:
    """The smallest unit with at most 60 buckets is chosen."""
    assert unit_for(date(2024, 1, 1), date(2024, 1, 1) + timedelta(days=length)) == unit


def test_an_old_import_is_not_one_bar_among_empty_days(cli: Line, tmp_path: Path) -> None:
    """Messages of nearly four years are shown by month, all of them, and not the last 60 days of 1,403."""
    imported(cli, tmp_path, ["2020-01-01", "2020-01-09", "2021-06-30", "2023-11-03"])
    found = cli.json("report")
    chart = charts(found)["messages"]
    assert found["by"] == "month" and found["messages"] == 4
    assert chart["over"] == "month, UTC" and len(chart["points"]) == 47
    assert {point["label"]: point["value"] for point in chart["points"] if point["value"]} == {
        "2020-01": 2, "2021-06": 1, "2023-11": 1,
    }  # fmt: skip
    assert chart["answer"] == "Most in the month 2020-01: 2 of 4 messages in 47 months."
    assert "2020-01 to 2023-11, per month; highest 2 messages" in cli.ok("report")
    days = charts(cli.json("report", "--by", "day"))["messages"]
    assert len(days["points"]) == 60 and days["answer"].endswith("in 1,403 days. Shown are the last 60 days.")
    weeks = charts(cli.json("report", "--by", "week", "--since", "2021-01-01", "--until", "2021-12-31"))["messages"]
    assert [point["label"] for point in weeks["points"]] == ["2021-06-28"]


def test_limits_of_time_hold_for_messages_and_records(cli: Line, tmp_path: Path) -> None:
    """--since and --until go by when messages were said, and by when calls, failures and edits were recorded."""
    imported(cli, tmp_path, ["2020-01-01", "2021-06-30"])
    cli.script.answers += [
        completion(("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})),
        says("Ahoy."),
    ]
    cli.ok("send", "mel", "Hi", "--model", "script")
    whole, old = cli.json("report"), cli.json("report", "--until", "2020-12-31")
    new = cli.json("report", "--since", "2022-01-01")
    assert (whole["messages"], old["messages"], new["messages"]) == (4, 1, 2)
    assert (old["calls"], new["calls"]) == (0, whole["calls"]) and whole["calls"] == 2
    assert (old["edits"], new["edits"]) == (0, 1)
    assert charts(old)["active"]["points"][0]["value"] == 1
    assert (old["since"], old["until"]) == (None, "2020-12-31T00:00:00.000000Z")
    page = tmp_path / "report.html"
    cli.ok("report", "--since", "2022-01-01", "--html", str(page))
    assert "since 2022-01-01 00:00:00 UTC" in page.read_text()
    assert "since 2022-01-01 00:00:00 UTC" in cli.ok("report", "--since", "2022-01-01")
    assert "is after --until" in cli.fails("report", "--since", "2022-01-01", "--until", "2021-01-01")
    assert "each agent has seqs of its own" in cli.fails("report", "--since", "12")


@pytest.mark.beside_store("a server asks no endpoint again that has just refused its key")
def test_failures_are_shown_over_time(cli: Line) -> None:
    """Each bucket counts its failures, on the axis of the messages; without failures there is no chart."""
    cli.ok("create", "bob", "--model", "script")
    assert charts(cli.json("report"))["failures_over_time"]["points"] == []
    first = datetime.fromtimestamp(cli.clock.at / 1e6, UTC).date()
    for _ in range(2):
        cli.script.answers.append(ModelError("It is no key.", kind="key"))
        cli("send", "bob", "Hello?")
    cli.clock.at += 2 * 86_400 * 1_000_000
    cli.script.answers.append(says("Ahoy."))
    cli.ok("send", "bob", "Hi")
    found = cli.json("report")
    points = charts(found)["failures_over_time"]["points"]
    assert [point["value"] for point in points] == [2, 0, 0]
    assert [point["label"] for point in points] == [(first + timedelta(days=n)).isoformat() for n in range(3)]
    assert [point["label"] for point in charts(found)["messages"]["points"]] == [point["label"] for point in points]
    assert sum(point["value"] for point in points) == found["failures"] == 2


def test_each_model_has_its_latency(cli: Line) -> None:
    """The bars are the medians of the models, the slowest first, with both tails and the number of calls."""
    for name in ("quick", "slow"):
        cli.script.answers.append(says("Ahoy.").replace('"model":"script"', f'"model":"{name}"'))
        cli.ok("send", name, "Hi", "--model", "script")
    chart = charts(cli.json("report"))["latency"]
    assert {point["label"] for point in chart["points"]} == {"quick", "slow"}
    assert chart["points"] == sorted(chart["points"], key=lambda point: (-point["value"], point["label"]))
    assert all("p90 " in point["note"] and point["note"].endswith(", 1 call") for point in chart["points"])

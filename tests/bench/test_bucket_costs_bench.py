"""The costs of a store in a bucket follow from counted requests."""

from collections import Counter

import pytest

from bench.bucket.costs import MESSAGE_BYTES, Requests, usd_a_million
from everlog.store.base.store_constants import SEGMENT_BYTES_MAX
from tests.tidy.parsed_source import ROOT


def test_a_message_pays_its_part_of_the_sealing() -> None:
    """A message that shares all requests with another pays half of them, and its part of those that seal a segment."""
    talking, sealing = Counter(put=2, get=6), Counter(put=SEGMENT_BYTES_MAX // MESSAGE_BYTES, list=0)
    found = Requests(1.0, 2, talking, sealing)
    assert found.writes() == pytest.approx(1 + 1, abs=0.001)
    assert found.reads() == 3


def test_the_documented_costs_follow_from_the_documented_requests() -> None:
    """Each row of the table in docs/reference/cluster.md has the dollars of its requests."""
    page = (ROOT / "docs" / "reference" / "cluster.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.endswith(" |") and "| $" in line]
    assert len(rows) == 4
    for _, _, writes, reads, usd in rows:
        assert usd_a_million(float(writes), float(reads)) == pytest.approx(float(usd.removeprefix("$")), abs=0.01)

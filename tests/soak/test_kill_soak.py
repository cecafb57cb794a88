"""A shared partition under `kill -9`: no record is lost or invented, and all are in order without gaps, during any
work.
"""

from pathlib import Path

import pytest

from tests.soak.kill_soak import Books, Broken, place, soak

MINUTES = 15
"""Minutes of the long run; `python -m tests.soak.kill_soak MINUTES PLACE` takes MINUTES."""
GROUP = '[["ann", 0, ["a", "b"]]]'


def test_a_few_kills_of_a_shared_partition(tmp_path: Path) -> None:
    """After a few kills acknowledged records are in the log, and nothing else is; this also tests the soak itself."""
    running = soak(tmp_path, 3, seed=5, lives_max=3)
    assert running.counts["kills"] >= 2
    assert running.counts["acknowledged"] > 0


def test_a_few_kills_of_a_shared_partition_in_a_bucket() -> None:
    """The same holds in a bucket behind a real protocol, where a killed process leaves requests on their way."""
    with place("s3") as folder:
        running = soak(folder, 3, seed=5, lives_max=3)
    assert running.counts["kills"] >= 2
    assert running.counts["acknowledged"] > 0


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(("scheme", "minutes"), [("s3", MINUTES), ("gs", MINUTES / 3), ("az", MINUTES / 3)])
def test_minutes_of_kills_lose_and_invent_nothing_in_a_bucket(scheme: str, minutes: float) -> None:
    """Minutes of kills break no promise in a bucket, behind the protocols of S3, Google and Azure."""
    with place(scheme) as folder:
        running = soak(folder, minutes * 60, seed=2026)
    print(running.told())
    assert running.counts["kills"] > minutes


@pytest.mark.long
@pytest.mark.soak
def test_minutes_of_kills_lose_and_invent_nothing(tmp_path: Path) -> None:
    """A quarter of an hour of kills, with appending threads, sealing, rolling files and readers, breaks no promise."""
    running = soak(tmp_path, MINUTES * 60, seed=2026)
    print(running.told())
    assert running.counts["kills"] > MINUTES


def test_an_announced_group_is_unknown_until_acknowledged() -> None:
    """A group that was announced is unknown until it is acknowledged, and then has the acknowledged place."""
    books = Books()
    books.hear(f"> {GROUP}")
    assert list(books.unknown.values()) == [[["ann", 0, ["a", "b"]]]]
    books.hear('< [["ann", 4, 1, ["a", "b"], false]]')
    assert not books.unknown
    assert books.acknowledged == {"a": ("ann", 4, 1), "b": ("ann", 4, 2)}
    with pytest.raises(Broken, match="was acknowledged as"):
        books.judge(books.found, {"a"})

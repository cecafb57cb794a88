"""Timers over HTTP: set, listed at any moment and cancelled."""

import asyncio
from datetime import datetime
from pathlib import Path

from tests.support.http.served_store import served


def test_timers_of_every_kind_are_set_listed_and_cancelled(tmp_path: Path) -> None:
    """A timer of each kind is listed with its next time; a cancelled one is gone, and the moment before has it."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam", "settings": {"zone": "Europe/Oslo"}}, status=201)
            path = "/agents/sam/timers"
            given = {
                "once": {"at": "2999-01-31T12:00:00"},
                "soon": {"after_s": 600, "every_s": 60},
                "often": {"every_s": 3600},
                "morning": {"daily": "07:00"},
                "weekdays": {"cron": "0 7 * * 1-5", "zone": "UTC"},
            }
            for name, when in given.items():
                made = await server.call("POST", path, {"timer": name, "text": f"{name}!", **when}, status=201)
                assert (made["timer"], made["text"]) == (name, f"{name}!")
            shown = await server.call("GET", path, status=200)
            by_name = {timer["timer"]: timer for timer in shown["timers"]}
            assert by_name.keys() == given.keys()
            assert by_name["once"]["due"] == "2999-01-31T11:00:00Z"
            assert (by_name["soon"]["every_s"], by_name["often"]["every_s"]) == (60, 3600)
            assert (by_name["morning"]["cron"], by_name["morning"]["zone"]) == ("0 7 * * *", "Europe/Oslo")
            assert (by_name["weekdays"]["cron"], by_name["weekdays"]["zone"]) == ("0 7 * * 1-5", "UTC")
            await server.call("DELETE", f"{path}/once", status=200)
            await server.call("DELETE", f"{path}/once", status=404)
            now = await server.call("GET", path, status=200)
            assert "once" not in [timer["timer"] for timer in now["timers"]]
            assert await server.call("GET", f"{path}?as_of={shown['as_of']}", status=200) == shown

    asyncio.run(main())


def test_a_repeated_request_sets_one_timer_with_the_times_of_the_first(tmp_path: Path) -> None:
    """A request that is sent again with its key answers the timer that the first one set, and sets no other."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            key = {"Idempotency-Key": "nap"}
            first = await server.call("POST", "/agents/sam/timers", {"after_s": 60}, headers=key, status=201)
            assert await server.call("POST", "/agents/sam/timers", {"after_s": 60}, headers=key, status=201) == first
            shown = await server.call("GET", "/agents/sam/timers", status=200)
            assert shown["timers"] == [first]
            assert datetime.fromisoformat(first["due"]).tzinfo is not None

    asyncio.run(main())


def test_times_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    """A timer without a time, with two of them, or with a time that is none, is refused, and nothing is set."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            for body in (
                {}, {"at": "2999-01-01T00:00:00Z", "after_s": 1}, {"daily": "07:00", "cron": "0 7 * * *"},
                {"daily": "25:00"}, {"cron": "soon"}, {"every_s": 0}, {"at": "0001-01-01T00:00:00+14:00"},
                {"daily": "07:00", "zone": "../etc/passwd"}, {"daily": "07:00", "at": "2999-01-01T00:00:00Z"},
            ):  # fmt: skip
                problem = await server.call("POST", "/agents/sam/timers", body, status=400)
                assert problem["code"] == "bad-input", body
            assert (await server.call("GET", "/agents/sam/timers", status=200))["timers"] == []

    asyncio.run(main())

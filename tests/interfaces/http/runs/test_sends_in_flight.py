"""Tries of one request that meet before the message is in the log."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from everlog.interfaces.http.runs.sends_in_flight import in_flight, written_by_another


def _service() -> Any:
    return SimpleNamespace(sending={})


@pytest.mark.parametrize(("first_is_repeat", "second_is_repeat"), [(False, True), (True, False), (True, True)])
def test_the_second_try_gets_the_id_that_the_first_one_wrote(first_is_repeat: bool, second_is_repeat: bool) -> None:
    """If one of two tries says that it is a repeat, the one that arrives later waits until the other has written the
    message, and gets its id; after that nothing is kept.
    """

    async def main() -> None:
        service = _service()
        async with in_flight(service, "x", is_repeat=first_is_repeat) as written:
            second = asyncio.ensure_future(written_by_another(service, "x", is_repeat=second_is_repeat))
            await asyncio.sleep(0)
            assert not second.done()
            assert await written_by_another(service, "another", is_repeat=True) == ""
            written.value = "id"
        assert await second == "id"
        assert service.sending == {}
        assert await written_by_another(service, "x", is_repeat=True) == ""

    asyncio.run(main())


def test_two_first_tries_are_two_messages() -> None:
    """Two requests that say the same and do not claim to be repeats do not wait for each other."""

    async def main() -> None:
        service = _service()
        async with in_flight(service, "x", is_repeat=False) as one:
            assert await written_by_another(service, "x", is_repeat=False) == ""
            async with in_flight(service, "x", is_repeat=False) as two:
                two.value = "two"
            late = asyncio.ensure_future(written_by_another(service, "x", is_repeat=True))
            await asyncio.sleep(0)
            one.value = "one"
        assert await late == "one"

    asyncio.run(main())


def test_a_try_whose_other_failed_sends_by_itself() -> None:
    """If the message of the first try did not come into the log, another try sends it: one, if there are several."""

    async def main() -> None:
        service = _service()

        async def tried() -> str:
            found = await written_by_another(service, "x", is_repeat=True)
            if found:
                return found
            async with in_flight(service, "x", is_repeat=True) as written:
                await asyncio.sleep(0)
                sent.append(1)
                written.value = "id"
            return "id"

        sent: list[int] = []
        with pytest.raises(ZeroDivisionError):
            async with in_flight(service, "x", is_repeat=False):
                others = [asyncio.ensure_future(tried()) for _ in range(3)]
                await asyncio.sleep(0)
                raise ZeroDivisionError
        assert await asyncio.gather(*others) == ["id"] * 3
        assert sent == [1]

    asyncio.run(main())

"""Let a request that was sent again join the first try while that is on its way into the log.

A client that loses its connection may send a message again before the first try has been written. The two are told
apart by nothing, so the second waits for the first. The reverse happens too: if the repeat is faster, the first try
joins it. Two first tries that say the same are two messages.

The state belongs to the requests of one server: a message that is in the log is found there, by every server.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everlog.interfaces.http.core.service import HttpService, SendInFlight


class WrittenId:
    """Id that a message has in the log, as soon as it is known."""

    value = ""


async def written_by_another(service: HttpService, digest: str, *, is_repeat: bool) -> str:
    """Return the id in the log of the message of a digest if another try of the request is on its way, after it was
    written; empty: this request has to send it. `is_repeat`: True if this request says that it was sent before.
    """
    while (other := service.sending.get(digest)) is not None and (is_repeat or other.is_repeat):
        event_id = await asyncio.shield(other.written)
        if event_id:
            return event_id
    return ""


@asynccontextmanager
async def in_flight(service: HttpService, digest: str, *, is_repeat: bool) -> AsyncIterator[WrittenId]:
    """Note that this request sends the message of a digest while the block runs. The block sets the id that the message
    has in the log.
    """
    own = SendInFlight(is_repeat, asyncio.get_running_loop().create_future())
    is_first = service.sending.setdefault(digest, own) is own
    written = WrittenId()
    try:
        yield written
    finally:
        if is_first:
            del service.sending[digest]
        own.written.set_result(written.value)

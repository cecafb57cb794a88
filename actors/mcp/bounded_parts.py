"""Limit the size of an answer while it arrives. Used by the clients of MCP servers and of remote agents, whose HTTP
libraries are two, with classes of their own.
"""

from collections.abc import AsyncIterable, AsyncIterator


async def bounded_parts(parts: AsyncIterable[bytes], bytes_max: int, failure: type[Exception]) -> AsyncIterator[bytes]:
    """Yield the parts of an answer. Raise `failure`, an error of the HTTP library, above `bytes_max` bytes."""
    size = 0
    async for part in parts:
        size += len(part)
        if size > bytes_max:
            raise failure(f"the answer is larger than {bytes_max:,} bytes")
        yield part

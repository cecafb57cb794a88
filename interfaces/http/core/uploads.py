"""Write the body of a request into a file, within limits of size and time: nothing large is held in memory.

Used by routes that take documents, exports and conversations.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from everlog.interfaces.http.core.guards import too_large
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.service import HttpService
from everlog.store import open_private

UPLOAD_BYTES_MAX = 64 * 1024 * 1024
_STRETCH_BYTES = 1024 * 1024
"""Part of a body that arrives within the time that a whole small body has."""


@asynccontextmanager
async def uploaded(
    request: Request, service: HttpService, *, limit: int = UPLOAD_BYTES_MAX, suffix: str = ""
) -> AsyncIterator[Path]:
    """Write the body into a private temporary file, and yield its path while the block runs.

    `suffix`: of the file's name. Raises the refusal of a body that is empty, too large, too slow or cut off.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit)
    with tempfile.TemporaryDirectory(prefix="everlog-upload-") as folder:
        path = Path(folder) / f"body{suffix}"
        if not await _written(request, service, path, limit):
            raise Refusal(400, "bad-input", "The body is empty. Nothing was done.")
        yield path


async def _written(request: Request, service: HttpService, path: Path, limit: int) -> int:
    """Write the body into a new file, and return its size in bytes."""
    size, stretch = 0, 0
    loop = asyncio.get_running_loop()
    try:
        with open_private(path, "wb") as file:
            async with asyncio.timeout(service.options.limits.body_s) as time_limit:
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise too_large(limit)
                    await service.ports.aside(file.write, part)
                    if size // _STRETCH_BYTES > stretch:
                        stretch = size // _STRETCH_BYTES
                        time_limit.reschedule(loop.time() + service.options.limits.body_s)
    except TimeoutError as error:
        raise Refusal(408, "too-slow", "The body did not arrive in time. Nothing was done.") from error
    except ClientDisconnect as error:
        raise Refusal(400, "cut-off", "The connection ended within the body. Nothing was done.") from error
    return size

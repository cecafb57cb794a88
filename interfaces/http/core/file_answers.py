"""Answer with a file that was made for the request: it is sent part by part, and removed afterwards.

Used by routes whose answers may be larger than memory: queries, exports, data sets.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from starlette.responses import StreamingResponse

from everlog.interfaces.http.core.service import HttpService

_PART_BYTES = 256 * 1024


class AnswerFolder:
    """A private folder for the file of one answer. It is removed when the answer was sent, or with this object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="everlog-answer-")
        self.path = Path(self._folder.name) / "answer"
        """Path of the file, which does not exist yet."""

    def remove(self) -> None:
        """Remove the folder. Idempotent."""
        self._folder.cleanup()


class FileAnswer(StreamingResponse):
    """Answer that sends the file of a folder."""

    def __init__(
        self, service: HttpService, folder: AnswerFolder, media: str, headers: Mapping[str, str] | None = None
    ) -> None:
        size = str(folder.path.stat().st_size)
        sent = {"Content-Length": size, **(headers or {})}
        super().__init__(_parts(service, folder), media_type=media, headers=sent)


async def _parts(service: HttpService, folder: AnswerFolder) -> AsyncIterator[bytes]:
    aside: Any = service.ports.aside
    try:
        with folder.path.open("rb") as file:
            while part := await aside(file.read, _PART_BYTES):
                yield part
    finally:
        folder.remove()

"""Record what a published client sends and what the server answers, and compare it with the transcript that is kept.

A newer client that sends something else, or a server that answers something else, differs from the transcript: look at
the difference, and keep the new one with EVERLOG_NEW_TRANSCRIPT=1 if it is meant.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"), "<id>"),
    (re.compile(r"(?<=<id>)-?[0-9a-f]{16}"), ""),
    (re.compile(r"chat-[0-9a-f]{8}-[0-9a-f]{12}"), "<conversation>"),
    (re.compile(r'("(?:created|created_at|completed_at)":) ?[0-9]+'), r"\1<time>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)?"), "<time>"),
)


def normal(text: str) -> str:
    """Return a text without ids and times, which differ from run to run."""
    for pattern, shown in _CHANGING:
        text = pattern.sub(shown, text)
    return text


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Transport of a client that keeps each request and its answer."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self.exchanges: list[Mapping[str, Any]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the whole answer."""
        sent = (await request.aread()).decode()
        answer = await self._inner.handle_async_request(request)
        body = b"".join([part async for part in answer.stream]) if not hasattr(answer, "_content") else answer.content
        await answer.aclose()
        self.exchanges.append(
            {
                "request": f"{request.method} {normal(request.url.raw_path.decode())}",
                "body": json.loads(normal(sent)) if sent else None,
                "status": answer.status_code,
                "answer": normal(body.decode()).splitlines(),
            }
        )
        return httpx2.Response(answer.status_code, headers=answer.headers, content=body, request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def check_transcript(path: Path, exchanges: list[Mapping[str, Any]]) -> None:
    """Compare exchanges with the transcript in a file, or write it if EVERLOG_NEW_TRANSCRIPT is set."""
    if os.environ.get("EVERLOG_NEW_TRANSCRIPT"):
        path.write_text(json.dumps(exchanges, indent=1, ensure_ascii=False) + "\n")
    kept = json.loads(path.read_text())
    for now, then in zip(exchanges, kept, strict=True):
        assert now == then, f"{now['request']} differs from {path.name}: see tests/support/http/transcripts.py"

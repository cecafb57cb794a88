"""Endpoints as plain functions: each answers a probe as one kind of server does."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from everlog.actors.models.probe_http import ProbeResponse

Answer = Callable[[str, Mapping[str, Any]], ProbeResponse]


def reply(value: object, status: int = 200) -> ProbeResponse:
    return ProbeResponse(status, value if isinstance(value, str) else json.dumps(value))


def message(content: str | None = None, *words: str, usage: bool = True, finish: str = "stop") -> ProbeResponse:
    """Return a completion with text, or with calls of `report`."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "report", "arguments": json.dumps({"word": word})}}
        for n, word in enumerate(words)
    ]
    said = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    counts = {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}} if usage else {}
    return reply({"choices": [{"index": 0, "message": said, "finish_reason": finish}], **counts})


def streamed(*, usage: bool = True) -> ProbeResponse:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": "Hel"}}]},
        {"choices": [{"delta": {"content": "lo"}}]},
    ]
    if usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    return reply("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")


class Server:
    """Answers by path, or by field for chat requests; records the received requests."""

    def __init__(
        self, owner: str = "", *, row: Mapping[str, Any] | None = None, paths: Mapping[str, object] | None = None,
        tools: ProbeResponse | None = None, schema: ProbeResponse | None = None, stream: ProbeResponse | None = None,
        grammar: ProbeResponse | None = None,
    ) -> None:  # fmt: skip
        models = {"object": "list", "data": [{"id": "tiny", "owned_by": owner, **(row or {})}]}
        self.paths: dict[str, object] = {"/v1/models": models, **(paths or {})}
        self.answers = {
            "tools": tools or message(None, "ready", "steady"),
            "response_format": schema or message('{"word": "ready"}'),
            "stream": stream or streamed(),
            "grammar": grammar or message("ready"),
        }
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, method: str, url: str, body: bytes | None) -> ProbeResponse:
        path = "/" + url.split("/", 3)[3]
        self.asked.append((method, path))
        if path == "/v1/chat/completions":
            assert body is not None
            asked = json.loads(body)
            self.bodies.append(asked)
            return next(answer for field, answer in self.answers.items() if field in asked)
        found = self.paths.get(path)
        if isinstance(found, ProbeResponse):
            return found
        return reply({"error": {"message": "not found"}}, 404) if found is None else reply(found)

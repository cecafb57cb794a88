"""Answer an agent's requests from a script, and keep the requests so that a test can look at them.

Part of `everlog.testing`. A request beyond the script is an error, never an invented answer: a test fails where the
agent did more than its script says.
"""

import json
from collections.abc import Iterable
from typing import Any

from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, ReplyDelta, Spent
from everlog.events import ModelError
from everlog.interfaces.testing.scripted_reply import Line, RawReply, body_for, reply_of
from everlog.interfaces.testing.seen_request import SeenRequest

LATENCY_US = 1000
"""Microseconds that each scripted answer reports as its latency."""


class ScriptedModel:
    """A model that gives the lines of its script in order. A line is used up by one request."""

    def __init__(
        self, lines: Iterable[Line] = (), *, after: Line | None = None, summaries: Iterable[Line] = ()
    ) -> None:
        """Create the model.

        - `lines`: answers in order. Text is a message to the user; `call(...)` calls a function; a list does several;
          an exception is raised; a function gets the `SeenRequest` and returns a line.
        - `after`: line for all requests beyond the script; None: they fail.
        - `summaries`: answers to requests for a summary, in order; beyond them: "Summary.".
        """
        self.name = "scripted"
        self.lines = list(lines)
        """Lines that are left."""
        self.after = after
        self.summaries = list(summaries)
        self.requests: list[bytes] = []
        """Requests so far, as bytes."""

    @property
    def seen(self) -> list[SeenRequest]:
        """Requests so far, oldest first."""
        return [SeenRequest(raw) for raw in self.requests]

    @property
    def last(self) -> SeenRequest:
        """The newest request. Raises ModelError if there is none."""
        if not self.requests:
            raise ModelError("The scripted model was not asked yet: there is no request to look at.", kind="rejected")
        return SeenRequest(self.requests[-1])

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Answer with the next line. Raises the line if it is an exception, ModelError beyond the script."""
        self.requests.append(request)
        seen = SeenRequest(request)
        line = self.called(self._next(seen), seen)
        if isinstance(line, BaseException):
            raise line
        body = self.body_of(line, seen)
        if on_delta is not None:
            _stream(body, on_delta)
        return ModelResponse(body, LATENCY_US)

    def _next(self, seen: SeenRequest) -> Line:
        if seen.is_summary:
            return self.summaries.pop(0) if self.summaries else self.default_summary(seen)
        if self.lines:
            return self.lines.pop(0)
        if self.after is not None:
            return self.after
        raise ModelError(
            f"The script of the model is over: this is request {len(self.requests)}, and no line is left for it. Add a "
            f"line, or `after=` for all further requests. The request ends with: {_end_of(seen)!r}.",
            kind="rejected",
        )

    def called(self, line: Line, seen: SeenRequest) -> Line:
        """Return the line that a function of the request stands for; any other line is returned as it is."""
        while callable(line):
            line = line(seen)
        return line

    def default_summary(self, seen: SeenRequest) -> Line:
        """Return the answer to a request for a summary that `summaries` does not have."""
        return RawReply(_summary_body(seen, "Summary."))

    def body_of(self, line: Any, seen: SeenRequest) -> str:
        """Return the body of the answer that a line stands for."""
        if isinstance(line, RawReply):
            return line.body
        if seen.is_summary and isinstance(line, str):
            return _summary_body(seen, line)
        if not seen.functions:
            raise ModelError(
                "A scripted reply is written in the calling format `native`, and this request has another format: "
                "leave `calling` out of the settings, or script `RawReply(body)`.",
                kind="rejected",
            )
        return body_for(reply_of(line), seen.raw, seen.functions)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self.requests)} requests, {len(self.lines)} lines left)"


def _summary_body(seen: SeenRequest, text: str) -> str:
    choice = {"text": text} if "prompt" in seen.body else {"message": {"role": "assistant", "content": text}}
    prompt = len(seen.raw) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}
    return json.dumps(
        {"choices": [{**choice, "finish_reason": "stop", "index": 0}], "usage": usage, "model": "scripted"}
    )


def _stream(body: str, on_delta: DeltaCallback) -> None:
    """Give the parts of a reply to a caller that wants to see it while it is written."""
    message = json.loads(body)["choices"][0].get("message", {})
    if message.get("content"):
        on_delta(ReplyDelta(text=message["content"]))
    for number, called in enumerate(message.get("tool_calls", ())):
        on_delta(ReplyDelta(call=number, name=called["function"]["name"]))
        on_delta(ReplyDelta(call=number, arguments=called["function"]["arguments"]))


def _end_of(seen: SeenRequest) -> str:
    messages = seen.messages
    return str(messages[-1].get("content") or messages[-1])[-200:] if messages else ""

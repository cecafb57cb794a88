"""Collect a reply of the offline model (`Completion`), and write it as the bytes of a chat completion.

Used by `offline_model.py` and `answers.py`.
"""

import hashlib
from typing import Any

import msgspec

MODEL = "offline (rule-based)"
INTRODUCTION = "I am everlog's offline stand-in: rule-based, not a language model."


class Completion(msgspec.Struct):
    """Reply with a thought, calls of functions, and sentences for the user."""

    thought: str = ""
    calls: list[tuple[str, dict[str, Any]]] = []
    says: list[str] = []

    def call(self, function: str, /, *, heartbeat: bool = False, **arguments: Any) -> None:
        """Add a call of a function, unless the same call is there."""
        call = (function, {**arguments, "request_heartbeat": heartbeat})
        if call not in self.calls:
            self.calls.append(call)

    def say(self, text: str) -> None:
        """Add a sentence for the user, unless it is there."""
        if text not in self.says:
            self.says.append(text)

    def think(self, text: str) -> None:
        """Set the thought, unless there is one already."""
        self.thought = self.thought or text

    def encoded(self, request: bytes) -> bytes:
        """Return the chat completion. Ids come from the request's bytes, tokens are a quarter of the bytes."""
        digest = hashlib.sha256(request).hexdigest()[:24]
        message: dict[str, Any] = {"role": "assistant", "content": self.thought}
        for number, (name, arguments) in enumerate(self.calls):
            function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
            call = {"id": f"call_{digest}_{number}", "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)
        written = msgspec.json.encode(message)
        prompt, completion = (-(-len(data) // 4) for data in (request, written))
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        choice = {"index": 0, "message": msgspec.Raw(written), "finish_reason": "tool_calls" if self.calls else "stop"}
        head = {"id": f"chatcmpl-{digest}", "object": "chat.completion", "created": 0, "model": MODEL}
        return msgspec.json.encode({**head, "choices": [choice], "usage": usage})

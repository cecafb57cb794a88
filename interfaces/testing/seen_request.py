"""Look at a request as the model got it: messages, system prompt, functions.

Part of `everlog.testing`; a `ScriptedModel` keeps its requests as these. The bytes are those whose hash is in the log:
nothing may be added to them here.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any


class SeenRequest:
    """A request as the model got it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        """The bytes of the request, whose SHA-256 is in the agent's log."""

    @cached_property
    def body(self) -> dict[str, Any]:
        """The request as JSON."""
        body: dict[str, Any] = json.loads(self.raw)
        return body

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The chat messages, oldest first; the first is the system prompt."""
        return list(self.body.get("messages", ()))

    @property
    def system(self) -> str:
        """Text of the system prompt, which holds core memory."""
        return "\n".join(str(one["content"]) for one in self.messages if one["role"] == "system")

    @property
    def text(self) -> str:
        """Everything that the model can read: the contents of all messages, and the prompt of a plain completion."""
        parts = [str(one.get("content") or "") for one in self.messages]
        return "\n".join([*parts, *([self.body["prompt"]] if "prompt" in self.body else [])])

    @cached_property
    def functions(self) -> Mapping[str, Any]:
        """Parameters of the functions that the model may call, as JSON Schema, by name."""
        shown = [one["function"] for one in self.body.get("tools", ())]
        return {one["name"]: one.get("parameters", {}) for one in shown}

    @property
    def is_summary(self) -> bool:
        """True if the request asks for a summary, in any calling format."""
        if "prompt" in self.body:
            return "### Functions" not in self.body["prompt"]
        return "tools" not in self.body and "response_format" not in self.body

    def __repr__(self) -> str:
        kind = "summary" if self.is_summary else f"{len(self.functions)} functions"
        return f"SeenRequest({len(self.messages)} messages, {kind}, {len(self.raw)} bytes)"

"""What the model answered. A request is logged by reference: the sha256 of its exact bytes, its length, and short marks
of its parts in their order, by which a request that is made again and is another says where it differs first.
"""

from typing import ClassVar, Literal

import msgspec

from .base import Event


class Call(msgspec.Struct, frozen=True):
    """A function call as the model asked for it."""

    id: str
    name: str
    arguments: str
    """The model's own JSON text, not repaired."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as the provider counted them; 0 where it did not say."""

    prompt: int = 0
    completion: int = 0
    total: int = 0


class ModelReply(Event, frozen=True, kw_only=True):
    """The model answered a request; `text` is the inner monologue. All of it can be parsed from `raw` again."""

    kind: ClassVar[str] = "model_reply"
    version: ClassVar[int] = 2

    calls: list[Call] = []
    finish_reason: str = ""
    usage: Usage = Usage()
    model: str = ""
    """The model's own word for itself."""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`; empty in older logs."""
    raw: str = ""
    """The body of the answer, verbatim."""


class ModelFailed(Event, frozen=True, kw_only=True):
    """The model could not be asked or understood; `text` says why. The turn ends; what was said stays in view."""

    kind: ClassVar[str] = "model_failed"
    version: ClassVar[int] = 2

    failure: str
    """A short word: unreachable, key, credit, rate_limited, overflow, garbage, rejected, server, busy, context."""
    attempts: int = 1
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`; empty in older logs."""
    raw: str = ""


class ReplyRejected(Event, frozen=True, kw_only=True):
    """A reply was read and refused; `text` says why. A first message broke the rules, or a summary did not shrink."""

    kind: ClassVar[str] = "reply_rejected"
    version: ClassVar[int] = 2

    purpose: Literal["reply", "summary"] = "reply"
    attempt: int
    covers_to: int = 0
    """For a summary: the last seq that it was to cover."""
    words: int = 0
    """For a summary: the words that it was asked to keep to."""
    usage: Usage = Usage()
    model: str = ""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`; empty in older logs."""
    raw: str = ""

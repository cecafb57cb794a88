"""Chat completions as they go over HTTP: what is read of a request, and what is answered."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

RequestJson = Mapping[str, Any]


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a stream."""

    include_usage: bool = False


class ChatBody(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a chat completion. Fields that an agent has no use for, such as `temperature`, are not read."""

    model: str
    """Name of an agent."""
    messages: Sequence[RequestJson]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: Sequence[RequestJson] | None = None
    tool_choice: Any = None
    response_format: RequestJson | None = None
    modalities: Sequence[str] | None = None
    metadata: RequestJson | None = None
    user: str | None = None


class ModelShape(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    """Time of its first record, seconds since 1970."""
    owned_by: str = "everlog"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """All agents, as models."""

    object: Literal["list"] = "list"
    data: Sequence[ModelShape]


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Answer of an agent."""

    role: str
    content: str
    refusal: None
    reasoning_content: str = ""
    """Thoughts, which front ends show folded."""


class ChatChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a request."""

    index: int = 0
    message: AnswerMessage
    finish_reason: str = "stop"
    logprobs: None = None


class PromptDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the tokens of requests."""

    cached_tokens: int


class ChatUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of all model calls of a run, as the endpoint counted them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a request."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: Sequence[ChatChoice]
    usage: ChatUsage
    system_fingerprint: None = None


class ChatDelta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Part of an answer."""

    role: str = ""
    content: str | None = None
    reasoning_content: str = ""


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a request, in parts."""

    index: int = 0
    delta: ChatDelta
    finish_reason: str | None = None
    logprobs: None = None


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a stream."""

    id: str
    object: str
    created: int
    model: str
    choices: Sequence[ChunkChoice]
    usage: ChatUsage | None = None

"""Responses and conversations as they go over HTTP: what is read of a request, and what is answered."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.interfaces.http.openai.chat_shapes import RequestJson

ResponseStatus = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]


class ConversationRef(msgspec.Struct, frozen=True, kw_only=True):
    """Conversation of a response."""

    id: str


class TextOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Form of the answer that a client wants."""

    format: RequestJson | None = None


class ResponseBody(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a response. Fields that an agent has no use for, such as `temperature`, are not read."""

    model: str
    """Name of an agent."""
    input: str | Sequence[RequestJson]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationRef | None = None
    stream: bool = False
    background: bool = False
    tools: Sequence[RequestJson] | None = None
    tool_choice: Any = None
    text: TextOptions | None = None
    metadata: RequestJson | None = None
    user: str | None = None


class ResponseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of reading a response."""

    stream: bool = False
    starting_after: int | None = None
    """Number of the last event that the reader has."""


class ItemsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a list of items."""

    limit: int = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    """Words of an item."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Sequence[RequestJson] = ()


class MessageItem(msgspec.Struct, frozen=True, kw_only=True):
    """Message of a user or an agent."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["user", "assistant"]
    status: Literal["in_progress", "completed", "incomplete"] = "completed"
    content: Sequence[TextPart]


class ItemList(msgspec.Struct, frozen=True, kw_only=True):
    """One page of items."""

    object: Literal["list"] = "list"
    data: Sequence[MessageItem]
    first_id: str
    last_id: str
    has_more: bool


class InputDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the tokens of requests."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the tokens of answers."""

    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of all model calls of a run, as the endpoint counted them."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails = OutputDetails()
    total_tokens: int


class ResponseFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Failure of a response."""

    code: str
    message: str


class ResponseShape(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of an agent, or what there is of it."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: ResponseStatus
    model: str
    output: Sequence[MessageItem]
    error: ResponseFailure | None = None
    incomplete_details: None = None
    usage: ResponseUsage | None = None
    previous_response_id: str | None = None
    conversation: ConversationRef | None = None
    background: bool = False
    completed_at: int | None = None
    instructions: str | None = None
    metadata: RequestJson = {}
    parallel_tool_calls: bool = False
    tool_choice: str = "none"
    tools: Sequence[RequestJson] = ()


class ConversationBody(msgspec.Struct, frozen=True, kw_only=True):
    """Conversation to create or to change."""

    items: Sequence[RequestJson] = ()
    metadata: Mapping[str, str] = {}


class ConversationShape(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that a client created."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: Mapping[str, str]


class DeletedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that a client deleted. The agent's log keeps what was said in it."""

    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: bool = True

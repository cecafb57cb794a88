"""Shapes of the A2A protocol, version 1.0, in JSON: what clients send, cards, tasks, and events of a stream."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

TaskStateName = Literal[
    "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED", "TASK_STATE_CANCELED",
]  # fmt: skip
JSON_TEXT, PLAIN_TEXT = "application/json", "text/plain"
LONGEST_ID = 255
"""Characters of an id that a client makes."""

ClientId = Annotated[str, Meta(max_length=LONGEST_ID)]


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that goes over the wire. Fields that everlog does not know are ignored, as the protocol asks."""


class RpcCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a method."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = Raw(b"{}")
    id: str | int | None = None


class RpcResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a call, or one event of a stream."""

    result: Any
    id: str | int | None
    jsonrpc: str = "2.0"


class MessagePart(_Sent, frozen=True, kw_only=True):
    """Part of a message or an artifact: a text, or a value. Files and addresses are refused."""

    text: str | UnsetType = UNSET
    data: Any = UNSET
    media_type: str = ""
    raw: Any = UNSET
    url: Any = UNSET


class A2aMessage(_Sent, frozen=True, kw_only=True):
    """Message of a client, or what an agent says about a task."""

    message_id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    """Id that the sender makes: a message that comes again with it is the same one."""
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    parts: Annotated[Sequence[MessagePart], Meta(min_length=1)]
    context_id: ClientId = ""
    task_id: ClientId = ""


class SendConfiguration(_Sent, frozen=True, kw_only=True):
    """Wishes of a client about the answer."""

    accepted_output_modes: Sequence[str] = ()
    history_length: int | None = None
    return_immediately: bool = False
    task_push_notification_config: Any = None


class SendParams(_Sent, frozen=True, kw_only=True):
    """Parameters of `SendMessage` and `SendStreamingMessage`."""

    message: A2aMessage
    configuration: SendConfiguration = SendConfiguration()
    tenant: str = ""
    """Name of the agent, at the address for all agents."""


class TaskParams(_Sent, frozen=True, kw_only=True):
    """Parameters of the methods about one task."""

    id: str
    history_length: int | None = None
    tenant: str = ""


class ListParams(_Sent, frozen=True, kw_only=True):
    """Parameters of `ListTasks`."""

    context_id: ClientId = ""
    """Context of the tasks; empty: all."""
    status: TaskStateName | Literal["", "TASK_STATE_UNSPECIFIED"] = ""
    page_size: Annotated[int, Meta(ge=1, le=100)] = 50
    page_token: str = ""
    """`next_page_token` of the page before; empty: the first page."""
    history_length: Annotated[int, Meta(ge=0)] | None = None
    status_timestamp_after: datetime | None = None
    """Earliest time of the newest record, inclusive."""
    include_artifacts: bool = False
    tenant: str = ""


class TenantParams(_Sent, frozen=True, kw_only=True):
    """The one parameter of every method."""

    tenant: str = ""


class TaskStatusShape(_Sent, frozen=True, kw_only=True):
    """State of a task, and since when it has it."""

    state: TaskStateName
    timestamp: datetime
    message: A2aMessage | None = None
    """Question to the client, or the reason of a failure."""


class Artifact(_Sent, frozen=True, kw_only=True):
    """Answer of an agent: a part for each message that it sent."""

    artifact_id: str
    parts: Sequence[MessagePart]
    name: str = ""


class A2aTask(_Sent, frozen=True, kw_only=True):
    """Task: a run of an agent, and those that follow from its approvals."""

    id: str
    """Event id of the input."""
    context_id: str
    status: TaskStatusShape
    artifacts: Sequence[Artifact] = ()
    history: Sequence[A2aMessage] = ()


class TaskPage(_Sent, frozen=True, kw_only=True):
    """Tasks of an agent, the one that changed last first."""

    tasks: Sequence[A2aTask]
    next_page_token: str
    """Empty: there are no more."""
    page_size: int
    total_size: int
    """Number of tasks on all pages."""


class StatusUpdate(_Sent, frozen=True, kw_only=True):
    """Change of a task's state."""

    task_id: str
    context_id: str
    status: TaskStatusShape


class ArtifactUpdate(_Sent, frozen=True, kw_only=True):
    """New parts of a task's answer."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False


class TaskItem(_Sent, frozen=True, kw_only=True):
    """One event of a stream, or the answer to a message: exactly one of its fields."""

    task: A2aTask | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None


class CardInterface(_Sent, frozen=True, kw_only=True):
    """Address at which a card's agent is spoken to."""

    url: str
    protocol_binding: str
    protocol_version: str


class CardCapabilities(_Sent, frozen=True, kw_only=True):
    """Optional parts of the protocol that a server has."""

    streaming: bool = False
    push_notifications: bool = False
    extended_agent_card: bool = False


class CardSkill(_Sent, frozen=True, kw_only=True):
    """One thing that an agent can be asked for."""

    id: str
    name: str
    description: str
    tags: Sequence[str]


class AgentCard(_Sent, frozen=True, kw_only=True):
    """Description of an agent, or of a server, for clients."""

    name: str
    description: str
    supported_interfaces: Sequence[CardInterface]
    version: str
    capabilities: CardCapabilities
    default_input_modes: Sequence[str]
    default_output_modes: Sequence[str]
    skills: Sequence[CardSkill]
    security_schemes: Mapping[str, Any]
    security_requirements: Sequence[Any]

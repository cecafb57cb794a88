"""Read what a client of Letta sends to an agent, as the input that it is for everlog. Pure.

What everlog cannot do as it is meant is refused in words. Fields that change nothing about the answer are accepted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.events import ApprovalDecided, Event, SystemAlert, UserMessage
from everlog.interfaces.http.letta.letta_calls import refused


class LettaContent(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message."""

    type: str
    text: str = ""


class LettaApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about a call that waits."""

    approve: bool
    tool_call_id: str
    type: str = "approval"
    reason: str | None = None


class LettaInput(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a request."""

    type: str | None = None
    role: str | None = None
    content: str | list[LettaContent] | None = None
    name: str | None = None
    otid: str | None = None
    group_id: str | None = None
    approvals: list[LettaApproval] | None = None
    approve: bool | None = None
    approval_request_id: str | None = None
    reason: str | None = None


class LettaMessageBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages to an agent, and the form of the answer."""

    messages: list[LettaInput] | None = None
    input: str | list[LettaContent] | None = None
    streaming: bool | None = None
    stream_tokens: bool | None = None
    background: bool | None = None
    include_pings: bool | None = None
    include_return_message_types: list[str] | None = None
    include_compaction_messages: bool | None = None
    max_steps: int | None = None
    use_assistant_message: bool | None = None
    assistant_message_tool_name: str | None = None
    assistant_message_tool_kwarg: str | None = None
    enable_thinking: str | None = None
    client_tools: list[Any] | None = None
    client_skills: list[Any] | None = None
    override_model: str | None = None
    override_system: str | None = None
    return_logprobs: bool | None = None
    return_token_ids: bool | None = None
    top_logprobs: int | None = None
    callback_url: str | None = None
    agent_id: str | None = None
    """Agent of the conversation `default`."""


class SentInput(NamedTuple):
    """Input of a request."""

    event: Event
    key: str
    """Id that the client gave to its messages; empty: none."""


_REFUSED = {
    "client_tools": "Functions that the client runs are not supported.",
    "client_skills": "Skills of a client are not supported.",
    "override_model": "A message cannot choose another model: change the agent's `model`.",
    "override_system": "A message cannot replace the system prompt: send a message of the role `system` beside it.",
    "return_logprobs": "Probabilities of tokens are not recorded.",
    "return_token_ids": "Ids of tokens are not recorded.",
    "top_logprobs": "Probabilities of tokens are not recorded.",
    "callback_url": "A callback for one message is not supported: create a webhook (POST /api/v1/webhooks).",
}


def check_options(body: LettaMessageBody) -> None:
    """Raise the refusal of options that everlog does not have."""
    for field, words in _REFUSED.items():
        if getattr(body, field):
            raise refused(f"`{field}`: {words}")
    if body.use_assistant_message is False:
        raise refused("`use_assistant_message: false` is not supported: messages to the user come as such.")
    if body.assistant_message_tool_name not in {None, SEND_MESSAGE}:
        raise refused(f"`assistant_message_tool_name`: agents speak by {SEND_MESSAGE!r}.")
    if body.assistant_message_tool_kwarg not in {None, "message"}:
        raise refused("`assistant_message_tool_kwarg`: it is 'message'.")


def check_streaming(body: LettaMessageBody) -> None:
    """Raise the refusal of options of a stream in a request for one answer."""
    for field in ("stream_tokens", "background"):
        if getattr(body, field):
            raise refused(f"`{field}` needs `streaming: true`.")


def input_of(body: LettaMessageBody, conversation: str = "") -> SentInput:
    """Return the input of a request. Several messages of a user are one, with empty lines between them, and messages
    of the role `system` are instructions beside it. Raises the refusal of a request without words, or of another kind.
    """
    messages = list(body.messages or ())
    if body.input is not None:
        if messages:
            raise refused("Give `input` or `messages`, not both.")
        messages = [LettaInput(role="user", content=body.input)]
    if not messages:
        raise refused("`messages` is empty.")
    if any(message.type == "approval" for message in messages):
        return _decision_of(messages)
    said: dict[str, list[str]] = {"user": [], "system": []}
    for message in messages:
        if message.type not in {None, "message"}:
            raise refused(f"Messages of the type {message.type!r} are not supported: no client runs functions.")
        if message.role not in said:
            raise refused(f"A client sends messages of the roles user and system, not {message.role!r}.")
        if message.group_id:
            raise refused("`group_id`: there are no groups of agents.")
        said[message.role].append(_text(message.content))
    user, system = ("\n\n".join(filter(None, texts)) for texts in (said["user"], said["system"]))
    names = {message.name for message in messages if message.role == "user" and message.name}
    if len(names) > 1:
        raise refused(f"The messages of one request are of one user, not of {', '.join(sorted(names))}.")
    otids = [message.otid for message in messages if message.otid]
    key = "+".join(otids)
    if not user and not system:
        raise refused("The message has no words.")
    if not user:
        return SentInput(SystemAlert(text=system, source="manual"), key)
    event = UserMessage(
        text=user, name=next(iter(names), ""), note=system, conversation=conversation, ref=otids[0] if otids else ""
    )
    return SentInput(event, key)


def _decision_of(messages: Sequence[LettaInput]) -> SentInput:
    """Return the decision of a request: without the seq of its call, which `sending.py` finds by the call's id."""
    approvals = messages[0].approvals or []
    if len(messages) != 1 or len(approvals) != 1 or approvals[0].type != "approval":
        raise refused(
            "An approval is one message with one decision in `approvals`, by `tool_call_id`: each call that waits is "
            "decided by a request of its own."
        )
    one = approvals[0]
    decided = ApprovalDecided(
        text=one.reason or "", request=0, call_id=one.tool_call_id, name="",
        decision="approved" if one.approve else "refused",
    )  # fmt: skip
    return SentInput(decided, messages[0].otid or "")


def _text(content: str | Sequence[LettaContent] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type != "text":
            raise refused(
                f"Parts of the type {part.type!r} cannot be sent, only text: agents do not see pictures.", 400
            )
    return "\n".join(part.text for part in content)

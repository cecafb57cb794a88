"""Answer chat completions: the newest message of a resent conversation goes to the agent that the model names."""

from collections.abc import Sequence
from typing import Any

from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.conversations.client_history import client_history
from everlog.interfaces.http.conversations.conversation_run import ConversationRun, ResentRequest, run_of_request
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse
from everlog.interfaces.http.openai.background_answers import answer_alone
from everlog.interfaces.http.openai.background_prompts import is_background
from everlog.interfaces.http.openai.chat_answers import PLAIN_STYLE, chunks_of, completion_of
from everlog.interfaces.http.openai.chat_shapes import ChatBody
from everlog.interfaces.http.openai.models import stream_of_model
from everlog.interfaces.http.runs.run_reading import begun, finished, reply_of

KEY_HEADERS = ("x-everlog-conversation", "x-openwebui-chat-id", "x-librechat-conversation-id")
"""Headers that name the conversation of a request, the first that is given counts."""
ATTEMPT_HEADERS = ("x-idempotency-key", "x-openwebui-message-id")
"""Headers, beside Idempotency-Key, with an id that every attempt has for itself."""
KEY_CHARS_MAX = 200


async def complete_chat(call: HttpCall) -> Any:
    """Answer the newest message of a conversation. What is new is decided by comparing the messages with the log."""
    body: ChatBody = call.body
    _check(body)
    root = stream_of_model(call, body.model)
    if is_background(body.messages, body.metadata):
        return await answer_alone(call, body, root)
    history = client_history(body.messages)
    request = ResentRequest(
        root=root, name=conversation_key(call, body.metadata), prior=history.prior, question=history.question,
        note=history.note, speaker=history.speaker, user=body.user or "", attempt=attempt_of(call),
    )  # fmt: skip
    run = await run_of_request(call, request)
    asked, items = await begun(call, run, preview=body.stream)
    created = asked.recorded_at // MICROSECONDS
    headers = headers_of(call, run)
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        return EventStreamResponse(
            call.service, call.caller, chunks_of(call, run, body.model, created, items, usage=usage), headers,
            PLAIN_STYLE,
        )  # fmt: skip
    reply = await reply_of(call, run.stream, run.run, (await finished(items)).records)
    return JsonResponse(completion_of(run, body.model, created, reply), headers=headers)


def _check(body: ChatBody) -> None:
    """Raise BadInput for a request that an agent cannot carry out as it is meant."""
    if body.n not in (None, 1):
        raise BadInput(f"`n` is 1: an agent answers once, not {body.n} times. Nothing was sent.")
    check_tools(body.tools, body.tool_choice)
    if body.response_format and body.response_format.get("type", "text") != "text":
        raise BadInput("An agent answers in words: `response_format` is text, or left out. Nothing was sent.")
    if body.modalities and "audio" in body.modalities:
        raise BadInput("An agent answers in words, without sound: leave `modalities` out. Nothing was sent.")


def check_tools(tools: Any, tool_choice: Any) -> None:
    """Raise BadInput for a request that lends an agent functions of the client."""
    if tools and tool_choice != "none":
        raise BadInput(
            "An agent calls functions of its own, and none of the client's: send the request without `tools`. Give the "
            "agent functions with `everlog serve --tools`. Nothing was sent."
        )


def attempt_of(call: HttpCall) -> str:
    """Return the id that a front end gives to this attempt, beside Idempotency-Key; empty: none."""
    return _header(call, ATTEMPT_HEADERS)


def conversation_key(call: HttpCall, metadata: Any) -> str:
    """Return the id that a client gives to its conversation, in a header or as `metadata.conversation_id`; empty: none.

    Raises BadInput for one that is too long.
    """
    key = _header(call, KEY_HEADERS) or str((metadata or {}).get("conversation_id") or "")
    if len(key) > KEY_CHARS_MAX:
        raise BadInput(f"The id of a conversation has at most {KEY_CHARS_MAX} characters, not {len(key)}.")
    return key


def _header(call: HttpCall, names: Sequence[str]) -> str:
    return next((value for name in names if (value := call.request.headers.get(name))), "")


def headers_of(call: HttpCall, run: ConversationRun) -> dict[str, str]:
    """Return headers that say which run of which agent answers, as ASCII."""
    named = {"X-Everlog-Conversation": run.conversation, "X-Everlog-Agent": call.shown(run.stream)}
    return {name: value for name, value in named.items() if value.isascii() and value.isprintable()} | {
        "X-Everlog-Run": run.run
    }

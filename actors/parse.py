"""From the raw body of a chat completion to a typed reply. Pure, so that `verify` can parse every body again."""

import json
from typing import Any

import msgspec

from events import BadReply, Call, ContextOverflow, ModelReply, Usage

_FINISHED = ("stop", "tool_calls", "function_call", "length", "eos", "")
"""Reasons for which a reply ends as the model meant it to; other servers leave it out or invent `eos`."""

CALL_ID_CHARS_MAX = 40

NEARLY = 0.9
"""Part of the window above which a reply that stopped for length ran out of window, not of the server's patience."""


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


_decoder = msgspec.json.Decoder(_Completion)


def reply(raw: str, window: int) -> ModelReply:
    """The reply inside `raw`, without what only the caller knows (latency, request).

    Raises ContextOverflow when the model ran out of its `window` (tokens), BadReply when `raw` is no chat completion.
    A reply cut short by a server's own limit is taken as it is: a call that it broke fails, and the model is told.
    """
    try:
        completion = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadReply(
            f"The model endpoint did not answer with a chat completion ({error}). It began with: {raw[:200]!r}. "
            "Check --base-url and --model.",
            raw,
        ) from error
    if not completion.choices:
        raise BadReply("The model endpoint answered with an empty list of choices. Try another model.", raw)
    choice = completion.choices[0]
    finish = choice.finish_reason or ""
    usage = _usage(completion.usage)
    if finish == "length" and (not usage.total or usage.total >= NEARLY * window):
        raise ContextOverflow("The model stopped for length: the reply did not fit into what the window left for it.")
    if finish not in _FINISHED:
        raise BadReply(f"The model ended its reply for the reason {finish!r}, which is not an answer.", raw)
    return ModelReply(
        text=choice.message.content or "",
        calls=_calls(choice.message),
        finish_reason=finish,
        usage=usage,
        model=completion.model or "",
        raw=raw,
    )


def _calls(message: _Message) -> list[Call]:
    """The calls, each with an id of its own: some servers leave ids out or repeat them."""
    asked = message.tool_calls or []
    if not asked and message.function_call is not None:
        asked = [_ToolCall(function=message.function_call)]
    calls: list[Call] = []
    seen: set[str] = set()
    for number, call in enumerate(asked, start=1):
        call_id = (call.id or "")[:CALL_ID_CHARS_MAX]
        while not call_id or call_id in seen:
            call_id, number = f"call_{number}", number + 1
        seen.add(call_id)
        calls.append(Call(call_id, call.function.name, _arguments(call.function.arguments)))
    return calls


def _arguments(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or "{}"


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return Usage(prompt=prompt, completion=completion, total=usage.total_tokens or prompt + completion)


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as an object: as it stands, else with the repairs that cannot change what was said.

    Raises ValueError or TypeError, with the reason, when that gives no JSON object.
    """
    value = _loaded(text)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, found {type(value).__name__}")
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()  # half a character is a ValueError
    return value


def _loaded(text: str) -> object:
    """JSON with raw line breaks allowed in strings, and with closing quote and braces that a cut-off reply lost."""
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        for ending in ("}", '"}', "}}", '"}}'):
            try:
                return json.loads(text.rstrip().rstrip(",") + ending, strict=False)
            except json.JSONDecodeError:
                continue
        raise ValueError(str(error)) from error

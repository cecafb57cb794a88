"""From the raw body of a chat completion to a typed reply. Pure, so that `verify` can parse every body again."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from events import BadReply, Call, ContextOverflow, ModelReply

from .usage import Told, usage_in

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


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Told | None = None
    timings: Any = None
    model: str | None = None


_decoder = msgspec.json.Decoder(_Completion)


def reply(raw: str, window: int) -> ModelReply:
    """The reply inside `raw`, without what only the caller knows (latency, request).

    Raises ContextOverflow when the model ran out of its `window` (tokens), BadReply when `raw` is no chat completion.
    A reply cut short by a server's own limit is taken as it is: a call that it broke fails, and the model is told.
    """
    try:
        completion = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadReply(
            f"The model endpoint did not answer with a chat completion ({error}). It began with: {raw[:200]!r}. "
            "Check --base-url and --model.",
            raw,
        ) from error
    if not completion.choices:
        raise BadReply("The model endpoint answered with an empty list of choices. Try another model.", raw)
    choice = completion.choices[0]
    finish = choice.finish_reason or ""
    usage = usage_in(completion.usage, completion.timings)
    if finish == "length" and (not usage.total or usage.total >= NEARLY * window):
        raise ContextOverflow("The model stopped for length: the reply did not fit into what the window left for it.")
    if finish not in _FINISHED:
        raise BadReply(f"The model ended its reply for the reason {finish!r}, which is not an answer.", raw)
    return ModelReply(
        text=_text(choice.message.content),
        calls=_calls(choice.message),
        finish_reason=finish,
        usage=usage,
        model=completion.model or "",
        raw=raw,
    )


def lossy_fault(reply: ModelReply) -> str:
    """What the model is told of a reply that could only be read by guessing."""
    return f"Your reply could only be read by guessing ({reply.repair}), so nothing of it was done. Say it again."


def said(raw: str) -> str:
    """What the model said in `raw`, as it is shown to it again."""
    message = _decoder.decode(raw).choices[0].message
    calls = "".join(f"\n{call.name} {call.arguments}" for call in _calls(message))
    return _text(message.content) + calls


def _text(content: str | list[_Part] | None) -> str:
    """The monologue; some servers send it in parts."""
    return "".join(part.text for part in content) if isinstance(content, list) else content or ""


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


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as an object: as it stands, else with the repairs that cannot change what was said.

    Raises ValueError or TypeError, with the reason, when that gives no JSON object.
    """
    value = _loaded(text)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, found {type(value).__name__}")
    return value


def _loaded(text: str) -> object:
    """JSON as it stands, else mended."""
    try:
        value: object = _lenient.decode(text)
    except (ValueError, RecursionError):
        return _mended(text)
    half = "\\u" in text or not text.isascii()  # there may be half a character in it
    return _mended(text) if half else value


def _mended(text: str) -> object:
    """JSON with raw line breaks in strings, escaped underscores, words around it, or its last quote and braces lost."""
    try:
        return _whole(text)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    except ValueError as error:
        begin = text.find("{")
        trimmed = text[max(begin, 0) :].replace("\\_", "_")
        for attempt in (lambda: _first(trimmed), *(_closed(trimmed, ending) for ending in ("}", '"}', "}}", '"}}'))):
            try:
                return attempt()
            except ValueError:
                continue
        raise ValueError(str(error)) from error


def _whole(text: str) -> object:
    return _said(json.loads(text, strict=False))


def _first(text: str) -> object:
    """The first object of several, or of one with words after it."""
    return _said(_lenient.raw_decode(text)[0])


def _closed(text: str, ending: str) -> Callable[[], object]:
    return lambda: _whole(text.rstrip().rstrip(",") + ending)


def _said(value: object) -> object:
    """The value. Raises ValueError where it holds half a character, which nobody can keep: the reply was cut there."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a character (a lone surrogate)") from error
    return value


_lenient = json.JSONDecoder(strict=False)

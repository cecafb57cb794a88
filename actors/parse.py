"""From the raw body of a completion to a typed reply. Pure, so that `verify` can parse every body again."""

from typing import Any

import msgspec

from events import BadReply, ContextOverflow, ModelReply, Usage

from . import parse_first
from .calling import WAYS, given
from .calling import rungs as ladder
from .calling.reading import Function, Reading, Said, ToolCall, numbered, unthought
from .calling.text import unstopped
from .constants import TOKENS_MAX

_FINISHED = ("stop", "tool_calls", "function_call", "length", "eos", "")
"""Reasons for which a reply ends as the model meant it to; other servers leave it out or invent `eos`."""

NEARLY = 0.9
"""Part of the window above which a reply that stopped for length ran out of window, not of the server's patience."""


READER = 2
"""Version of the code that reads replies, raised when a reply may be read otherwise. What the first one read is read as
it did; a later one that is gone is told by `verify`."""


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    reasoning_content: str | None = None
    reasoning: Any = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    total_tokens: float | None = None
    prompt_tokens_details: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


class _Bill(msgspec.Struct):
    usage: _Usage | None = None


_decoder = msgspec.json.Decoder(_Completion)
_bills = msgspec.json.Decoder(_Bill)


def reply(raw: str, window: int, calling: str = "native", reader: int = READER) -> ModelReply:
    """The reply inside `raw`, without what only the caller knows (latency, request).

    Raises ContextOverflow when the model ran out of its `window` (tokens), BadReply when `raw` is no completion.
    A reply cut short by a server's own limit is taken as it is: a call that it broke fails, and the model is told.
    """
    completion, choice = _answered(raw, window)
    if reader == 1:
        return _told(raw, completion, choice, _first(_said(choice)), reader=1)
    said = _said(choice)
    reading = WAYS[calling].read(said)
    rungs = [*reading.rungs]
    unsaid = any(not call.function.arguments for call in said.calls)
    if choice.finish_reason == "length" and (unsaid or "closed" in rungs):
        rungs.append("cut")
    return _told(raw, completion, choice, msgspec.structs.replace(reading, rungs=rungs), reader=READER)


def words(raw: str, window: int, reader: int = READER) -> ModelReply:
    """The same for a request that offers no functions: `text` is what was said, without what was thought aloud."""
    completion, choice = _answered(raw, window)
    said = _said(choice)
    if reader == 1:
        return _told(raw, completion, choice, _first(said), reader=1)
    own, stopped = unstopped(said.text) if choice.text is not None else (said.text, [])
    _, text, rungs = unthought(own)
    return _told(raw, completion, choice, Reading(text, [], [*stopped, *rungs]), reader=READER)


def _answered(raw: str, window: int) -> tuple[_Completion, _Choice]:
    try:
        completion = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _no_completion(raw, str(error)) from error
    if not completion.choices:
        raise BadReply("The model endpoint answered with an empty list of choices. Try another model.", raw)
    choice = completion.choices[0]
    if choice.message is None and choice.text is None:
        raise _no_completion(raw, "Object missing required field `message` - at `$.choices[...]`")
    finish, usage = choice.finish_reason or "", _usage(completion.usage)
    if finish == "length" and (not usage.total or usage.total >= NEARLY * window):
        raise ContextOverflow("The model stopped for length: the reply did not fit into what the window left for it.")
    if finish not in _FINISHED:
        raise BadReply(f"The model ended its reply for the reason {finish!r}, which is not an answer.", raw)
    return completion, choice


def _no_completion(raw: str, why: str) -> BadReply:
    return BadReply(
        f"The model endpoint did not answer with a chat completion ({why}). It began with: {raw[:200]!r}. "
        "Check --base-url and --model.",
        raw,
    )


def _told(raw: str, completion: _Completion, choice: _Choice, reading: Reading, *, reader: int) -> ModelReply:
    return ModelReply(
        text=reading.text,
        calls=reading.calls,
        finish_reason=choice.finish_reason or "",
        usage=_usage(completion.usage, reader),
        model=completion.model or "",
        raw=raw,
        repair=ladder.told(reading.rungs),
        lossy=ladder.is_lossy(reading.rungs),
        reader=reader,
    )


def _said(choice: _Choice) -> Said:
    """What a server sends, whichever fields it uses."""
    message = choice.message
    if message is None:
        return Said(choice.text or "")
    calls = message.tool_calls or []
    if not calls and message.function_call is not None:
        calls = [ToolCall(message.function_call)]
    reasoning = message.reasoning_content or (message.reasoning if isinstance(message.reasoning, str) else "")
    return Said(_text(message.content) or choice.text or "", calls, reasoning.strip())


def _first(said: Said) -> Reading:
    """What the first reader read."""
    calls = [(call.id, call.function.name, _arguments(call.function.arguments)) for call in said.calls]
    return Reading(said.text, numbered(calls))


def lossy_fault(reply: ModelReply) -> str:
    """What the model is told of a reply that could only be read by guessing."""
    reasons = "; ".join(ladder.LOSSY[rung] for rung in reply.repair.split(", ") if rung in ladder.LOSSY)
    return f"Your reply could only be read by guessing, so nothing of it was done: {reasons}. Say it again."


def said(raw: str) -> str:
    """What the model said in `raw`, as it is shown to it again."""
    told = _said(_decoder.decode(raw).choices[0])
    calls = "".join(f"\n{call.function.name} {_arguments(call.function.arguments)}" for call in told.calls)
    return told.text + calls


def usage_of(raw: str) -> Usage:
    """The tokens that `raw` says it cost; zeros where it does not say."""
    try:
        return _usage(_bills.decode(raw).usage)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Usage()


def _text(content: str | list[_Part] | None) -> str:
    """The monologue; some servers send it in parts."""
    return "".join(part.text for part in content) if isinstance(content, list) else content or ""


def _arguments(arguments: object) -> str:
    if isinstance(arguments, str) or arguments is None:
        return arguments or "{}"
    return msgspec.json.encode(arguments).decode()


def _usage(usage: _Usage | None, reader: int = READER) -> Usage:
    if usage is None:
        return Usage()
    prompt, completion, total = (
        _count(figure) for figure in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    )
    details = usage.prompt_tokens_details if reader > 1 else None
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    known = _count(cached) if isinstance(cached, int | float) else 0
    return Usage(prompt=prompt, completion=completion, total=total or prompt + completion, cached=known)


def _count(figure: float | None) -> int:
    """A count of tokens that can be: whole, not below 0, and within what the tables hold."""
    return int(min(max(figure or 0, 0), TOKENS_MAX))


def arguments(text: str, reader: int = READER) -> dict[str, Any]:
    """The arguments of a call as an object. Raises ValueError or TypeError, with the reason, when there is none."""
    return parse_first.arguments(text) if reader == 1 else given.arguments(text).value

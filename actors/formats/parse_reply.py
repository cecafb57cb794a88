"""Parse the raw body of a completion into a typed reply. Pure, so that `verify` can parse every body again.

Used by `model_step.py`, and by `actors/replay` and reruns. Raise `READER` if a reply may be parsed differently:
`verify` then reports "reader gone" for older replies instead of a false mismatch.
"""

from typing import Any

import msgspec

from everlog.actors.formats import call_arguments
from everlog.actors.formats import repair_steps as ladder
from everlog.actors.formats.calling import CALLING_FORMATS
from everlog.actors.formats.calling_format import (
    AssistantMessage,
    ParsedReply,
    ToolCall,
    ToolCallFunction,
    split_thoughts,
)
from everlog.actors.formats.text_format import text_before_stop
from everlog.actors.formats.turn_marks import CHATML, MARKS
from everlog.actors.models.token_usage import BOM, UsagePayload, usage_in
from everlog.events import BadReply, ContextOverflow, ModelReply

_FINISHED = ("stop", "tool_calls", "function_call", "length", "eos", "")
"""Finish reasons of a reply that can be read; some servers leave the reason out, others invent `eos`."""

FULL_WINDOW_SHARE = 0.9
"""Share of the window above which it counts as full: a reply that stopped for length then had no room."""

READER = 1
"""Version of the code that parses replies, raised when a reply may be parsed differently. A reply records the version
that parsed it; if that version is gone, `verify` reports so.
"""


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: ToolCallFunction | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: UsagePayload | None = None
    timings: Any = None
    model: str | None = None


_decoder = msgspec.json.Decoder(_Completion)


def _decode(raw: str) -> _Completion:
    return _decoder.decode(raw.removeprefix(BOM))


def reply(raw: str, window: int, calling: str = "native") -> ModelReply:
    """Parse the reply in `raw`, without the fields that only the caller knows (latency, request).

    Raises ContextOverflow if the model ran out of its `window` (tokens), BadReply if `raw` is not a completion. A reply
    that was truncated although the request left room for it is read as far as it goes, and marked as lossy.
    """
    completion, choice = _completion_and_choice(raw)
    said = _said(choice)
    if choice.finish_reason == "length" and _fills_window(completion, said, window):
        raise ContextOverflow("The model stopped for length: the request left no room for a reply in the window.", raw)
    _raise_if_refusal(raw, choice, said)
    reading = CALLING_FORMATS[calling].read(said)
    repairs = [*reading.repairs]
    if choice.finish_reason == "length":
        repairs.append("cut")
    return _model_reply(raw, completion, choice, msgspec.structs.replace(reading, repairs=repairs))


def _fills_window(completion: _Completion, said: AssistantMessage, window: int) -> bool:
    """Return True if the request itself fills the window; if the server does not count, True for an empty reply."""
    prompt = usage_in(completion.usage, completion.timings).prompt
    if prompt:
        return prompt >= FULL_WINDOW_SHARE * window
    return not (said.text.strip() or said.calls or said.reasoning)


def _raise_if_truncated(raw: str, completion: _Completion, choice: _Choice, window: int) -> None:
    """Raise ContextOverflow if a reply without a retry, such as a summary, may have filled the window."""
    total = usage_in(completion.usage, completion.timings).total
    if choice.finish_reason == "length" and (not total or total >= FULL_WINDOW_SHARE * window):
        raise ContextOverflow(
            "The model stopped for length: the reply did not fit into what the window left for it.", raw
        )


def _raise_if_refusal(raw: str, choice: _Choice, said: AssistantMessage) -> None:
    """Raise BadReply if the model only refused to answer, in the field for refusals."""
    refusal = choice.message.refusal if choice.message is not None else None
    if isinstance(refusal, str) and refusal.strip() and not said.text.strip() and not said.calls:
        raise BadReply(f"The model refused to answer: {refusal[:400]}", raw, kind="filtered")


def words(raw: str, window: int, calling: str = "text") -> ModelReply:
    """Parse the reply to a request without functions: `text` is the message without the model's thoughts."""
    completion, choice = _completion_and_choice(raw)
    _raise_if_truncated(raw, completion, choice, window)
    said = _said(choice)
    _raise_if_refusal(raw, choice, said)
    own, stopped = (
        text_before_stop(said.text, MARKS.get(calling, CHATML)) if choice.text is not None else (said.text, [])
    )
    _, text, repairs = split_thoughts(own)
    return _model_reply(raw, completion, choice, ParsedReply(text, [], [*stopped, *repairs]))


def _completion_and_choice(raw: str) -> tuple[_Completion, _Choice]:
    try:
        completion = _decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _no_completion(raw, str(error)) from error
    if not completion.choices:
        raise BadReply("The model endpoint answered with an empty list of choices. Try another model.", raw)
    choice = completion.choices[0]
    if choice.message is None and choice.text is None:
        raise _no_completion(raw, "Object missing required field `message` - at `$.choices[...]`")
    finish = choice.finish_reason or ""
    if finish not in _FINISHED:
        kind = "filtered" if finish == "content_filter" else "garbage"
        raise BadReply(f"The model ended its reply for the reason {finish!r}, which is not an answer.", raw, kind=kind)
    return completion, choice


def _no_completion(raw: str, why: str) -> BadReply:
    return BadReply(
        f"The model endpoint did not answer with a chat completion ({why}). It began with: {raw[:200]!r}. "
        "Check --base-url and --model.",
        raw,
    )


def _model_reply(raw: str, completion: _Completion, choice: _Choice, reading: ParsedReply) -> ModelReply:
    return ModelReply(
        text=reading.text,
        calls=reading.calls,
        finish_reason=choice.finish_reason or "",
        usage=usage_in(completion.usage, completion.timings),
        model=completion.model or "",
        raw=raw,
        repair=ladder.format_steps(reading.repairs),
        lossy=ladder.is_lossy(reading.repairs),
        reader=READER,
    )


def _said(choice: _Choice) -> AssistantMessage:
    """Return the message of a server, whichever fields it uses."""
    message = choice.message
    if message is None:
        return AssistantMessage(choice.text or "")
    calls = message.tool_calls or []
    if not calls and message.function_call is not None:
        calls = [ToolCall(message.function_call)]
    reasoning = message.reasoning_content or (message.reasoning if isinstance(message.reasoning, str) else "")
    return AssistantMessage(_text(message.content) or choice.text or "", calls, reasoning.strip())


def lossy_fault(reply: ModelReply) -> str:
    """Return the words for the model about a reply that could only be read by guessing."""
    reasons = "; ".join(
        ladder.LOSSY[repair_step] for repair_step in reply.repair.split(", ") if repair_step in ladder.LOSSY
    )
    return f"Your reply could only be read by guessing, so nothing of it was done: {reasons}. Say it again."


def said(raw: str) -> str:
    """Render the message in `raw` as the model sees it again."""
    completion_content = _said(_decode(raw).choices[0])
    calls = "".join(
        f"\n{call.function.name} {_arguments(call.function.arguments)}" for call in completion_content.calls
    )
    return completion_content.text + calls


def _text(content: str | list[_Part] | None) -> str:
    """Return the monologue; some servers send it in parts."""
    return "".join(part.text for part in content) if isinstance(content, list) else content or ""


def _arguments(arguments: object) -> str:
    if isinstance(arguments, str) or arguments is None:
        return arguments or "{}"
    return msgspec.json.encode(arguments).decode()


def arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call into an object. Raise ValueError or TypeError, with the reason, without one."""
    return call_arguments.arguments(text).value

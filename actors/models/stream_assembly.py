"""Assemble a streamed reply: its deltas as they arrive, and the completion that it would have been without a stream.
Pure.

Thoughts in a field of their own (`reasoning_content`) are part of the completion, but not of the deltas: they are no
part of the reply. Used by `response_body.py`. The completion is recorded as the raw reply, and `formats/parse_reply.py`
reads it like any other.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from everlog.actors.ports.effects import ReplyDelta

DONE = b"[DONE]"


_NOTHING = msgspec.Raw()


class _FunctionDelta(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCallDelta(msgspec.Struct, gc=False):
    function: _FunctionDelta | None = None
    index: int | None = None
    id: str | int | None = None


class _PartDelta(msgspec.Struct, gc=False):
    text: str = ""


class _MessageDelta(msgspec.Struct, gc=False):
    content: str | list[_PartDelta] | None = None
    tool_calls: list[_ToolCallDelta] | None = None
    function_call: _FunctionDelta | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _ChoiceDelta(msgspec.Struct, gc=False):
    index: int = 0
    delta: _MessageDelta | None = None
    message: _MessageDelta | None = None
    text: str | None = None
    finish_reason: str | None = None


class CompletionChunk(msgspec.Struct, gc=False):
    """One event of a stream, with the fields that are used."""

    choices: list[_ChoiceDelta] | None = None
    usage: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING
    id: str | None = None
    created: float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    timings: msgspec.Raw = _NOTHING
    object: str | None = None

    @property
    def is_error(self) -> bool:
        """True if the event says that the rest will not come."""
        return self.error not in _ABSENT or self.object == "error"


_decoder = msgspec.json.Decoder(CompletionChunk)
_ABSENT = (_NOTHING, msgspec.Raw(b"null"))


def chunk_of(data: bytes) -> CompletionChunk:
    """Parse one event. Raise msgspec.DecodeError (UnicodeError, RecursionError) if it is no chunk."""
    return _decoder.decode(data)


class _CallAssembly:
    """One call whose chunks are still arriving."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []

    def function(self) -> dict[str, str]:
        return {"name": self.name, "arguments": "".join(self.arguments)}

    def is_complete(self) -> bool:
        """Return True if its arguments are a complete JSON object."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


def _is_next(call: _CallAssembly, call_id: str, function: _FunctionDelta) -> bool:
    """Return True if a part with a name begins another call. Some servers repeat the name in every part."""
    if not function.name or not call.name:
        return False
    if call_id:
        return call_id != call.id
    if function.name != call.name:
        return any(call.arguments)
    return bool(function.arguments) and call.is_complete()


class StreamAssembler:
    """Assembler of one reply from its chunks."""

    def __init__(self) -> None:
        self.finish: str | None = None
        """Reason for which the model ended the reply; None while the reply continues."""
        self.begun = False
        """True once a chunk has arrived."""
        self._head: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        """Texts by field of the message."""
        self._is_chat = False
        """True if the reply has a message; False for a mere completion of text."""
        self._calls: list[_CallAssembly] = []
        self._function: _CallAssembly | None = None
        """Call in the old form `function_call`, of which a reply has one at most."""
        self._usage: msgspec.Raw | None = None
        self._timings: msgspec.Raw | None = None

    def take(self, chunk: CompletionChunk) -> Iterator[ReplyDelta]:
        """Take one more chunk, and yield its deltas."""
        self.begun = True
        if len(self._head) < 4:
            self._take_head(chunk)
        if chunk.usage not in _ABSENT:
            self._usage = chunk.usage.copy()
        if chunk.timings not in _ABSENT:
            self._timings = chunk.timings.copy()
        for choice in chunk.choices or ():
            if choice.index == 0:
                yield from self._take_choice(choice)

    def raw(self) -> str:
        """Return the completion as the endpoint would have sent it without a stream."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish}
        is_text = not self._is_chat and "text" in self._texts
        if "text" in self._texts:
            choice["text"] = self._said("text")
        if not is_text:
            choice["message"] = self._message()
        kind = "text_completion" if is_text else "chat.completion"
        has_any = self._texts or self._calls or self._function or self.finish is not None
        whole = {"object": kind, **self._head, "choices": [choice] if has_any else []}
        if self._usage is not None:
            whole["usage"] = self._usage
        if self._timings is not None:
            whole["timings"] = self._timings
        return msgspec.json.encode(whole).decode()

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._said("content")}
        for field in self._texts:
            if field != "text":
                message.setdefault(field, self._said(field))
        if self._calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": call.function()} for call in self._calls
            ]
        if self._function is not None:
            message["function_call"] = self._function.function()
        return message

    def _said(self, field: str) -> str | None:
        return "".join(self._texts[field]) if field in self._texts else None

    def _take_head(self, chunk: CompletionChunk) -> None:
        for field in ("id", "created", "model", "system_fingerprint"):
            value = getattr(chunk, field)
            if value is not None and field not in self._head:
                self._head[field] = value

    def _take_choice(self, choice: _ChoiceDelta) -> Iterator[ReplyDelta]:
        if choice.finish_reason:  # some servers send "" while the reply continues
            self.finish = choice.finish_reason
        delta = choice.delta if choice.delta is not None else choice.message
        if choice.text is not None and (delta is None or (choice.text and not delta.content)):
            self._texts.setdefault("text", [])
            yield from self._say("text", choice.text)
        if delta is None:
            return
        self._is_chat = True
        if delta.content:
            content = delta.content
            yield from self._say("content", content if isinstance(content, str) else "".join(p.text for p in content))
        for field in ("refusal", "reasoning_content", "reasoning"):
            if getattr(delta, field):
                self._texts.setdefault(field, []).append(getattr(delta, field))
        for part in delta.tool_calls or ():
            function = part.function or _FunctionDelta()
            call = self._call_of(part, function)
            yield from self._call_says(call, self._calls.index(call), function)
        if delta.function_call is not None:
            self._function = self._function or _CallAssembly(None, "")
            yield from self._call_says(self._function, 0, delta.function_call)

    def _say(self, field: str, text: str) -> Iterator[ReplyDelta]:
        if text:
            self._texts.setdefault(field, []).append(text)
            yield ReplyDelta(text)

    def _call_of(self, part: _ToolCallDelta, function: _FunctionDelta) -> _CallAssembly:
        """Return the call that this is a part of.

        Some servers omit the index, or send 0 for all calls. Then a name begins a new call if its id is new, or if the
        last call has no id and its arguments are complete.
        """
        call_id = "" if part.id is None else str(part.id)
        last = self._calls[-1] if self._calls else None
        if part.index is None:
            call = last
        else:
            call = next((call for call in reversed(self._calls) if call.index == part.index), None)
        if call is None or _is_next(call, call_id, function):
            call = _CallAssembly(part.index, call_id)
            self._calls.append(call)
        elif call_id and not call.id:
            call.id = call_id
        return call

    def _call_says(self, call: _CallAssembly, place: int, function: _FunctionDelta) -> Iterator[ReplyDelta]:
        name = function.name or ""
        name = "" if name == call.name else name  # some servers repeat it in every chunk
        arguments = function.arguments or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if name or arguments:
            call.name += name
            call.arguments.append(arguments)
            yield ReplyDelta(call=place, name=name, arguments=arguments)

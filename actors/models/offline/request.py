"""Parse what the offline model needs of a request: the block `human`, the waiting inputs, the results of the last
calls.

Used by `offline_model.py` and `answers.py`. The block is found by the words that `formats/render_request.py` writes
around it: keep both in step.
"""

from itertools import islice
from typing import Any

import msgspec

from everlog.events import ModelError

USER_MESSAGE, AGENT_MESSAGE = "user_message", "agent_message"
SAID = (USER_MESSAGE, AGENT_MESSAGE)
"""Types of inputs that may ask something."""
_MESSAGES_MAX = 400
"""Maximum messages that are searched for users' words, counted from the end."""
_MEMORY = "\nCore memory shown below"
_HUMAN = '\n<human characters="'
_HUMAN_END = "\n</human>"
_HIDDEN = "Note: prior messages ("
"""Mark of a message that holds a summary."""


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    """One call, or one function that may be called."""

    function: _Function
    id: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""


class _Body(msgspec.Struct):
    messages: list[_Message]
    tools: list[_Call] | None = None


class PendingInput(msgspec.Struct):
    """One of the small JSON objects in messages of the role `user`."""

    type: str = ""
    message: str | None = None
    name: str | None = None
    time: str = ""
    reason: str = ""
    instructions: str = ""


_body, _envelope = msgspec.json.Decoder(_Body), msgspec.json.Decoder(PendingInput)
_object = msgspec.json.Decoder(dict[str, Any])


class CallResult(msgspec.Struct):
    """One call of the last reply, with its result."""

    name: str
    arguments: dict[str, Any]
    ok: bool
    text: str


class OfflineRequest(msgspec.Struct):
    """Everything that the rules use of a request."""

    system: str
    last_text: str
    functions: set[str] | None
    """Names of the functions that may be called; None if the request has none, as for a summary."""
    human: list[str] | None
    """Lines of the block `human`; None if there is no such block."""
    first: bool
    """True if the request shows no earlier reply of the agent."""
    events: list[PendingInput]
    """Waiting inputs in order."""
    results: list[CallResult]
    """Results of the calls of the last reply."""
    asked: list[str]
    """Last messages of the user. A search finds these too, and they are no answer."""
    heard: list[str]
    """Contents of all messages of the role `user`, in order."""

    def statements(self) -> list[str]:
        """Return the texts of all messages of users, in order."""
        events = map(_event, self.heard)
        return [event.message for event in events if event.type == "user_message" and event.message]


def parse_request(body: bytes) -> OfflineRequest:
    """Parse a request. Raise ModelError if `body` is none."""
    try:
        decoded = _body.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"The offline model was sent no chat-completions request: {error}.", kind="request") from error
    messages = decoded.messages
    system = messages[0].content or "" if messages and messages[0].role == "system" else ""
    last = next((n for n in reversed(range(len(messages))) if messages[n].role == "assistant"), 0)
    heard = [(n, m.content or "") for n, m in enumerate(messages) if m.role == "user"][-_MESSAGES_MAX:]
    waiting = _newest_group([_event(content) for n, content in heard if n >= last])
    # From the newest on, and no further: of a long talk hardly any message is needed.
    before = (_event(content) for n, content in reversed(heard) if n < last)
    asked = list(islice((event for event in before if event.type in SAID), 1))
    asked += [event for event in waiting if event.type in SAID]
    return OfflineRequest(
        system=system,
        last_text=messages[-1].content or "" if messages else "",
        functions=None if decoded.tools is None else {tool.function.name for tool in decoded.tools},
        human=_human(system),
        first=not any(message.role == "assistant" and not _is_imported(message) for message in messages),
        events=waiting,
        results=_results(messages[last:]),
        asked=[event.message or "" for event in asked],
        heard=[content for _, content in heard],
    )


def _decoded(text: str, otherwise: dict[str, Any]) -> dict[str, Any]:
    try:
        return _object.decode(text)
    except msgspec.DecodeError:
        return otherwise


def _event(content: str) -> PendingInput:
    """Parse a message as an input. Text in another form is taken for a user's words."""
    try:
        return PendingInput() if _HIDDEN in content[:100] else _envelope.decode(content)
    except msgspec.DecodeError:
        return PendingInput("user_message", content)


def _is_imported(message: _Message) -> bool:
    """Return True if a reply was written by an import or by the boot messages, not by a model."""
    return bool(message.tool_calls) and all(c.id.startswith(("import_", "boot")) for c in message.tool_calls or [])


def _newest_group(events: list[PendingInput]) -> list[PendingInput]:
    """Return the inputs without users' words of another speaker or day than the newest:
    an import may end with such words.
    """
    newest = events[-1] if events else PendingInput()
    names = {newest.name} if newest.type == "user_message" else {event.name for event in events}
    return [e for e in events if e.type != "user_message" or (e.time[:10] == newest.time[:10] and e.name in names)]


def _results(messages: list[_Message]) -> list[CallResult]:
    """Return the calls of the first message, with their results."""
    calls = {call.id: call.function for message in messages[:1] for call in message.tool_calls or []}
    results = []
    for message in messages[1:]:
        if message.role == "tool" and (call := calls.get(message.tool_call_id)):
            result = _decoded(message.content or "", {"message": message.content})
            ok, text = result.get("status", "OK") == "OK", str(result.get("message") or "")
            results.append(CallResult(call.name, _decoded(call.arguments, {}), ok, text))
    return results


def _human(system: str) -> list[str] | None:
    """Return the lines of the block `human`; None if there is no such block."""
    start = system.find(_HUMAN, max(0, system.rfind(_MEMORY)))
    opened = system.find("\n", start + 1) if start >= 0 else -1
    end = system.find(_HUMAN_END, opened) if opened >= 0 else -1
    return [line for line in system[opened + 1 : end].split("\n") if line.strip()] if end >= 0 else None

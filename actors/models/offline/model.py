"""The offline model: an embedded, rule-based stand-in for a language model. No key, no network, no chance.

`reply` is pure: the same request always gives the same answer, byte for byte. Here is only the wire: what a request
holds and what an answer looks like. What to say is in `turn.py` and the files beside it.
"""

import hashlib
from typing import Any

import msgspec

from everlog.actors.models.offline import rules, summary, talk
from everlog.actors.models.offline.plan import Event, Outcome, Plan, Turn
from everlog.actors.models.offline.turn import plan
from everlog.actors.models.offline.words import minutes
from everlog.actors.ports.effects import Answer
from everlog.actors.ports.real import monotonic_us
from everlog.events import ModelError

MODEL = "offline (rule-based)"

_RECENT_MESSAGES = 400
"""How far back users' statements are looked for."""

_WAITED_MINUTES_MAX = 10
"""A message this much older than the newest input is not served with it: it is history that was imported."""

_MEMORY = "\nCore memory shown below"
_HUMAN = '\n<human characters="'
_HUMAN_END = "\n</human>"
_HIDDEN = "Note: prior messages ("


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    id: str = ""
    function: _Function = msgspec.field(default_factory=_Function)


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""


class _Tool(msgspec.Struct):
    function: _Function


class _Request(msgspec.Struct):
    messages: list[_Message]
    tools: list[_Tool] | None = None


class _Result(msgspec.Struct):
    status: str = ""
    message: str | None = None


_decoder = msgspec.json.Decoder(_Request)
_event = msgspec.json.Decoder(Event)
_result = msgspec.json.Decoder(_Result)
_arguments = msgspec.json.Decoder(dict[str, Any])
_json = msgspec.json.Encoder()


class Offline:
    """The model protocol over `reply`."""

    name = "offline"

    async def ask(self, request: bytes) -> Answer:
        """Answer at once. Raises ModelError where the request is none."""
        started = monotonic_us()
        raw = reply(request).decode()
        return Answer(raw, monotonic_us() - started)

    async def close(self) -> None:
        """There is nothing to let go of."""


def reply(request: bytes) -> bytes:
    """The body of a chat completion that answers the body `request`. Pure. Raises ModelError where it is no request."""
    try:
        asked = _decoder.decode(request)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"The offline model was sent no chat-completions request: {error}.", kind="request") from error
    system = asked.messages[0].content or "" if asked.messages and asked.messages[0].role == "system" else ""
    if asked.tools is None:
        words = summary.limit(system)
        if words is not None:
            return _encoded(request, summary.summary(asked.messages[-1].content or "", words), [])
        if talk.is_question(system):
            return _encoded(request, talk.NO_HELPER, [])
    turn = _turn(asked, system)
    made = _allowed(plan(turn), turn, {tool.function.name for tool in asked.tools or []})
    return _encoded(request, made.thought, made.calls)


def _allowed(made: Plan, turn: Turn, functions: set[str]) -> Plan:
    """The plan with what may be called: words become a call last, or first in the very first reply."""
    wanted = made.calls
    made.calls = [call for call in wanted if call[0] in functions]
    if len(made.calls) < len(wanted) and not made.says:
        made.say("I would need a function for that which I was not given.")
    if turn.first and not made.says and not _begins(made):
        query = next((call[1]["query"] for call in made.calls if call[0] == "conversation_search"), None)
        if query is not None and "archival_memory_search" in functions:
            search = {"query": query, "request_heartbeat": True}
            made.calls.insert(0, ("archival_memory_search", search))
        else:
            made.say("Let me see." if made.calls else talk.greeting(rules.known_name(turn.human or []), first=True))
    if made.says and "send_message" in functions:
        made.calls.insert(0 if turn.first else len(made.calls), ("send_message", {"message": " ".join(made.says)}))
    elif made.says:
        made.thought = " ".join(made.says)
    return made


def _begins(made: Plan) -> bool:
    return bool(made.calls) and made.calls[0][0] == "archival_memory_search"


def _encoded(request: bytes, content: str, calls: list[tuple[str, dict[str, Any]]]) -> bytes:
    """A chat completion. Ids come from the request, tokens are a quarter of the bytes."""
    digest = hashlib.sha256(request).hexdigest()[:24]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{digest}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": _json.encode(arguments).decode()},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    prompt, completion = _tokens(request), _tokens(_json.encode(message))
    return _json.encode(
        {
            "id": f"chatcmpl-{digest}",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [choice],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            },
        }
    )


def _tokens(data: bytes) -> int:
    return -(-len(data) // 4)


def _turn(asked: _Request, system: str) -> Turn:
    """What the rules look at: the block `human`, what waits after the last reply, and what that reply called."""
    messages = asked.messages
    last = next((n for n in reversed(range(len(messages))) if messages[n].role == "assistant"), 0)
    events = _open([_read(m) for m in messages[last:] if m.role == "user" and not _is_summary(m)])
    asked_before, steps = _before(messages, last)
    users = [event.message or "" for event in events if event.type == "user_message"]
    return Turn(
        human=_human(system),
        first=not any(m.role == "assistant" and not _given(m) for m in messages),
        steps=steps,
        events=events,
        outcomes=_outcomes(messages, last),
        asked=[*asked_before, *users],
        statements=lambda: _statements(messages),
    )


def _human(system: str) -> list[str] | None:
    """The lines of the block `human`."""
    start = system.find(_HUMAN, max(0, system.rfind(_MEMORY)))
    opened = system.find("\n", start + 1) if start >= 0 else -1
    end = system.find(_HUMAN_END, opened) if opened >= 0 else -1
    if end < 0:
        return None
    return [line for line in system[opened + 1 : end].split("\n") if line.strip()]


def _read(message: _Message) -> Event:
    """A waiting message as an event; what is none of ours is taken for a user's words."""
    content = message.content or ""
    try:
        return _event.decode(content)
    except msgspec.DecodeError:
        return Event(type="user_message", message=content)


def _is_summary(message: _Message) -> bool:
    return _HIDDEN in (message.content or "")[:100]


def _given(message: _Message) -> bool:
    """Whether a reply was put there, by an import or by the start-up, and is none of ours."""
    return bool(message.tool_calls) and all(
        call.id.startswith(("import_", "boot")) for call in message.tool_calls or []
    )


def _open(events: list[Event]) -> list[Event]:
    """What can be open input: the newest event, and messages before it that came shortly before, from the same speaker.

    An import that ends with a user's lines leaves them where waiting input stands, and nothing but time and name tell.
    """
    if not any(event.type == "user_message" for event in events[:-1]):
        return events
    newest = events[-1]
    now = minutes(newest.time)
    served = []
    for event in events[:-1]:
        if event.type == "user_message" and now is not None:
            came = now if event.time == newest.time else minutes(event.time)
            stranger = newest.type == "user_message" and event.name != newest.name
            if stranger or came is None or not 0 <= now - came <= _WAITED_MINUTES_MAX:
                continue
        served.append(event)
    return [*served, newest]


def _before(messages: list[_Message], last: int) -> tuple[list[str], int]:
    """What users said last before message `last`, and how many replies came since."""
    steps = 0
    asked: list[Event] = []
    for message in reversed(messages[: last + 1]):
        if message.role == "assistant" and asked:
            break
        steps += message.role == "assistant"
        if message.role == "user":
            event = _read(message)
            if event.type == "user_message":
                asked.insert(0, event)
            elif event.type == "login":
                break
    return [event.message or "" for event in _open(asked)], steps


def _outcomes(messages: list[_Message], last: int) -> list[Outcome]:
    """The calls of message `last` with their results."""
    calls = {call.id: call.function for call in messages[last].tool_calls or []} if messages else {}
    outcomes = []
    for message in messages[last + 1 :]:
        call = calls.get(message.tool_call_id) if message.role == "tool" else None
        if call is not None:
            result = _told(message.content or "")
            outcomes.append(Outcome(call.name, _bound(call.arguments), result.status == "OK", result.message or ""))
    return outcomes


def _told(content: str) -> _Result:
    try:
        return _result.decode(content)
    except msgspec.DecodeError:
        return _Result("OK", content)


def _bound(arguments: str) -> dict[str, Any]:
    try:
        return _arguments.decode(arguments)
    except msgspec.DecodeError:
        return {}


def _statements(messages: list[_Message]) -> list[str]:
    """What users said among the recent messages, in order."""
    events = (_read(m) for m in messages[-_RECENT_MESSAGES:] if m.role == "user" and not _is_summary(m))
    return [event.message for event in events if event.type == "user_message" and event.message]

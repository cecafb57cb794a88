"""Write an agent as a Letta agent file (`.af`): its blocks, prompt, model, functions and messages, from its log.

Used by `everlog export --af` and by servers. The same records give the same file: ids are numbers of blocks and seqs of
records, and the time of the file is that of the last record. What the format has no place for is counted by kind.
`letta_agent_file.py` reads the file again, with the same blocks and the same messages.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.prompt.context import Context, MemoryBlock
from everlog.events import (
    AgentConfigured,
    AgentCreated,
    AnyEvent,
    Call,
    FunctionResult,
    Heartbeat,
    MessageSent,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    ReplyRethought,
    Summary,
    SystemAlert,
    UserLogin,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.events.times import moment
from everlog.interfaces.imports.letta_messages import unpacked
from everlog.interfaces.imports.letta_tool_rules import LettaToolRule, letta_rules
from everlog.interfaces.output.json_shapes import JsonObject

LETTA_TOOLS = {
    "send_message": "letta_core", "conversation_search": "letta_core", "archival_memory_insert": "letta_core",
    "archival_memory_search": "letta_core", "core_memory_append": "letta_memory_core",
    "core_memory_replace": "letta_memory_core",
}  # fmt: skip
"""Functions that Letta has under the same name, and its types of them. It links its own when it reads the file."""

BOOT = "boot"
"""Model of the reply that every agent begins with. A restored agent has its own, so it is not written."""

_ELSEWHERE = {
    "archival_memory": "archival memories", "timers": "timers", "insights": "insights", "facts": "facts",
    "plan_items": "items of plans",
}  # fmt: skip
"""Projections of what the format has no place for, and the words for their rows."""
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_SAMPLING = ("temperature", "frequency_penalty", "max_tokens")
_CARRIED = {
    "text", "by", "model", "window", "zone", "functions", "schemas", "renderer", "sampling", "preset", "verify_first",
    "calling", "stream",
}  # fmt: skip
"""Settings that the file has, or that follow from the model."""


class LettaAgentFile(msgspec.Struct, frozen=True):
    """An agent file, and the numbers of what it does not hold, by kind."""

    content: JsonObject
    left_out: Mapping[str, int]

    def encode(self) -> bytes:
        """Return the file as JSON."""
        return msgspec.json.format(msgspec.json.encode(self.content), indent=2)


def letta_file_of(
    view: AgentView, *, name: str = "", tags: Sequence[str] = (), description: str = ""
) -> LettaAgentFile:
    """Return the agent file of an agent at the moment of the view. `name`: its name in the file (default: its own).

    Raises BadInput if the agent has no configuration.
    """
    context = view.context()
    sources = [row for row in view.rows("sources") if row["source"]]
    elsewhere = {words: len(view.rows(projection)) for projection, words in _ELSEWHERE.items()}
    return letta_file(
        list(view.reader.read(view.agent_id, 1, view.seq)), context, view.schemas(context.config.functions),
        name=name or view.agent_id, tags=tags, description=description,
        elsewhere={**elsewhere, "document sources": len(sources)},
    )  # fmt: skip


def letta_file(
    records: Sequence[Record],
    context: Context,
    schemas: Mapping[str, str],
    *,
    name: str,
    tags: Sequence[str] = (),
    description: str = "",
    elsewhere: Mapping[str, int] | None = None,
) -> LettaAgentFile:
    """Make the agent file of an agent from its records and its context. Pure.

    `records`: all of them, in order; those of an earlier agent of the name are ignored. `schemas`: JSON schemas of its
    functions by sha256. `elsewhere`: numbers of things that other projections found, by kind.
    """
    left_out = Counter({kind: count for kind, count in (elsewhere or {}).items() if count})
    left_out.update(_settings_left_out(context))
    life = _life(records)
    messages = _Messages(life, context.config.model, left_out)
    first = _message("message-0", "system", context.config.text, life[0].recorded_at)
    blocks = [_block(number, block) for number, block in enumerate(context.blocks)]
    tools = list(_tools(context.config, schemas, left_out))
    agent = {
        "id": "agent-0",
        "name": name,
        "agent_type": "memgpt_agent",
        "description": description or None,
        "system": context.config.text,
        "llm_config": _model(context.config),
        "timezone": context.config.zone,
        "tags": list(tags),
        "block_ids": [block["id"] for block in blocks],
        "tool_ids": [tool["id"] for tool in tools],
        "tool_rules": msgspec.to_builtins(_rules(context.config)),
        "include_base_tools": False,
        "in_context_message_ids": [first["id"], *messages.in_view(context)],
        "messages": [first, *messages.made],
        "files_agents": [],
        "group_ids": [],
    }
    shared = sum(bool(block.origin) for block in context.blocks)
    left_out.update({"links to shared blocks": shared} if shared else {})
    empty: JsonObject = {key: [] for key in ("groups", "files", "sources", "mcp_servers")}
    content = {
        "agents": [agent], "blocks": blocks, "tools": tools, **empty, "metadata": {"made_by": "everlog"},
        "created_at": _iso(life[-1].recorded_at),
    }  # fmt: skip
    return LettaAgentFile(content, dict(sorted((+left_out).items())))


def _rules(config: AgentConfigured) -> Sequence[LettaToolRule]:
    """Return the rules of an agent, and the one that Letta needs: here a message to the user ends the turn anyway."""
    ends = LettaToolRule(SEND_MESSAGE, "exit_loop")
    return [ends, *(rule for rule in letta_rules(config) if rule != ends)]


def _life(records: Sequence[Record]) -> Sequence[Record]:
    """Return the records since the agent was created last."""
    births = [number for number, record in enumerate(records) if record.type == AgentCreated.kind]
    return records[births[-1] :] if births else records


class _Messages:
    """Messages of an agent in the shape of the file, in the order of its log."""

    def __init__(self, records: Sequence[Record], model: str, left_out: Counter[str]) -> None:
        self.made: list[JsonObject] = []
        self._model, self._left_out = model, left_out
        self._seq_of: list[int] = []
        """For each message the seq of the record that must be in view for it to be in view."""
        self._sent: dict[tuple[int, int, str], list[tuple[Record, MessageSent]]] = defaultdict(list)
        self._results: dict[tuple[int, int, str], list[tuple[Record, FunctionResult]]] = defaultdict(list)
        self._told: set[int] = set()
        """Seqs of records that a message of a call has."""
        self._thoughts: dict[int, str] = {}
        self._call_ids: set[str] = set()
        living = [(record, event_of(record)) for record in records if not self._is_gone(record)]
        for record, event in living:
            self._note(record, event)
        for record, event in living:
            if record.seq not in self._told:
                self._add(record, event)

    def in_view(self, context: Context) -> Iterator[str]:
        """Yield the ids of the messages that the context shows."""
        seqs = {message.seq for message in context.messages}
        seqs.update({context.summary.seq} if context.summary is not None else ())
        yield from (message["id"] for seq, message in zip(self._seq_of, self.made, strict=True) if seq in seqs)

    def _is_gone(self, record: Record) -> bool:
        self._left_out["erased records"] += is_erased(record.payload)
        return is_erased(record.payload)

    def _note(self, record: Record, event: AnyEvent) -> None:
        match event:
            case MessageSent(call_id=call_id) if call_id:
                self._sent[record.turn, record.step, call_id].append((record, event))
            case FunctionResult():
                self._results[record.turn, record.step, event.call_id].append((record, event))
            case ReplyRethought():
                self._thoughts[event.target_seq] = event.text

    def _add(self, record: Record, event: AnyEvent) -> None:
        at = record.recorded_at if record.said_at is None else record.said_at
        match event:
            case UserMessage():
                text = event.text if unpacked(event.text) is None else _packed("user_message", at, message=event.text)
                self._append(record, _message(_id(record), "user", text, at, name=event.name or None))
            case MessageSent():
                self._append(record, _message(_id(record), "assistant", event.text, at, name=event.name or None))
            case UserLogin():
                self._append(record, _message(_id(record), "user", _packed("login", at), at))
            case Heartbeat():
                text = _packed("heartbeat", at, reason=event.text or event.reason)
                self._append(record, _message(_id(record), "user", text, at))
            case SystemAlert() | Summary():
                self._append(record, _message(_id(record), "user", _packed("system_alert", at, message=event.text), at))
            case ModelReply(model=model) if model != BOOT:
                self._add_reply(record, event)
            case FunctionResult(call_id=call_id) if call_id != BOOT:
                self._left_out["results without a call"] += 1
            case ReplyRejected(purpose="reply"):
                self._left_out["rejected replies"] += 1
            case ModelFailed() | ModelSwitched():
                self._left_out["failed requests"] += 1

    def _add_reply(self, record: Record, reply: ModelReply) -> None:
        """Add a reply with its calls, and the result of each. A call without a result, or that sent nothing, is left
        out: providers refuse a history with a call that nothing answers.
        """
        thought = self._thoughts.get(record.seq, reply.text)
        calls, answers = [], []
        for call in reply.calls:
            at = (record.turn, record.step, call.id)
            results = self._results[at]
            sent = self._sent[at]
            said = sent.pop(0) if sent else None
            if not results or (call.name == SEND_MESSAGE and said is None and results[0][1].ok):
                self._left_out["calls without a result"] += 1
                continue
            answered, result = results.pop(0)
            call_id = self._unique(call.id, answered.seq)
            calls.append(_call(call, call_id, said[1].text if said is not None else None))
            answers.append(_result(answered, result, call_id))
            self._told |= {answered.seq} | ({said[0].seq} if said is not None else set())
        if not calls and not thought.strip():
            return
        message = _message(_id(record), "assistant", thought, record.recorded_at, is_said=bool(calls))
        self._append(record, {**message, "tool_calls": calls or None, "model": reply.model or self._model})
        for answer in answers:
            self._append(record, answer)

    def _unique(self, call_id: str, seq: int) -> str:
        """Return the id of a call: the model's own, unless an earlier call has it. Letta sends one result of an id."""
        found = call_id if call_id and call_id not in self._call_ids else f"{call_id or 'call'}-{seq}"
        self._call_ids.add(found)
        return found

    def _append(self, record: Record, message: JsonObject) -> None:
        self.made.append(message)
        self._seq_of.append(record.seq)


def _id(record: Record) -> str:
    return f"message-{record.seq}"


def _iso(at: int) -> str:
    return moment(at).isoformat()


def _packed(kind: str, at: int, **more: str) -> str:
    """Return the text of a message that is not the words of a user, as Letta packs it."""
    return json.dumps({"type": kind, **more, "time": _iso(at)}, ensure_ascii=False)


def _message(
    message_id: str, role: str, text: str, at: int, *, name: str | None = None, is_said: bool = True
) -> JsonObject:
    """Return a message. A thought without a call is reasoning: as text it would be what the agent said."""
    part = {"type": "text", "text": text} if is_said else {"type": "reasoning", "is_native": False, "reasoning": text}
    return {
        "id": message_id,
        "type": "message",
        "role": role,
        "content": [part] if text else [],
        "name": name,
        "agent_id": "agent-0",
        "created_at": _iso(at),
    }


def _call(call: Call, call_id: str, said: str | None) -> JsonObject:
    """Return a call. `said`: the words that reached the user; they stay if the model's own JSON had to be repaired."""
    arguments = call.arguments
    if said is not None and _argument(arguments) != said:
        arguments = json.dumps({"message": said}, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _argument(arguments: str) -> Any:
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return found.get("message") if isinstance(found, dict) else None


def _result(record: Record, result: FunctionResult, call_id: str) -> JsonObject:
    text = json.dumps(
        {"status": "OK" if result.ok else "Failed", "message": result.text, "time": _iso(record.recorded_at)},
        ensure_ascii=False,
    )
    returned: JsonObject = {
        "tool_call_id": call_id, "status": "success" if result.ok else "error", "func_response": text,
        "stdout": [], "stderr": [],
    }  # fmt: skip
    message = _message(_id(record), "tool", text, record.recorded_at, name=result.name)
    return {**message, "tool_call_id": call_id, "tool_returns": [returned]}


def _block(number: int, block: MemoryBlock) -> JsonObject:
    return {
        "id": f"block-{number}",
        "label": block.label,
        "value": block.value,
        "limit": block.limit,
        "description": block.description or None,
        "read_only": block.read_only,
    }


def _tools(config: AgentConfigured, schemas: Mapping[str, str], left_out: Counter[str]) -> Iterator[JsonObject]:
    """Yield the functions of the agent as schemas, without program text."""
    for number, function in enumerate(config.functions):
        if function.sha256 not in schemas:
            left_out["erased schemas"] += 1
            continue
        schema = json.loads(schemas[function.sha256])
        shown = schema.get("function", schema)
        yield {
            "id": f"tool-{number}",
            "name": function.name,
            "tool_type": LETTA_TOOLS.get(function.name, "custom"),
            "source_type": "json",
            "source_code": None,
            "description": shown.get("description"),
            "json_schema": {key: shown[key] for key in ("name", "description", "parameters") if key in shown},
            "tags": [],
        }


def _model(config: AgentConfigured) -> JsonObject:
    """Return the model as Letta describes it: everlog asks every model through OpenAI's API."""
    sampling = config.sampling
    given = {name: getattr(sampling, name) for name in _SAMPLING if getattr(sampling, name) is not None}
    if sampling.max_tokens is None and sampling.max_completion_tokens is not None:
        given["max_tokens"] = sampling.max_completion_tokens
    if sampling.reasoning_effort in _EFFORTS:
        given["reasoning_effort"] = sampling.reasoning_effort
    return {
        "model": config.model,
        "model_endpoint_type": "openai",
        "context_window": config.window,
        "put_inner_thoughts_in_kwargs": False,
        **given,
    }


def _settings_left_out(context: Context) -> dict[str, int]:
    """Count the settings of an agent that the file has no place for."""
    config, usual = context.config, AgentConfigured(model="", window=0, renderer=0)
    names = set(AgentConfigured.__struct_fields__) - _CARRIED
    sampling = config.sampling
    unusual = [
        name for name in sampling.__struct_fields__ if getattr(sampling, name) is not None
        and name not in (*_SAMPLING, "max_completion_tokens", "reasoning_effort")
    ]  # fmt: skip
    if sampling.reasoning_effort is not None and sampling.reasoning_effort not in _EFFORTS:
        unusual.append("reasoning_effort")
    return {
        "settings": sum(getattr(config, name) != getattr(usual, name) for name in names),
        "sampling settings": len(unusual),
    }

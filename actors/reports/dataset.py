"""Write conversations of agents as chat messages, for evaluation or fine-tuning: what people saw, or what models saw.

Used by `everlog dataset`. Erased records never appear: their words are not in the log, and a request that contained
them cannot be rendered. A request is written only if its bytes have the hash that is recorded in the log.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.formats import render_request
from everlog.actors.ports.agent_constants import RENDERER
from everlog.actors.prompt.context import context_of, is_configured
from everlog.events import ModelReply, Record, event_of, is_erased

JsonLine = dict[str, Any]

REQUESTS_AT_ONCE = 32
"""Contexts that are queried together."""


class TimeSpan(NamedTuple):
    """Times of records to write, microseconds UTC, both inclusive; None: no limit."""

    first: int | None = None
    last: int | None = None

    def holds(self, at: int) -> bool:
        """Return True if a time is within."""
        return (self.first is None or at >= self.first) and (self.last is None or at <= self.last)


def people_saw(view: AgentView, span: TimeSpan, turns: int | None = None) -> Iterator[JsonLine]:
    """Yield what user and agent said: one line, or one for each window of `turns` messages of the user.

    Messages of earlier incarnations of the agent are left out, and imported ones are included.
    """
    said = [row for row in view.rows("recall_memory") if row["text"] and span.holds(_us(row["time"]))]
    window: list[dict[str, Any]] = []
    for row in said:
        if turns is not None and row["role"] == "user" and _users(window) == turns:
            yield _conversation(view.agent_id, window)
            window = []
        window.append(row)
    if window:
        yield _conversation(view.agent_id, window)


def _users(rows: Sequence[dict[str, Any]]) -> int:
    return sum(row["role"] == "user" for row in rows)


def _us(time: Any) -> int:
    return time if isinstance(time, int) else round(time.timestamp() * 1_000_000)


def _conversation(agent_id: str, rows: Sequence[dict[str, Any]]) -> JsonLine:
    messages = [
        {"role": row["role"], "content": row["text"], **({"name": row["name"]} if row["name"] else {})} for row in rows
    ]
    return {"messages": messages, "agent": agent_id, "from_seq": rows[0]["seq"], "to_seq": rows[-1]["seq"]}


def models_saw(view: AgentView, span: TimeSpan, left_out: Counter[str]) -> Iterator[JsonLine]:
    """Yield each recorded request that was answered, with its reply as the last message.

    Requests that cannot be rendered to the recorded bytes are counted in `left_out` by reason. Requests for summaries
    are no conversation and are not written.
    """
    records = [r for r in view.reader.read(view.agent_id) if r.type == ModelReply.kind and span.holds(r.recorded_at)]
    left_out["erased"] += sum(is_erased(record.payload) for record in records)
    found = [(record, event_of(record)) for record in records if not is_erased(record.payload)]
    replies = [(record, event) for record, event in found if isinstance(event, ModelReply) and event.context_sha256]
    schemas = view.schemas()
    for first in range(0, len(replies), REQUESTS_AT_ONCE):
        some = replies[first : first + REQUESTS_AT_ONCE]
        wanted = [(view.agent_id, record.seq - 1, record.turn) for record, _ in some]
        for (record, event), rows in zip(some, view.projections.answers("context_window", wanted), strict=True):
            body = _request(record, rows, schemas)
            if body is None or sha256(body).hexdigest() != event.context_sha256:
                left_out["not the recorded bytes"] += 1
            else:
                yield _exchange(record, event, body)


def _request(record: Record, rows: Sequence[Any], schemas: dict[str, str]) -> bytes | None:
    """Render the request before a reply; None if its configuration or a schema was erased, or its renderer is gone."""
    if not is_configured(rows):
        return None
    context = context_of(record.agent_id, record.seq - 1, rows, record.turn)
    if context.config.renderer != RENDERER or any(one.sha256 not in schemas for one in context.config.functions):
        return None
    return render_request.request(context, schemas)


def _exchange(record: Record, event: ModelReply, body: bytes) -> JsonLine:
    request = json.loads(body)
    asked = request.get("messages") or [{"role": "user", "content": request.get("prompt", "")}]
    return {
        "messages": [*asked, _reply(event)],
        **({"tools": request["tools"]} if "tools" in request else {}),
        "model": request["model"],
        "agent": record.agent_id,
        "seq": record.seq,
        "request_sha256": event.context_sha256,
    }


def _reply(event: ModelReply) -> JsonLine:
    """Return a reply as a message: as the endpoint sent it, or rebuilt if that is no chat message."""
    try:
        message = msgspec.json.decode(event.raw)["choices"][0]["message"]
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        message = None
    if isinstance(message, dict) and message.get("role") == "assistant":
        return {key: message[key] for key in ("role", "content", "tool_calls") if message.get(key) is not None}
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
        for one in event.calls
    ]
    return {"role": "assistant", "content": event.text or "", **({"tool_calls": calls} if calls else {})}

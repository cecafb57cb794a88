"""The views of the fleet as a plain fold over records in Python: the reference for the SQL views."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everlog.events import CATALOGUE, Record, is_erased
from everlog.projections.price_sql import ListedPrice

Row = dict[str, Any]
Key = tuple[str, int]
Fork = tuple[str, int]
"""Parent and fork point."""
_INPUTS = ("user_message", "user_login", "heartbeat", "system_alert", "approval_decided")
_STOPS = {"model_failed": "failed", "turn_cancelled": "cancelled", "turn_abandoned": "abandoned",
          "budget_exceeded": "failed"}  # fmt: skip


class Told:
    """A record, its incarnation, and its payload."""

    def __init__(self, record: Record, life: int) -> None:
        self.record = record
        self.life = life
        self.erased = is_erased(record.payload)
        self.payload: Row = json.loads(record.payload) if record.type in CATALOGUE else {}
        self.key: Row = {"agent_id": record.agent_id, "life": life, "seq": record.seq}
        self.place: Row = {**self.key, "turn": record.turn, "step": record.step}

    @property
    def usage(self) -> Row:
        found: Row = self.payload.get("usage", {})
        return found


def told(records: Iterable[Record]) -> list[Told]:
    """Return records of any agents, each agent's in order, with the incarnation that each belongs to."""
    lives: dict[str, int] = defaultdict(lambda: 1)
    found = []
    for record in records:
        if record.type == "agent_created" and record.seq > 1:
            lives[record.agent_id] += 1
        found.append(Told(record, lives[record.agent_id]))
    return found


def fold(records: Sequence[Record]) -> dict[str, list[Row]]:
    """Return the rows of every view, by the name of the view."""
    every = told(records)
    living = [one for one in every if not one.erased]
    parents = {one.record.agent_id: _fork(one) for one in every if one.record.type == "agent_forked"}
    agents = _agents(every, parents)
    return {
        "records": [_record(one) for one in every],
        "agents": agents,
        "messages": [_message(one) for one in living if one.record.type in ("user_message", "message_sent")],
        "turns": _turns(every),
        "steps": [_step(one) for one in every if one.record.type == "model_reply" and one.record.turn > 0],
        "model_calls": [_model_call(one) for one in living if _is_call(one)],
        "function_calls": _function_calls(living),
        "memory_history": [_edit(one) for one in living if one.record.type in {"memory_edited", "block_removed"}],
        "pressure": _pressure(every, agents, parents),
        "summaries": [_summary(one) for one in living if one.record.type in ("summary", "summary_expanded")],
        "heartbeats": [_heartbeat(one) for one in living if one.record.type == "heartbeat"],
        "failures": _failures(living),
    }


def _record(one: Told) -> Row:
    r = one.record
    return {
        **one.place, "commit": r.commit, "event_id": r.event_id, "recorded_at": r.recorded_at, "said_at": r.said_at,
        "type": r.type, "cause": r.cause, "version": r.version, "text": r.text, "payload": r.payload,
        "erased": one.erased,
    }  # fmt: skip


def _fork(one: Told) -> Fork:
    return one.payload["parent"], one.payload["parent_seq"]


def whole(name: str, every: Sequence[Told], parents: Mapping[str, Fork]) -> list[Told]:
    """Return the stream of an agent from its beginning: a fork's has its parent's records up to the fork point, then
    its own.
    """
    own = [one for one in every if one.record.agent_id == name]
    if name not in parents:
        return own
    parent, cut = parents[name]
    return [one for one in whole(parent, every, parents) if one.record.seq <= cut] + own


def _living(stream: Sequence[Told]) -> list[Told]:
    """Return the records of the present incarnation: since the last creation, without erased content."""
    births = [number for number, one in enumerate(stream) if one.record.type == "agent_created"]
    return [one for one in stream[births[-1] if births else 0 :] if not one.erased]


def _agents(every: Sequence[Told], parents: Mapping[str, Fork]) -> list[Row]:
    rows: dict[Key, Row] = {}
    for one in every:
        r = one.record
        if r.agent_id.startswith("source:"):
            continue
        row = rows.setdefault(
            (r.agent_id, one.life),
            {"agent_id": r.agent_id, "name": r.agent_id, "life": one.life,
             "events": 0, "messages": 0, "head": 0, "turns": 0,
             "first_recorded_at": r.recorded_at, "last_recorded_at": r.recorded_at, "deleted": False,
             "parent": None, "parent_seq": None},
        )  # fmt: skip
        if one.life == 1 and r.agent_id in parents:
            row["parent"], row["parent_seq"] = parents[r.agent_id]
        row["events"] += 1
        row["messages"] += r.type in ("user_message", "message_sent") and not one.erased
        row["head"], row["turns"] = max(row["head"], r.seq), max(row["turns"], r.turn)
        row["first_recorded_at"] = min(row["first_recorded_at"], r.recorded_at)
        row["last_recorded_at"] = max(row["last_recorded_at"], r.recorded_at)
        row["deleted"] |= r.type == "agent_deleted"
    last = {agent_id: max(life for name, life in rows if name == agent_id) for agent_id, _ in rows}
    return [{**row, "current": row["life"] == last[row["agent_id"]]} for row in rows.values()]


def _message(one: Told) -> Row:
    r = one.record
    return {
        **one.place, "recorded_at": r.recorded_at, "said_at": r.recorded_at if r.said_at is None else r.said_at,
        "role": "user" if r.type == "user_message" else "assistant", "name": one.payload.get("name", ""),
        "text": r.text or "", "ref": one.payload.get("ref", ""), "imported": one.payload.get("imported", False),
    }  # fmt: skip


def _turns(every: Sequence[Told]) -> list[Row]:
    turns: dict[tuple[str, int, int], list[Told]] = defaultdict(list)
    for one in every:
        r = one.record
        if r.turn > 0 and r.type in (*_INPUTS, *_STOPS, "model_reply", "function_result"):
            turns[r.agent_id, one.life, r.turn].append(one)
    return [row for key, mine in turns.items() if (row := _turn(key, mine)) is not None]


def _turn(key: tuple[str, int, int], mine: Sequence[Told]) -> Row | None:
    inputs = [
        one for one in mine
        if one.record.type in _INPUTS and not one.erased and not one.payload.get("imported", False)
    ]  # fmt: skip
    opening = [one for one in inputs if one.record.step == 0]
    if not opening:
        return None
    replies = [one for one in mine if one.record.type == "model_reply"]
    calls = sum(len(one.payload.get("calls", [])) for one in replies)
    results = sum(one.record.type == "function_result" and not one.payload.get("approval") for one in mine)
    stops = [_STOPS[one.record.type] for one in mine if one.record.type in _STOPS]
    waits = inputs[-1].record.seq > max((one.record.seq for one in replies), default=0) or results < calls
    began, ended = (pick(one.record.recorded_at for one in mine) for pick in (min, max))
    return {
        "agent_id": key[0], "life": key[1], "turn": key[2], "opened_seq": opening[0].record.seq,
        "opened_by": opening[0].record.type, "started_at": began, "ended_at": ended, "duration_us": ended - began,
        "steps": len(replies), "calls": calls, "tokens": sum(one.usage.get("total", 0) for one in replies),
        "status": stops[-1] if stops else "open" if waits else "done",
    }  # fmt: skip


def _step(one: Told) -> Row:
    return {
        **one.place, "recorded_at": one.record.recorded_at, "monologue": one.record.text or "",
        "calls": len(one.payload.get("calls", [])), "tokens": one.usage.get("total", 0),
    }  # fmt: skip


def _is_call(one: Told) -> bool:
    kinds = ("model_reply", "reply_rejected", "model_failed", "model_switched", "summary", "derivation_replied")
    return one.record.type in kinds and "context_sha256" in one.payload


PRICES = [
    ListedPrice("a", "^a$", 2.0, 10.0, 0.5, "EUR", "somebody"),
    ListedPrice("", "^[bI]", 1.0, 3.0, 1.0, "EUR", "somebody"),
]


def cost(one: Told) -> float | None:
    """Return the cost of a call; None for a model without a price."""
    name = one.payload.get("model", "")
    price = PRICES[0] if name == "a" else PRICES[1] if name.startswith(("b", "I")) else None
    usage = {key: one.usage.get(key, 0) for key in ("prompt", "completion", "total", "cached")}
    asked = max(usage["total"] - usage["completion"], usage["prompt"])
    cached = min(usage["cached"], asked)
    if price is None:
        return None
    fresh = (asked - cached) * price.price_in
    return (fresh + cached * price.price_cached + usage["completion"] * price.price_out) / 1e6


def _model_call(one: Told) -> Row:
    kind, payload = one.record.type, one.payload
    purpose = payload.get("purpose", "reply") if kind in ("reply_rejected", "derivation_replied") else "reply"
    return {
        **one.place, "recorded_at": one.record.recorded_at, "purpose": "summary" if kind == "summary" else purpose,
        "outcome": "rejected" if payload.get("fault") and kind == "derivation_replied"
        else {"reply_rejected": "rejected", "model_failed": "failed", "model_switched": "failed"}.get(kind, "ok"),
        "failure": payload.get("failure", "") if kind in ("model_failed", "model_switched") else "",
        "model": payload.get("model", ""),
        "context_sha256": payload.get("context_sha256"), "context_bytes": payload.get("context_bytes"),
        "prompt_tokens": one.usage.get("prompt", 0), "completion_tokens": one.usage.get("completion", 0),
        "tokens": one.usage.get("total", 0), "cached_tokens": one.usage.get("cached", 0), "cost": cost(one),
        "latency_us": payload.get("latency_us", 0),
    }  # fmt: skip


def _function_calls(living: Sequence[Told]) -> list[Row]:
    results: dict[tuple[str, int, int, int, str], list[Told]] = defaultdict(list)
    for one in living:
        r = one.record
        if r.type == "function_result":
            results[r.agent_id, one.life, r.turn, r.step, one.payload["call_id"]].append(one)
    rows = []
    for one in living:
        r = one.record
        for call in one.payload.get("calls", []) if r.type == "model_reply" else []:
            for end in results.get((r.agent_id, one.life, r.turn, r.step, call["id"])) or [None]:
                rows.append(_function_call(one, call, end))
    return rows


def _function_call(one: Told, call: Row, end: Told | None) -> Row:
    at = one.record.recorded_at
    return {
        **one.place, "call_id": call["id"], "name": call["name"], "arguments": call["arguments"],
        "outcome": "open" if end is None else _outcome(end), "result_seq": end and end.record.seq,
        "result": end and end.record.text, "started_at": at, "ended_at": end and end.record.recorded_at,
        "duration_us": None if end is None else end.record.recorded_at - at,
    }  # fmt: skip


def _outcome(end: Told) -> str:
    if end.payload.get("unknown", False):
        return "unknown"
    return "ok" if end.payload.get("ok", True) else "failed"


def _edit(one: Told) -> Row:
    r = one.record
    return {
        **one.key, "label": one.payload["label"], "turn": r.turn, "operation": one.payload.get("operation", "ended"),
        "value": r.text or "", "limit": one.payload.get("limit"), "event_id": r.event_id, "cause": r.cause,
        "recorded_at": r.recorded_at,
    }  # fmt: skip


def _pressure(every: Sequence[Told], agents: Sequence[Row], parents: Mapping[str, Fork]) -> list[Row]:
    rows = []
    for agent in (agent for agent in agents if agent["current"]):
        mine = _living(whole(agent["agent_id"], every, parents))
        hidden = {turn for one in mine if one.record.type == "turns_hidden" for turn in one.payload["turns"]}
        replies = [one for one in mine if one.record.type == "model_reply" and one.record.turn > 0]
        configs = [one for one in mine if one.record.type == "agent_configured"]
        sums = [one.record.seq for one in mine if one.record.type in ("summary", "summary_expanded")]
        warned = [
            one.record.seq for one in mine
            if one.record.type == "system_alert" and one.payload.get("source") == "memory_pressure"
            and one.record.turn not in hidden
        ]  # fmt: skip
        tokens = replies[-1].usage.get("total", 0) if replies else 0
        window = configs[-1].payload["window"] if configs else None
        rows.append({
            "agent_id": agent["agent_id"], "life": agent["life"], "tokens": tokens, "window": window,
            "used": tokens / window if window else None,
            "fraction": configs[-1].payload.get("pressure_fraction", 0.75) if configs else 0.75,
            "warned": max(warned, default=0) > max(sums, default=0), "summary_seq": max(sums, default=None),
            "recorded_at": replies[-1].record.recorded_at if replies else None, "deleted": agent["deleted"],
        })  # fmt: skip
    return rows


def _summary(one: Told) -> Row:
    payload, expanded = one.payload, one.record.type == "summary_expanded"
    counts = {name: payload.get(name, 0) for name in ("hidden", "total", "summarized")}
    return {
        **one.key, "turn": one.record.turn, "recorded_at": one.record.recorded_at, "expanded": expanded,
        "text": one.record.text or "", "method": None if expanded else payload.get("method", "model"),
        "covers_from": payload.get("covers_from"), "covers_to": payload.get("covers_to"),
        "kept_from": payload["kept_from"], **counts,
    }  # fmt: skip


def _heartbeat(one: Told) -> Row:
    return {
        **one.place, "recorded_at": one.record.recorded_at, "reason": one.payload["reason"],
        "timer": one.payload.get("timer", ""), "late": one.payload.get("late", False), "text": one.record.text or "",
    }  # fmt: skip


def _failures(living: Sequence[Told]) -> list[Row]:
    """Return the failures, without those of a turn that a fork closed because it was open at the fork point."""
    closed = {
        (one.place["agent_id"], one.place["life"], one.place["turn"])
        for one in living
        if one.record.type == "turn_abandoned" and one.payload.get("reason") == "forked"
    }
    found = [row for one in living if (row := _failure(one)) is not None]
    return [row for row in found if (row["agent_id"], row["life"], row["turn"]) not in closed]


def _failure(one: Told) -> Row | None:
    kind, payload = one.record.type, one.payload
    what, word = {
        "function_result": ("function", _outcome(one)),
        "model_failed": ("model", payload.get("failure")),
        "model_switched": ("model", payload.get("failure")),
        "reply_rejected": ("reply", payload.get("purpose", "reply")),
        "turn_abandoned": ("turn", payload.get("reason")),
        "budget_exceeded": ("budget", payload.get("budget")),
    }.get(kind, ("", ""))
    if not what or (kind == "function_result" and word == "ok"):
        return None
    return {
        **one.place, "recorded_at": one.record.recorded_at, "what": what, "kind": word,
        "name": payload["name"] if kind == "function_result" else "", "text": one.record.text or "",
    }  # fmt: skip

"""A slow second definition of the context, in plain Python: what `context_window.sql` must agree with.

It reads the rows of `context_records`, in the order of the log. Used by `test_context_window.py`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
MANY = 2**63 - 2
CHANGES = ("context_trimmed", "turns_hidden", "reply_rethought", "model_switched", "reply_rejected")


def parts(rows: Sequence[Row], turn: int = MANY) -> list[tuple[str, int, str | None, int | None]]:
    """Return what a call in `turn` sees, in order: part, seq, text and number of characters shown (None: all)."""
    slots = {row["slot"]: row for row in rows if row["slot"] is not None}
    heeded = [row for row in rows if row["shown"] and row["type"] in CHANGES and not erased(row)]
    chars, words, hidden = applied(heeded)
    blocks = {slot: row for slot, row in slots.items() if slot.startswith("block:")}
    named = sorted(blocks, key=lambda slot: ({"block:persona": 0, "block:human": 1}.get(slot, 2), slot))
    found = [("config", slots["config"])] if "config" in slots else []
    found += [("block", blocks[slot]) for slot in named if blocks[slot]["type"] == "memory_edited"]
    found += [("summary", slots["summary"])] if "summary" in slots else []
    seen = [
        row
        for row in rows
        if row["shown"] and row not in heeded and row["turn"] <= turn and (row["turn"] not in hidden or imported(row))
    ]
    switches = [row for row in heeded if row["type"] == "model_switched" and row["turn"] <= turn]
    refused = [row for row in heeded if row["type"] == "reply_rejected" and row["turn"] <= turn]
    refused = [row for row in refused if row["turn"] not in hidden]
    kinds = {row["seq"]: kind for kind, some in (("switch", switches), ("refused", refused)) for row in some}
    ordered = sorted([*seen, *switches, *refused], key=lambda row: (row["turn"], row["seq"]))
    found += [(kinds.get(row["seq"], "message"), row) for row in ordered]
    return [(kind, r["seq"], words.get(r["seq"], r["text"]), chars.get(key_of(kind, r))) for kind, r in found]


def applied(heeded: Sequence[Row]) -> tuple[dict[int | str, int], dict[int, str], set[int]]:
    """Return the characters shown by seq or slot, the thoughts in other words by seq, and the hidden turns."""
    chars: dict[int | str, int] = {}
    words: dict[int, str] = {}
    hidden: set[int] = set()
    for row in heeded:
        payload = json.loads(row["payload"])
        if row["type"] == "context_trimmed":
            chars[payload.get("target_seq") or f"block:{payload['label']}"] = payload["shown_chars"]
        elif row["type"] == "reply_rethought" and row["text"]:
            words[payload["target_seq"]] = row["text"]
        elif row["type"] == "turns_hidden":
            hidden.update(payload["turns"])
    return chars, words, hidden


def warned(rows: Sequence[Row], turn: int = MANY) -> bool:
    """Return True if a warning in view is newer than the summary."""
    since = max((row["seq"] for row in rows if row["slot"] == "summary"), default=0)
    seqs = {seq for part, seq, _, _ in parts(rows, turn) if part == "message"}
    return any(row["slot"] == "warning" and row["seq"] in seqs and row["seq"] > since for row in rows)


def header(rows: Sequence[Row]) -> tuple[int, int, int] | None:
    """Return the numbers of messages and of archival memories, and the time, that the memory header shows."""
    counted = [row for row in rows if row["recall"] is not None]
    return next(((row["recall"], row["archival"], row["recorded_at"]) for row in reversed(counted)), None)


def key_of(kind: str, row: Row) -> int | str:
    """Return the key of a block or record among the changes."""
    return str(row["slot"]) if kind == "block" else int(row["seq"])


def erased(row: Row) -> bool:
    """Return True for a tombstone."""
    return str(row["payload"]).startswith('{"erased":true')


def imported(row: Row) -> bool:
    """Return True for a message of an imported conversation."""
    return row["type"] in ("user_message", "message_sent") and '"imported":true' in row["payload"]

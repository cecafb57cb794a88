"""Streams of the Letta surface as bytes: cut them anywhere, read what is whole, and put the parts together."""

import json
from collections.abc import Iterable, Sequence
from typing import Any


def whole_events(body: bytes) -> list[dict[str, Any]]:
    """Return the messages in the whole events of a body that may be cut off, without signs of life."""
    blocks = body.split(b"\n\n")[:-1]
    lines = [line for block in blocks for line in block.split(b"\n") if line.startswith(b"data: {")]
    found = [json.loads(line[len(b"data: ") :]) for line in lines]
    return [event for event in found if event["message_type"] != "ping"]


def last_cursor(events: Iterable[dict[str, Any]]) -> int:
    """Return the position after the last of some events; 0: the beginning."""
    return max((event["seq_id"] for event in events if "seq_id" in event), default=0)


def put_together(events: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return, by otid, what was sent of each message: of one that can come in parts its text, of others the whole."""
    found: dict[str, str] = {}
    for event in events:
        key = event.get("otid") or event["message_type"]
        text = event.get("content") or event.get("reasoning")
        if text is None:
            assert key not in found, f"{key} came twice"
            same = {name: value for name, value in event.items() if name not in {"seq_id", "date"}}
            text = json.dumps(same, sort_keys=True)
        found[key] = found.get(key, "") + text
    return found

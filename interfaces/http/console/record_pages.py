"""Show the records of an agent, page by page, and one record with its cause and its effects."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import CATALOGUE, Record, is_erased
from everlog.interfaces.http.console.agent_frame import AgentFrame, MomentParameters, agent_page, seq_in
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.replay_console.word_origin import TRACED

PAGE_RECORDS = 100
NEAR = 1000
"""Records on each side of one among which its cause and its effects are looked for."""
TEXT_CHARS = 300
PAYLOAD_CHARS = 100_000
_WORD = re.compile(r"[a-z_]{1,40}")


class RecordParameters(MomentParameters, frozen=True):
    """Parameters of the list of records."""

    before: int = 0
    """Seq before which the page ends; 0: it ends at the moment."""
    type: str = ""
    """Type of event; empty: all."""


async def show_records(call: HttpCall) -> Response:
    """List records up to a moment, the newest at the end."""
    wanted = call.query.type
    if wanted and not _WORD.fullmatch(wanted):
        raise Refusal(400, "bad-input", f"There is no type of event {wanted[:80]!r}.")

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        last = min(view.seq, call.query.before - 1) if call.query.before > 0 else view.seq
        first = max(1, last - PAGE_RECORDS + 1)
        records = list(view.reader.read(view.agent_id, first, last)) if last > 0 else []
        rows = [(record, _summary(record)) for record in records if not wanted or record.type == wanted]
        return {
            "rows": rows, "first": first, "last": last, "type": wanted, "types": sorted(CATALOGUE),
            "earlier": first if first > 1 else 0,
            "later": min(frame.seq + 1, last + PAGE_RECORDS + 1) if last < frame.seq else 0,
        }  # fmt: skip

    return await agent_page(call, "records", "records.html", read)


async def show_record(call: HttpCall) -> Response:
    """Show one record: its envelope, its payload as text, the record that caused it, and those that it caused."""
    given = call.params["seq"]
    seq = seq_in(given)

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        if not 1 <= seq <= frame.head:
            raise not_found(f"record {given[:20]!r} of the agent {frame.agent!r}")
        near = list(view.reader.read(view.agent_id, max(1, seq - NEAR), min(frame.head, seq + NEAR)))
        record = next(one for one in near if one.seq == seq)
        payload = msgspec.json.format(record.payload, indent=2)
        return {
            "record": record, "traced": record.type in TRACED,
            "payload": payload[:PAYLOAD_CHARS], "more": max(0, len(payload) - PAYLOAD_CHARS),
            "erased": is_erased(record.payload), "cause": next((o for o in near if o.event_id == record.cause), None),
            "effects": [one for one in near if one.cause == record.event_id],
            "chain": view.reader.chain(view.agent_id, seq).hex(),
        }  # fmt: skip

    return await agent_page(call, "records", "record.html", read)


def _summary(record: Record) -> str:
    """Return the words of a record, or else its payload, on one line."""
    if is_erased(record.payload):
        return ""
    text = " ".join((record.text or record.payload).split())
    return text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]}…"

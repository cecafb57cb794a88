"""Read an agent at the moment of a page's address, and return what all pages of the agent show.

Every page shows one moment and names it. A link for others says the seq, and the first digits of the chain value there:
a reader whose store has another past under the same name is told so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import AgentCreated, AgentDeleted, ApprovalRequested, Record
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native.memory import read_view

CHAIN_DIGITS = 8
"""Hexadecimal digits of the chain value in a link."""
TURN_RECORDS_MAX = 1000
"""Records before the moment among which the beginning of its turn is looked for."""
TABS = (
    ("", "Overview"), ("chat", "Chat"), ("memory", "Memory"), ("memories", "Memories"), ("archive", "Archive"),
    ("context", "Context"), ("records", "Records"), ("search", "Search"), ("settings", "Settings"),
    ("fork", "Fork and rerun"),
)  # fmt: skip


class MomentParameters(msgspec.Struct, frozen=True):
    """Parameters of a page of an agent."""

    as_of: str | None = None
    """Seq, or time with a zone; left out: now."""
    chain: str = ""
    """First digits of the chain value that the link's author saw."""


class WindowFill(msgspec.Struct, frozen=True, kw_only=True):
    """Fill level of the context window."""

    tokens: int
    window: int
    fraction: float
    warned: bool

    @property
    def used(self) -> float:
        """Part of the window, from 0 to 1; 0 if the window is not known."""
        return min(1.0, self.tokens / self.window) if self.window else 0.0


class AgentFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Head of every page of an agent: who, when, and where else to look."""

    agent: str
    path: str
    seq: int
    head: int
    at: int
    """Time of the record at the moment, microseconds UTC."""
    turn: int
    turn_began: int
    """First seq of the turn at the moment."""
    type: str
    chain: str
    other_past: bool
    """True: the link was made for another past of that name."""
    is_past: bool
    """True: the address says the moment. Else the page shows now."""
    fill: WindowFill
    model: str
    parent: str
    parent_seq: int
    deleted: bool
    waiting: int
    """Number of calls that wait for a person; 0 on a page of the past."""
    near: Sequence[Record]
    """Records up to the moment, at most `TURN_RECORDS_MAX`, oldest first: of a long log each reading takes its time."""

    def link(self, tab: str = "", seq: int | None = None, **more: object) -> str:
        """Return the address of a page of the agent, at the same moment or at `seq`."""
        moment = seq if seq is not None else self.seq if self.is_past else None
        values = {**({} if moment is None else {"as_of": moment}), **more}
        return f"{self.path}{f'/{tab}' if tab else ''}{f'?{urlencode(values)}' if values else ''}"

    @property
    def permalink(self) -> str:
        """Address of the moment for others, without the page."""
        return f"as_of={self.seq}&chain={self.chain}"


PageReader = Callable[[AgentView, AgentFrame], Mapping[str, Any]]
"""Function that returns the values of a page, in a thread, from a view of the agent."""


async def agent_page(call: HttpCall, tab: str, template: str, read: PageReader) -> Response:
    """Return a page of the agent of the path. `tab`: the page's name in `TABS`."""
    return page_of_agent(call, tab, template, await framed(call, read))


def seq_in(text: str) -> int:
    """Return the seq that a part of a path is; 0 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


async def framed(call: HttpCall, read: PageReader) -> dict[str, Any]:
    """Return the values of a page of the agent of the path, with the frame. The name in the path is decoded."""
    call.params = {**call.params, "agent": name_in(call.params["agent"])}

    def values(view: AgentView) -> dict[str, Any]:
        frame = frame_of(call, view)
        return {"frame": frame, **read(view, frame)}

    found: dict[str, Any] = await read_view(call, values)
    return found


def page_of_agent(
    call: HttpCall, tab: str, template: str, values: Mapping[str, Any], *, status: int = 200
) -> Response:  # fmt: skip
    """Return a page from values that have a frame."""
    now = call.service.ports.clock.now()
    common = {"tab": tab, "here": tab, "tabs": TABS, "now": now, "role": call.caller.role}
    return page(call.request, template, {**common, **values}, status=status)


def frame_of(call: HttpCall, view: AgentView) -> AgentFrame:
    """Return the head of a page. Reads the records of the turn at the moment."""
    records = list(view.reader.read(view.agent_id, max(1, view.seq - TURN_RECORDS_MAX), view.seq))
    here = records[-1]
    configured = next((row for row in reversed(view.rows("configurations")) if row["living"]), None)
    pressure = next(iter(view.rows("memory_pressure")), {})
    parent = call.service.system.store.parent_of(view.agent_id)
    name = call.shown(view.agent_id)
    chain = view.reader.chain(view.agent_id, view.seq).hex()[:CHAIN_DIGITS]
    return AgentFrame(
        agent=name,
        path=f"/console/a/{written(name)}",
        seq=view.seq,
        head=view.head.seq,
        at=here.recorded_at,
        turn=here.turn,
        turn_began=_beginning(records),
        type=here.type,
        chain=chain,
        other_past=bool(call.query.chain) and not chain.startswith(call.query.chain[:CHAIN_DIGITS].lower()),
        is_past=call.query.as_of is not None,
        fill=WindowFill(
            tokens=pressure.get("tokens") or 0, window=int(pressure.get("window") or 0),
            fraction=pressure.get("fraction") or 0.75, warned=bool(pressure.get("warned")),
        ),
        model="" if configured is None else msgspec.json.decode(configured["payload"]).get("model", ""),
        parent=call.shown(parent[0]) if parent and call.names.owns(parent[0]) else "",
        parent_seq=parent[1] if parent else 0,
        deleted=here.type == AgentDeleted.kind,
        waiting=_waiting(view) if view.seq == view.head.seq else 0,
        near=records,
    )  # fmt: skip


def _beginning(records: Sequence[Record]) -> int:
    """Return the first seq of the turn of the last record. An agent that was created again has a first turn again."""
    began = records[-1]
    for record in reversed(records):
        if record.type == AgentCreated.kind:
            break
        if record.turn == began.turn:
            began = record
    return began.seq


def _waiting(view: AgentView) -> int:
    """Return the number of calls that wait for a person. Each is among the records from which an agent is activated."""
    asked = [row["seq"] for row in view.rows("waking") if row["type"] == ApprovalRequested.kind]
    rows = view.rows("approvals", since=min(asked)) if asked else ()
    return sum(row["decision"] == "waiting" for row in rows)

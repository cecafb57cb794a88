"""Show the calls that wait for a person, and decide them with a form.

The first decision holds. One that comes later answers 409 and says what was decided: the agent's host decides that, not
this page.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.reports.waiting_calls import ApprovalRow, list_approvals
from everlog.events import BadInput
from everlog.events.times import since_epoch
from everlog.interfaces.http.console.form_body import read_form
from everlog.interfaces.http.console.page_response import page, redirect
from everlog.interfaces.http.console.talk_entries import indented
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import BODY_BYTES_MAX, HttpCall
from everlog.interfaces.http.native.approvals import decide
from everlog.interfaces.wire.approvals import ApprovalQuery, DecisionBody

CALLS_SHOWN = 100


class ShownCall(msgspec.Struct, frozen=True, kw_only=True):
    """Call that waits, or waited, for a person."""

    agent: str
    path: str
    seq: int
    function: str
    arguments: str
    """JSON text, one argument a line."""
    question: str
    """Empty: it waits for an approval."""
    decision: str
    asked_at: int
    """Microseconds UTC, as all times of the page."""
    expires_at: int
    """0: never."""
    decided_at: int
    """0: it still waits, or was withdrawn."""
    decided_by: str
    reason: str
    edited: str


async def show_approvals(call: HttpCall) -> Response:
    """Show the calls that wait, the oldest first."""
    query: ApprovalQuery = call.query
    return await _list(call, query)


async def save_decision(call: HttpCall) -> Response:
    """Decide the call of a form, and go back to the page that it came from."""
    fields = await read_form(call, BODY_BYTES_MAX)
    agent, text = name_in(call.params["agent"]), fields.get("arguments", "").strip()
    approves = fields.get("decision") == "approve"  # what the other fields say is about an approval alone
    body = DecisionBody(
        decision="approve" if approves else "refuse", reason=fields.get("reason", "").strip(),
        always=approves and fields.get("always") == "yes", wait=False,
    )  # fmt: skip
    native = HttpCall(call.service, call.caller, call.request, params={**call.params, "agent": agent}, body=body)
    native.opened(native.stream)  # an agent of others does not exist here, whatever the form says
    if fields.get("decision") not in ("approve", "refuse"):
        raise Refusal(400, "bad-input", "The form does not say if the call is approved or refused.")
    try:
        if approves and text:
            native.body = msgspec.structs.replace(body, arguments=_object(text))
        await decide(native)
    except BadInput as error:
        given = (call.params["call"], text, str(error))
        return await _list(call, ApprovalQuery(agent=agent), given, status=400)
    chat = fields.get("back") == "chat"
    return redirect(f"/console/a/{written(agent)}/chat" if chat else "/console/approvals")


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise BadInput(f"The arguments are no JSON object ({error}). Nothing was decided.") from error


async def _list(
    call: HttpCall, query: ApprovalQuery, given: Sequence[str] = ("", "", ""), *, status: int = 200
) -> Response:
    """Return the page. `given`: call, arguments and fault of a form that could not be carried out."""
    listed = partial(list_approvals, decided=query.decided)
    rows = await over_fleet(call, lambda views, _position, _run: listed(views), agent=query.agent)
    calls = [_shown(row) for row in rows]
    values: Mapping[str, Any] = {
        "query": query, "calls": calls[:CALLS_SHOWN], "left": max(0, len(calls) - CALLS_SHOWN), "given": given[1],
        "given_call": given[0], "fault": given[2], "now": call.service.ports.clock.now(), "role": call.caller.role,
    }  # fmt: skip
    return page(call.request, "approvals.html", values, status=status)


def _shown(row: ApprovalRow) -> ShownCall:
    return ShownCall(
        agent=row["agent_id"], path=f"/console/a/{written(row['agent_id'])}", seq=row["seq"], function=row["name"],
        arguments=indented(row["arguments"]), question=row["question"] or "", decision=row["decision"],
        asked_at=since_epoch(row["recorded_at"]), expires_at=row["expires_us"] or 0,
        decided_at=since_epoch(row["ended_at"]) if row["ended_at"] else 0,
        decided_by=row["decided_by"] or "", reason=row["reason"] or "", edited=indented(row["edited"] or ""),
    )  # fmt: skip

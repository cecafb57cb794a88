"""Calls that wait for a person's approval: list them, and decide them."""

from functools import partial
from typing import Any

from everlog.actors.reports.waiting_calls import list_approvals
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.native.runs import answer_run, preview_of
from everlog.interfaces.wire.approvals import ApprovalPage, ApprovalQuery, DecisionBody, shape_of

SEQ_DIGITS_MAX = 18


async def show_approvals(call: HttpCall) -> ApprovalPage:
    """List the calls that wait for an approval, of all agents or of one."""
    query: ApprovalQuery = call.query
    if query.agent:  # a wrong name is an error, and no empty list
        store = call.service.system.store
        await call.service.ports.aside(store.reader, store.stream_of(call.names.inner(query.agent)))
    listed = partial(list_approvals, decided=query.decided)
    rows = await over_fleet(call, lambda views, _position, _run: listed(views), agent=query.agent)
    return ApprovalPage(approvals=[shape_of(row, row["agent_id"]) for row in rows])


async def decide(call: HttpCall) -> Any:
    """Approve or refuse a call that waits. The answer is the run that follows: the call, and what the agent says.

    The first decision holds; a second one is refused with 409. A repeat of a request with the same Idempotency-Key
    answers what the first one did.
    """
    body: DecisionBody = call.body
    text = call.params["call"]
    if not (text.isascii() and text.isdecimal() and len(text) <= SEQ_DIGITS_MAX):
        raise not_found(f"call {text[:80]!r} of the agent {call.params['agent']!r}")
    if body.always and call.caller.role != "admin":
        raise Refusal(
            403, "forbidden",
            f"The key has the role {call.caller.role!r}, and `always` changes the agent's settings, which needs "
            "'admin'. Nothing was decided.",
        )  # fmt: skip
    handle, preview = await call.agent(), preview_of(call, body)
    if body.decision == "refuse":
        if body.arguments is not None or body.always:
            raise Refusal(
                400, "bad-input", "A call that is refused has neither `arguments` nor `always`. Nothing was decided."
            )
        run = handle.refuse(int(text), body.reason, preview=preview)
    else:
        run = handle.approve(
            int(text), arguments=body.arguments, reason=body.reason, always=body.always, preview=preview
        )
    return await answer_run(call, run, body)

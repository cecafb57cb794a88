"""Fork an agent at the moment of a page, rerun its past from there with changes, and verify it, with forms.

A rerun and a verification are jobs: the browser goes to the page of the job, which follows its progress.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import EverlogError
from everlog.interfaces.http.console.agent_frame import AgentFrame, agent_page, framed, page_of_agent, seq_in
from everlog.interfaces.http.console.form_body import read_form
from everlog.interfaces.http.console.page_response import redirect
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import BODY_BYTES_MAX, HttpCall
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.native import agents, jobs
from everlog.interfaces.wire.agents import ForkBody
from everlog.interfaces.wire.jobs import RerunBody, VerifyBody

TAB, TEMPLATE = "fork", "fork.html"


async def show_forms(call: HttpCall) -> Response:
    """Show the forms for what can be done from the moment of the page."""
    return await agent_page(call, TAB, TEMPLATE, _no_values)


async def save_fork(call: HttpCall) -> Response:
    """Make a fork that continues after the moment of a form, and go to it."""
    fields, native = await read_form(call), _native(call)
    seq = seq_in(fields.get("at", ""))
    native.body = ForkBody(name=fields.get("name", "").strip(), at=seq or None)
    try:
        made = await agents.fork(native)
    except (EverlogError, Refusal) as error:
        return await _again(call, "fork", fields, error)
    return redirect(f"/console/a/{written(made.agent)}/chat")


async def save_rerun(call: HttpCall) -> Response:
    """Begin the rerun of a form, and go to the page of its job."""
    fields, native = await read_form(call, BODY_BYTES_MAX), _native(call)
    try:
        native.body = _rerun_of(fields)
        begun = await jobs.rerun_agent(native)
    except (EverlogError, Refusal) as error:
        return await _again(call, "rerun", fields, error)
    return _to_job(begun)


async def save_verify(call: HttpCall) -> Response:
    """Begin the verification of a form, and go to the page of its job."""
    fields, native = await read_form(call), _native(call)
    try:
        native.body = VerifyBody(sample=_whole(fields, "sample", "The number of calls"))
        begun = await jobs.verify_agent(native)
    except (EverlogError, Refusal) as error:
        return await _again(call, "verify", fields, error)
    return _to_job(begun)


def _no_values(_view: AgentView, _frame: AgentFrame) -> Mapping[str, Any]:
    return {"given": {}, "fault": "", "which": ""}


def _native(call: HttpCall) -> HttpCall:
    """Return the call with the name of the agent as it is, as the native API has it."""
    agent = name_in(call.params["agent"])
    return HttpCall(call.service, call.caller, call.request, params={**call.params, "agent": agent})


def _rerun_of(fields: Mapping[str, str]) -> RerunBody:
    """Return what the form of a rerun asks for. Raises Refusal."""
    settings: dict[str, Any] = {}
    if fields.get("model", "").strip():
        settings["model"] = fields["model"].strip()
    if fields.get("system", "").strip():
        settings["system"] = fields["system"]
    if window := _whole(fields, "window", "The context window"):
        settings["window"] = window
    return RerunBody(
        fork=fields.get("name", "").strip(), at=seq_in(fields.get("at", "")) or 1, settings=settings,
        turns=_whole(fields, "turns", "The number of turns"), recorded=fields.get("recorded") == "yes",
    )  # fmt: skip


def _whole(fields: Mapping[str, str], name: str, label: str) -> int | None:
    """Return a field as a number of at least 1; None if it is empty. Raises Refusal."""
    text = fields.get(name, "").strip()
    if not text:
        return None
    if not seq_in(text):
        raise Refusal(400, "bad-input", f"{label} is a whole number from 1, not {text[:80]!r}. Nothing was begun.")
    return int(text)


def _to_job(begun: Response) -> Response:
    job = msgspec.json.decode(bytes(begun.body))["job"]
    return redirect(f"/console/jobs/{quote(job)}")


async def _again(call: HttpCall, which: str, fields: Mapping[str, str], error: EverlogError | Refusal) -> Response:
    """Return the page with the form as it was sent, and the reason for which nothing was done. The moment stays."""
    if seq := seq_in(fields.get("at", "")):
        call.query = msgspec.structs.replace(call.query, as_of=str(seq))
    values = await framed(call, _no_values)
    problem = error.problem if isinstance(error, Refusal) else problem_for(error, call.names)
    shown = {**values, "given": fields, "fault": problem.message, "which": which}
    return page_of_agent(call, TAB, TEMPLATE, shown, status=problem.status)

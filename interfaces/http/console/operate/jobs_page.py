"""Show the jobs of a server: how far each is, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from everlog.events.times import since_epoch
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.console.talk_entries import indented
from everlog.interfaces.http.console.tilde_names import written
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native import jobs
from everlog.interfaces.wire.jobs import JobShape, JobsQuery

TURNS_SHOWN = 100
MISMATCHES_SHOWN = 50
TITLES = {"verify": "Verification", "rerun": "Rerun", "erasure": "Erasure"}


class ShownJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job for a page."""

    id: str
    title: str
    agent: str
    path: str
    """Address of the agent; empty for a source or a shared block."""
    state: str
    started: int
    """Microseconds UTC, as `beat`."""
    beat: int
    done: int
    total: int
    """0: not known."""
    fault: str


async def show_jobs(call: HttpCall) -> Response:
    """List the jobs, the newest first."""
    call.query = JobsQuery()
    found = (await jobs.list_jobs(call)).jobs
    running = any(one.state == "running" for one in found)
    values = {"jobs": [_shown(one) for one in found], "running": running, "now": call.service.ports.clock.now()}
    return page(call.request, "jobs.html", values)


async def show_job(call: HttpCall) -> Response:
    """Show one job."""
    job = await jobs.show_job(call)
    result = job.result or {}
    values: dict[str, Any] = {
        "job": _shown(job), "kind": job.kind, "now": call.service.ports.clock.now(),
        "verdict": _verdict(result) if job.kind == "verify" and result else None,
        "rerun": _rerun(result) if job.kind == "rerun" and result else None,
        "raw": indented(msgspec.json.encode(result).decode()) if result else "",
    }  # fmt: skip
    return page(call.request, "job.html", values)


def _shown(job: JobShape) -> ShownJob:
    about_agent = job.kind != "erasure"
    return ShownJob(
        id=job.job, title=TITLES[job.kind], agent=job.agent,
        path=f"/console/a/{written(job.agent)}" if about_agent else "", state=job.state,
        started=since_epoch(job.started), beat=since_epoch(job.beat), done=job.progress.done, total=job.progress.total,
        fault=job.problem.message if job.problem else "",
    )  # fmt: skip


def _verdict(result: Mapping[str, Any]) -> dict[str, Any]:
    calls = result["calls"]
    unchecked = calls["erased"] + calls["renderer_gone"] + calls["reader_gone"] + calls["missing_function"]
    found = result["mismatches"]
    return {
        "fine": not result["faults"] and not calls["mismatch"], "calls": calls, "unchecked": unchecked,
        "faults": result["faults"], "notes": result["notes"], "mismatches": found[:MISMATCHES_SHOWN],
        "left": max(0, len(found) - MISMATCHES_SHOWN),
    }  # fmt: skip


def _rerun(result: Mapping[str, Any]) -> dict[str, Any]:
    turns: Sequence[Mapping[str, Any]] = result["turns"]
    sides = {"a": result["agent"], "b": result["fork"]}
    return {
        "fork": result["fork"], "fork_path": f"/console/a/{written(result['fork'])}",
        "path": f"/console/a/{written(result['agent'])}", "cut": result["parent_seq"], "count": len(turns),
        "turns": turns[:TURNS_SHOWN], "differ": sum(bool(one["differs"]) for one in turns),
        "totals": result["totals"], "error": result["error"], "compare": f"/console/compare?{urlencode(sides)}",
        "first": result["first_difference"], "diverged": result["diverged"],
    }  # fmt: skip

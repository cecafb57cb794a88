"""Jobs: verify, rerun and erase, which continue after their request was answered, and how far they are."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.selection import Selection
from everlog.actors.replay import rebuild_check
from everlog.actors.rerun.rerun import RerunOptions
from everlog.interfaces.http.core.jobs import JobFile, JobFolder, JobWork, shape_of_job, start_job
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, encode, not_found
from everlog.interfaces.http.native.agents import settings_in
from everlog.interfaces.http.native.transfer import bare, owns_stream, shown_stream
from everlog.interfaces.manage import erasure_pages
from everlog.interfaces.show import verify_command
from everlog.interfaces.talk import rerun_command
from everlog.interfaces.wire.jobs import (
    CompareQuery,
    CompareShape,
    JobKind,
    JobList,
    JobShape,
    JobsQuery,
    RerunBody,
    VerifyBody,
)
from everlog.interfaces.wire.transfer import EraseBody, ErasurePlanShape
from everlog.store import stream_of, stream_of_block


async def verify_agent(call: HttpCall) -> Any:
    """Replay the model calls of an agent against its log, as a job."""
    body: VerifyBody = call.body
    stream, shown = call.stream, call.shown(call.stream)
    system, ports = call.service.system, call.service.ports
    await _check_exists(call, stream)

    def verified() -> dict[str, Any]:
        reading = LocalSystem(system.store, ports=ports)
        with closing(reading.view(stream)) as view:
            report = rebuild_check.verify(view, reading.tools, body.sample, body.seed)
            deleted = bool(view.rows("standing")[0]["deleted"])
        return {**verify_command.proof_shape(report, whole=True), "agent": shown, "deleted": deleted}

    async def work(_: Callable[[int, int], None]) -> Mapping[str, Any]:
        result: dict[str, Any] = await ports.aside(verified)
        return result

    return await _begun(call, "verify", shown, work)


async def rerun_agent(call: HttpCall) -> Any:
    """Repeat inputs of an agent's past in a fork, with changes, as a job. The result compares the two turn by turn."""
    body: RerunBody = call.body
    stream, names = call.stream, call.names
    await _check_exists(call, stream)
    at = body.at if isinstance(body.at, int) else moment_of(body.at)
    assert isinstance(at, int | datetime), "the body has it"
    what = RerunOptions(
        agent_id=stream, from_seq=at, fork=names.inner(body.fork), settings=settings_in(call, body.settings),
        turns=body.turns, recorded=body.recorded, live_tools=body.live_tools,
    )  # fmt: skip

    async def work(moved: Callable[[int, int], None]) -> Mapping[str, Any]:
        turns = 0

        def notify(_: object) -> None:
            nonlocal turns
            turns += 1
            moved(turns, body.turns or 0)

        done = await call.service.system.rerun(what, notify)
        return {**rerun_command.shape(done, recorded=body.recorded), **_names(call, stream, done.comparison.fork)}

    return await _begun(call, "rerun", call.shown(stream), work)


async def compare_fork(call: HttpCall) -> CompareShape:
    """Compare an agent with one of its forks, turn by turn from the fork point on."""
    query: CompareQuery = call.query
    store = call.service.system.store
    stream, fork = call.stream, store.stream_of(call.names.inner(query.fork))
    compared = await call.service.system.compare(stream, fork)
    names = _names(call, stream, fork)
    return CompareShape(**names, comparison={**rerun_command.comparison_shape(compared), **names})


async def plan_agent_erasure(call: HttpCall) -> ErasurePlanShape:
    """Return what an erasure would take, and which other records say the same. Nothing is changed."""
    return _plan_shape(call, await _plan(call, call.stream))


async def erase_agent_records(call: HttpCall) -> Any:
    """Erase the content of records of an agent in every file of the store, as a job. This cannot be undone.

    Files of exports and backups keep the content. Send the request again after an interruption: it erases the rest.
    """
    return await _erase(call, call.stream)


async def erase_block_records(call: HttpCall) -> Any:
    """Erase the content of edits of a shared block, as a job. This cannot be undone."""
    return await _erase(call, stream_of_block(call.names.inner(call.params["block"])))


async def erase_source_records(call: HttpCall) -> Any:
    """Erase the content of documents of a source, as a job. This cannot be undone."""
    return await _erase(call, stream_of(call.names.inner(call.params["source"])))


async def show_job(call: HttpCall) -> JobShape:
    """Return how far a job is, and what came of it."""
    job = await call.service.ports.aside(_folder(call).read, call.params["job"])
    if job is None or not _is_mine(call, job):
        raise not_found(f"job {call.params['job'][:80]!r}")
    return shape_of_job(job, call.service.ports.clock.now())


async def list_jobs(call: HttpCall) -> JobList:
    """List jobs, the newest first."""
    query: JobsQuery = call.query
    jobs = await call.service.ports.aside(_folder(call).all, query.limit, lambda job: _is_mine(call, job))
    return JobList(jobs=[shape_of_job(job, call.service.ports.clock.now()) for job in jobs])


def _folder(call: HttpCall) -> JobFolder:
    return JobFolder(call.service.system.store.root)


def _is_mine(call: HttpCall, job: JobFile) -> bool:
    return not call.names.tenant or job.tenant == call.names.tenant


async def _check_exists(call: HttpCall, stream: str) -> None:
    """Raise UnknownAgent for a stream that does not exist."""
    await call.service.ports.aside(call.service.system.store.reader, stream)


async def _begun(call: HttpCall, kind: JobKind, shown: str, work: JobWork) -> Any:
    """Begin a job, or find the one that an earlier try of this request began. Answers 202."""
    now = call.service.ports.clock.now()
    ids = call.new_ids(f"jobs:{call.caller.key_id}")
    found = ids.id
    if ids.earlier and await call.service.ports.aside(_folder(call).read, ids.earlier) is not None:
        found = ids.earlier
    request = hashlib.sha256(call.request.url.path.encode() + b"\0" + encode(call.body)).hexdigest()
    job = JobFile(
        id=found, kind=kind, tenant=call.names.tenant, key=call.caller.key_id, request=request, agent=shown,
        started=now, beat=now,
    )  # fmt: skip
    begun = await start_job(call.service, job, work)
    location = {"Location": f"/api/v1/jobs/{begun.id}"}
    return JsonResponse(shape_of_job(begun, now), 202, location)


def _names(call: HttpCall, stream: str, fork: str) -> dict[str, str]:
    return {"agent": call.shown(stream), "fork": call.shown(fork)}


def _selection(body: EraseBody) -> Selection:
    return Selection(
        everything=body.everything, seqs=[(first, last) for first, last in body.seqs], match=body.match,
        turns=body.turns, persons=body.persons,
    )  # fmt: skip


async def _plan(call: HttpCall, stream: str) -> ErasurePlan:
    """Return the plan of an erasure. Raises the refusal of one that would reach streams that are not the caller's."""
    if stream not in call.service.system.store.assigned():
        raise not_found(f"{bare(stream)[:80]!r}" if not call.names.tenant else "such name")
    body: EraseBody = call.body
    plan = await call.service.system.plan_erasure(stream, _selection(body), derived=body.derived)
    reached = {*plan.spans, *plan.forks, *(one.stream for one in (*plan.taken, *plan.left))}
    if not all(owns_stream(call.names, each) for each in reached):
        raise Refusal(409, "not-erasable", "The records are shared with an agent that is not yours: ask the operator.")
    return plan


async def _erase(call: HttpCall, stream: str) -> Any:
    body: EraseBody = call.body
    await _plan(call, stream)

    async def work(moved: Callable[[int, int], None]) -> Mapping[str, Any]:
        report = await call.service.system.erase(stream, _selection(body), derived=body.derived, progress=moved)
        result: dict[str, Any] = msgspec.to_builtins(report)
        return result

    return await _begun(call, "erasure", shown_stream(call.names, stream), work)


def _plan_shape(call: HttpCall, plan: ErasurePlan) -> ErasurePlanShape:
    shape = erasure_pages.shape(plan, None)
    prefix = call.names.prefix
    records, left = (
        [{**one, "stream": shown_stream(call.names, one["stream"])} for one in shape[which]]
        for which in ("records", "left")
    )
    losses = [loss.replace(prefix, "") if prefix else loss for loss in plan.losses]
    return ErasurePlanShape(
        agent=shown_stream(call.names, plan.agent_id), records=records, left=left, losses=losses,
        spans={shown_stream(call.names, name): list(map(list, spans)) for name, spans in plan.spans.items()},
        forks=[call.shown(fork) for fork in plan.forks], ancestor_seqs=plan.above, unsought=plan.unsought,
    )  # fmt: skip

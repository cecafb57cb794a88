"""Keep jobs in files of the store, so that every server in front of it can tell how far a job is.

A job runs in the server that took its request, and says every few seconds in its file that it continues. A job whose
file says `running` and has not been written for a while is lost: its server died.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from everlog.actors.erasure.job_results import JOBS_FOLDER
from everlog.events import EverlogError, time_of
from everlog.events.times import MICROSECONDS, moment
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.interfaces.wire.jobs import JobKind, JobProgress, JobShape
from everlog.interfaces.wire.problems import Problem
from everlog.store import create_whole, names_beside, read_whole, remove_whole, write_whole

BEAT_S = 2.0
"""Time between two signs of life."""
LOST_US = 15 * MICROSECONDS
"""Silence after which a job counts as lost."""
KEPT_MAX = 1000
"""Files of ended jobs that are kept: the newest."""

_BUG = Problem(code="bug", message="everlog failed: this is a bug of the server, whose log has more.", status=500)


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """File of one job."""

    id: str
    kind: JobKind
    tenant: str
    """Tenant whose job it is; empty: the operator."""
    key: str
    """Id of the key that asked for it."""
    request: str
    """Digest of the request: the same id with another one is refused."""
    agent: str
    """Name that it is about, as the caller says it."""
    started: int
    beat: int
    """Time of the last sign of life, microseconds UTC."""
    state: Literal["running", "done", "failed", "lost"] = "running"
    done: int = 0
    total: int = 0
    result: Any = None
    problem: Problem | None = None


class JobFolder:
    """The files of the jobs of one store. Its methods read and write files."""

    def __init__(self, root: Path) -> None:
        self._folder = root / JOBS_FOLDER

    def read(self, job: str) -> JobFile | None:
        """Return a job; None if there is none."""
        if time_of(job) is None:
            return None
        content = read_whole(self._folder / f"{job}.json")
        try:
            return None if content is None else msgspec.json.decode(content, type=JobFile)
        except msgspec.MsgspecError:
            return None

    def write(self, job: JobFile) -> None:
        """Write a job. A reader sees the file before or after, and no part of it."""
        write_whole(self._folder / f"{job.id}.json", msgspec.json.encode(job))

    def begin(self, job: JobFile) -> JobFile:
        """Write a new job, and return it; return the job of that id if there is one, also if two servers begin it."""
        self._forget_old()
        if create_whole(self._folder / f"{job.id}.json", msgspec.json.encode(job)):
            return job
        return self.read(job.id) or job

    def all(self, limit: int, wanted: Callable[[JobFile], bool]) -> list[JobFile]:
        """Return jobs, the newest first."""
        found: list[JobFile] = []
        for name in self._newest():
            job = self.read(name.removesuffix(".json"))
            if job is not None and wanted(job):
                found.append(job)
            if len(found) == limit:
                break
        return found

    def _forget_old(self) -> None:
        for name in self._newest()[KEPT_MAX:]:
            remove_whole(self._folder / name)

    def _newest(self) -> list[str]:
        """Return the names of the files, the newest first."""
        return [name for name in reversed(names_beside(self._folder)) if name.endswith(".json")]


JobWork = Callable[[Callable[[int, int], None]], Awaitable[Mapping[str, Any]]]
"""Does a job, and returns its result. Its argument notes the progress: (done, total), in any thread."""


async def start_job(service: HttpService, job: JobFile, work: JobWork) -> JobFile:
    """Begin a job that continues by itself, and return it; return the one of the same id if it was begun before.

    Raises the refusal of an id that another request had.
    """
    folder = JobFolder(service.system.store.root)
    begun = await service.ports.aside(folder.begin, job)
    if begun.request != job.request or begun.tenant != job.tenant:
        raise Refusal(422, "duplicate-id", "This Idempotency-Key was used for another job. Nothing was done.")
    if begun is job:
        service.detach(_carried_out(service, folder, job, work))
    return begun


def shape_of_job(job: JobFile, now: int) -> JobShape:
    """Return a job for HTTP. `now`: microseconds UTC."""
    lost = job.state == "running" and now - job.beat > LOST_US
    return JobShape(
        job=job.id, kind=job.kind, agent=job.agent, state="lost" if lost else job.state, started=moment(job.started),
        beat=moment(job.beat), progress=JobProgress(done=job.done, total=job.total), result=job.result,
        problem=job.problem,
    )  # fmt: skip


async def _carried_out(service: HttpService, folder: JobFolder, job: JobFile, work: JobWork) -> None:
    """Do a job, and keep its file up to date until it has ended."""
    progress = (0, 0)

    def moved(done: int, total: int) -> None:
        nonlocal progress
        progress = (done, total)

    def written(**changed: Any) -> JobFile:
        now = service.ports.clock.now()
        return msgspec.structs.replace(job, beat=now, done=progress[0], total=progress[1], **changed)

    task = asyncio.ensure_future(work(moved))
    try:
        while not (await asyncio.wait((task,), timeout=BEAT_S))[0]:
            await service.ports.aside(folder.write, written())
    except asyncio.CancelledError:  # the server stops: no other one continues the job
        task.cancel()
        folder.write(written(state="lost"))
        raise
    error = task.exception()
    if error is None:
        await service.ports.aside(folder.write, written(state="done", result=task.result()))
        return
    if isinstance(error, Refusal):
        problem = error.problem
    else:
        problem = problem_for(error, TenantNames(job.tenant)) if isinstance(error, EverlogError) else _BUG
    await service.ports.aside(folder.write, written(state="failed", problem=problem))
    if problem is _BUG:
        raise error

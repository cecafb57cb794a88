"""Follow jobs of a server: verifications, reruns and erasures, which continue after their request was answered.

A job belongs to the server that took its request: it continues if the client goes away.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import pause
from everlog.events import ClusterError
from everlog.interfaces.client.server_address import WireRequest, path_of, refusal_of
from everlog.interfaces.client.server_channel import BlockingChannel, ServerChannel
from everlog.interfaces.wire.jobs import JobShape
from everlog.store import Progress

FIRST_LOOK_S, LOOK_S = 0.02, 0.5
"""Seconds between looks at a job: each time twice as long, up to the second."""


def finished(channel: BlockingChannel, request: WireRequest, progress: Progress | None = None) -> Mapping[str, Any]:
    """Begin a job, wait until it is done, and return its result. Raises the error with which it failed, ClusterError if
    its server died.
    """
    job = channel.call(request, JobShape)
    for wait_s in _waits():
        result = _result_of(job, progress)
        if result is not None:
            return result
        pause(wait_s)
        job = channel.call(_look(job), JobShape)
    raise AssertionError("a job is looked at until it ends")


async def looks(channel: ServerChannel, request: WireRequest, ports: Ports) -> AsyncIterator[JobShape]:
    """Begin a job, and yield it now and then until it is done. Raises as `finished` does."""
    job = await channel.call(request, JobShape)
    for wait_s in _waits():
        result = _result_of(job, None)
        yield job
        if result is not None:
            return
        await ports.sleep(wait_s)
        job = await channel.call(_look(job), JobShape)


def _result_of(job: JobShape, progress: Progress | None) -> Mapping[str, Any] | None:
    """Return the result of a job; None while it runs."""
    if job.state == "running":
        if progress is not None and job.progress.total:
            progress(job.progress.done, job.progress.total)
        return None
    if job.problem is not None:
        raise refusal_of(job.problem)
    if job.result is None:
        raise ClusterError(
            f"The server died before the {job.kind} was done. Run the command again; an erasure then erases the rest."
        )
    return job.result


def _look(job: JobShape) -> WireRequest:
    return WireRequest("GET", f"/jobs{path_of(job.job)}")


def _waits() -> Iterator[float]:
    wait_s = FIRST_LOOK_S
    while True:
        yield wait_s
        wait_s = min(2 * wait_s, LOOK_S)

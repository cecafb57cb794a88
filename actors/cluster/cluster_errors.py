"""Word the errors that people see when a cluster, or a process of it, fails.

Used by the files of this folder that call Ray.
"""

import sys
from collections.abc import Awaitable
from typing import TypeVar

from everlog.events import ClusterError, EverlogError, HostLost

WorkT = TypeVar("WorkT")


async def value_or_error(work: Awaitable[WorkT]) -> WorkT | EverlogError:
    """Return the result of some work, or its error as a value: Ray would wrap an error that is raised."""
    try:
        return await work
    except EverlogError as error:
        return error


def note(text: str) -> None:
    """Write a line to the actor's log, which Ray stores."""
    print(f"everlog: {text}", file=sys.stderr, flush=True)  # noqa: T201 - Ray stores what an actor prints


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text, as a sentence; the last line if the constructor of an actor
    failed.
    """
    said = str(error).strip().splitlines()
    text = said[-1 if "creation task" in said[0] else 0].strip() if said else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def lost_error(pid: int) -> HostLost:
    """Return the error for a host that died while it carried out a command."""
    return HostLost(
        f"The process that ran the agent (pid {pid}) is gone. Acknowledged events are in the log: look with "
        "`everlog events`, and send again what is missing."
    )


def dead_cluster(error: BaseException) -> ClusterError:
    """Return the error for a cluster that no longer answers."""
    return ClusterError(
        f"The Ray cluster failed: {first_line(error)} Acknowledged events are in the log, and unfinished turns are "
        "finished when their agents are opened next. Try again, or use --runtime local."
    )


def left_cluster_error() -> ClusterError:
    """Return the error for a command that was in progress when its caller left the cluster."""
    return ClusterError(
        "This process left the Ray cluster before the command was done. The command continues there: open the system "
        "again, and look at its progress with `everlog events`."
    )


def not_started_error(agent_id: str, error: BaseException) -> ClusterError:
    """Return the error for a host that Ray cannot start."""
    return ClusterError(
        f"Ray could not start a host for {agent_id!r}: {first_line(error)} Its log is unchanged. Try again, or use "
        "--runtime local."
    )


def not_connected_error(address: str, version: str, error: BaseException) -> ClusterError:
    """Return the error for a cluster that cannot be joined, or cannot be started here if `address` is empty."""
    doing = f"joined at {address}" if address else "started on this machine"
    return ClusterError(
        f"Ray could not be {doing}: {first_line(error)} This is Ray {version}; a cluster must run the same version of "
        "Ray and Python, and ask for the same token (RAY_AUTH_MODE, ~/.ray/auth_token). `--runtime local` needs no Ray."
    )


def not_answering_error(agent_id: str, pid: int = 0) -> ClusterError:
    """Return the error for a host that runs but does not answer."""
    who = f" (process {pid})" if pid else ""
    return ClusterError(
        f"The host of {agent_id!r}{who} does not answer: a function of the agent may be blocking it. Its log is "
        "unchanged. Wait, or end that process: the agent is then started again."
    )


def no_room(agent_id: str) -> ClusterError:
    """Return the error for a host that does not start in time."""
    return ClusterError(
        f"The host of {agent_id!r} did not start in time: Ray has no room for it, or is too slow. `ray status` shows "
        "the resources in use. The agent's log is unchanged."
    )

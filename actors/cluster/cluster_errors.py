"""What people are told when a cluster, or a process of it, fails."""

import sys

from everlog.events import ClusterError, HostLost


def note(text: str) -> None:
    """A line in the actor's log, which Ray keeps."""
    print(f"everlog: {text}", file=sys.stderr, flush=True)  # noqa: T201 - Ray keeps what an actor prints


def first_line(error: BaseException) -> str:
    """The beginning of what an exception says, as one sentence; its end where an actor failed as it was made."""
    said = str(error).strip().splitlines()
    text = said[-1 if "creation task" in said[0] else 0].strip() if said else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def lost_error(pid: int) -> HostLost:
    """For a host that died while it carried out a command."""
    return HostLost(
        f"The process that ran the agent (pid {pid}) is gone. What it had acknowledged is in the log: look with "
        "`everlog events`, and say again what is missing."
    )


def dead_cluster(error: BaseException) -> ClusterError:
    """For a cluster that no longer answers."""
    return ClusterError(
        f"The Ray cluster failed: {first_line(error)} What was acknowledged is in the log, and unfinished turns are "
        "finished when their agents are opened next; try again, or with --runtime local."
    )


def left_cluster_error() -> ClusterError:
    """For what was still under way when its caller left the cluster."""
    return ClusterError(
        "This process has left the Ray cluster, and hears no more of what it asked for there. It goes on all the same: "
        "open the system again, and look with `everlog events` how far it came."
    )


def not_started_error(agent_id: str, error: BaseException) -> ClusterError:
    """For a host that Ray cannot make."""
    return ClusterError(
        f"Ray could not start a host for {agent_id!r}: {first_line(error)} Its log is as it was; try again, or with "
        "--runtime local."
    )


def not_connected_error(address: str, version: str, error: BaseException) -> ClusterError:
    """For a cluster that cannot be joined, or, where `address` is empty, not be started here."""
    doing = f"joined at {address}" if address else "started on this machine"
    return ClusterError(
        f"Ray could not be {doing}: {first_line(error)} This is Ray {version}; a cluster must run the same version of "
        "Ray and Python, and ask for the same token (RAY_AUTH_MODE, ~/.ray/auth_token). `--runtime local` needs no Ray."
    )


def not_answering_error(agent_id: str, pid: int = 0) -> ClusterError:
    """For a host that lives and says nothing."""
    who = f" (process {pid})" if pid else ""
    return ClusterError(
        f"The host of {agent_id!r}{who} does not answer: a function of the agent may hold it up. Its log is as it was; "
        "wait, or end that process, and the agent is started again."
    )


def no_room(agent_id: str) -> ClusterError:
    """For a host that does not start in time."""
    return ClusterError(
        f"Ray has no room for a host of {agent_id!r}, or no time: it did not start. `ray status` shows what is taken; "
        "its log is as it was."
    )

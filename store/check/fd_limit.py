"""Raise the limit of open files of this process, up to its hard limit, when a snapshot needs more.

Used by `snapshot`.
"""

import resource

SPARE = 64
"""Number of open files for everything other than the snapshot, at most."""


def fds_needed(files: int) -> int:
    """Return the limit that a snapshot of `files` open files needs: DuckDB opens each of them once more."""
    return 2 * files + SPARE


def raise_fd_limit(files: int) -> None:
    """Raise the soft limit of this process if `files` open files need it, up to the hard limit."""
    if has_fd_room(files):
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = fds_needed(2 * files)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else max(soft, min(wanted, hard)), hard)
    )


def has_fd_room(files: int) -> bool:
    """Return True if this process may hold that many files open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft == resource.RLIM_INFINITY or soft >= fds_needed(files)


def fd_limit_error(files: int) -> str:
    """Return the error text for a hard limit that is too low for so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    return (
        f"{files:,} sealed files must be open at once, which needs a limit of {fds_needed(files)} open files; this "
        f"process has a limit of {soft:,} (hard limit: {most}). Nothing was changed. Raise the limit before you start "
        f"everlog: `ulimit -n {fds_needed(files)}`, as root if `ulimit -Hn` is lower."
    )

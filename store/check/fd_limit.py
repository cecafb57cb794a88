"""How many files this process may have open: raised when a position needs more, as far as the hard limit goes."""

import resource

SPARE = 64
"""Open files beside those of a position, at most."""


def fds_needed(files: int) -> int:
    """The limit that so many held files need: DuckDB opens each of them once more."""
    return 2 * files + SPARE


def make_room(files: int) -> None:
    """Raise the soft limit of this process to what so many files need, or to the hard one if that is less."""
    if is_room(files):
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = fds_needed(2 * files)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else max(soft, min(wanted, hard)), hard)
    )


def is_room(files: int) -> bool:
    """Whether this process may have that many held files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft == resource.RLIM_INFINITY or soft >= fds_needed(files)


def too_few(files: int) -> str:
    """What to say where the hard limit is too low for so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    return (
        f"{files:,} sealed files have to be open at once, which needs a limit of {fds_needed(files)} open files; this "
        f"process may have {soft:,} ({most} if it asks). Nothing was changed. Raise the limit before you start it: "
        f"`ulimit -n {fds_needed(files)}`, as root where `ulimit -Hn` says less."
    )

"""Word warnings about a log: a damaged tail that was cut off, or a file that could not be sealed.

Used by `Host` when it opens or unloads an agent, and by `everlog log seal`.
"""

from everlog.store import TornTail


def unsealed_warning(agent_id: str, why: str) -> str:
    """Return the warning that a log could not be sealed."""
    return f"the log of {agent_id!r} could not be sealed; nothing is lost by it. {why}"


def truncated_warning(agent_id: str, cut: TornTail) -> str:
    """Return the warning that a damaged tail was cut off when the log was opened, with the place of its copy."""
    stem = f"{cut.path.name}.{cut.offset}"
    copies = [*cut.path.parent.glob(f"{stem}.cut"), *cut.path.parent.glob(f"{stem}.*.cut")]
    kept = max(copies, key=lambda path: path.stat().st_mtime_ns, default=cut.path.with_name(f"{stem}.cut"))
    return (
        f"the log of {agent_id!r} ended in {cut.bytes} damaged bytes, which were cut off. No acknowledged record is "
        f"lost by it, unless a disk lost what it had promised to keep. The bytes are kept in {kept}."
    )


def warnings(agent_id: str, cut: TornTail | None, unsealed: str) -> list[str]:
    """Return the warnings about a log. `unsealed`: reason why the log could not be sealed; empty if it could."""
    found_warnings = [truncated_warning(agent_id, cut)] if cut is not None else []
    return [*found_warnings, unsealed_warning(agent_id, unsealed)] if unsealed else found_warnings

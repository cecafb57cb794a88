"""What a person is told about a log in words: a damaged tail that was cut off, a file that could not be sealed."""

from everlog.store import TornTail


def unsealed_warning(agent_id: str, why: str) -> str:
    """That a log could not be sealed."""
    return f"the log of {agent_id!r} could not be sealed; nothing is lost by it. {why}"


def truncated_warning(agent_id: str, cut: TornTail) -> str:
    """What was cut off a log when it was opened, and where it is kept."""
    stem = f"{cut.path.name}.{cut.offset}"
    copies = [*cut.path.parent.glob(f"{stem}.cut"), *cut.path.parent.glob(f"{stem}.*.cut")]
    kept = max(copies, key=lambda path: path.stat().st_mtime_ns, default=cut.path.with_name(f"{stem}.cut"))
    return (
        f"the log of {agent_id!r} ended in {cut.bytes} damaged bytes, which were cut off. No acknowledged record is "
        f"lost by it, unless a disk lost what it had promised to keep. The bytes are kept in {kept}."
    )


def warnings(agent_id: str, cut: TornTail | None, unsealed: str) -> list[str]:
    """What a person should know of a log; `unsealed` is why it could not be sealed, empty if it could."""
    told = [truncated_warning(agent_id, cut)] if cut is not None else []
    return [*told, unsealed_warning(agent_id, unsealed)] if unsealed else told

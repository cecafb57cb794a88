"""Word warnings about a log: a damaged tail that was cut off, lost commits, or a file that could not be sealed.

Used by every part that opens a log to write: `Host` and `Shard`, `LocalSystem` for moves and erasures, `Sources`,
`SharedBlockWriter`, and `everlog log seal`. Each of them passes on what it was told when the log was opened: the end of
a log is cut off once, and a warning that is dropped then is never given again.
"""

from collections.abc import Callable

from everlog.store import Log, TornTail, is_shared


def unsealed_warning(agent_id: str, why: str) -> str:
    """Return the warning that a log could not be sealed."""
    return f"the log of {agent_id!r} could not be sealed; nothing is lost by it. {why}"


def truncated_warning(agent_id: str, cut: TornTail) -> str:
    """Return the warning that a log was opened without its damaged or lost end, with the place of the bytes' copy."""
    partition = cut.path.parent.name
    shared = f"{partition}, which {agent_id!r} shares with other agents," if partition != agent_id else partition
    log = f"the log of {shared if is_shared(partition) else repr(agent_id)}"
    if cut.lost is not None:
        kept = f" The {cut.bytes} bytes after them are kept in {_copy_of(cut)}." if cut.bytes else ""
        return f"{log} has lost {cut.lost.in_words}. {cut.lost}.{kept} `everlog log check` repeats this."
    return (
        f"{log} ended in {cut.bytes} damaged bytes, which were cut off. No acknowledged record is "
        f"lost by it, unless a disk lost what it had promised to keep. The bytes are kept in {_copy_of(cut)}."
    )


def _copy_of(cut: TornTail) -> str:
    """Return the path of the newest copy of the bytes that were cut off."""
    stem = f"{cut.path.name}.{cut.offset}"
    copies = [*cut.path.parent.glob(f"{stem}.cut"), *cut.path.parent.glob(f"{stem}.*.cut")]
    return str(max(copies, key=lambda path: path.stat().st_mtime_ns, default=cut.path.with_name(f"{stem}.cut")))


def warnings(agent_id: str, cut: TornTail | None, unsealed: str) -> list[str]:
    """Return the warnings about a log. `unsealed`: reason why the log could not be sealed; empty if it could."""
    found_warnings = [truncated_warning(agent_id, cut)] if cut is not None else []
    return [*found_warnings, unsealed_warning(agent_id, unsealed)] if unsealed else found_warnings


def note_opening(note: Callable[[str], None], label: str, log: Log) -> list[str]:
    """Note each warning about a log that was just opened, and return them. `label`: name of its agent or stream."""
    found_warnings = warnings(label, getattr(log, "cut", None), getattr(log, "unfinished", ""))
    for warning in found_warnings:
        note(warning)
    return found_warnings

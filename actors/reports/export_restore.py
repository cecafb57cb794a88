"""Export agents into a file and restore them: the store's part, with what only projections know.

Used by `AgentSystem.export` and `restore`, and by the commands of the same names.
"""

from collections.abc import Sequence
from pathlib import Path

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.effects import Clock
from everlog.projections import DERIVER
from everlog.store import ExportHeader, FileStore, Progress, RestoreReport, export, stream_of


def export_agent(system: LocalSystem, store: FileStore, agent_id: str, path: Path, *, clock: Clock,
                 with_sources: bool = False, replace: bool = False, progress: Progress | None = None
                 ) -> ExportHeader:  # fmt: skip
    """Export an agent, with the ancestors that a fork needs, into the file `path`; documents of its sources only with
    `with_sources`. Return the header. Raises as `AgentSystem.export` does.
    """
    view = system.view(agent_id)
    try:
        sources = sorted(row["source"] for row in view.rows("sources") if row["source"])
    finally:
        view.close()
    return export(
        store,
        agent_id,
        path,
        store_id=store.store_id,
        made_at=clock.now(),
        sources=sources,
        streams=_loaded_streams(store, sources) if with_sources else (),
        replace=replace,
        progress=progress,
    )


def _loaded_streams(store: FileStore, sources: Sequence[str]) -> list[str]:
    """Return the streams of those sources that have documents."""
    streams = [stream_of(source) for source in sources if source in store.sources()]
    return [stream for stream in streams if store.reader(stream).head(stream).seq]


def restore_agent(store: FileStore, path: Path, progress: Progress | None = None) -> RestoreReport:
    """Import a file of `export_agent`. Return a report. Raises as `AgentSystem.restore` does."""
    return store.restore(path, DERIVER, progress)

"""Export agents into a file and restore them: the store's part, with what only projections know.

Used by `AgentSystem.export` and `restore`, and by the commands of the same names.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from everlog.actors.agent.fork_agent import is_deleted
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.effects import Clock
from everlog.actors.ports.ports import Ports
from everlog.events import BadInput, is_erased
from everlog.projections import DERIVER
from everlog.store import (
    ExportedStream,
    ExportHeader,
    FileStore,
    Progress,
    RestoreReport,
    bare_name,
    export,
    is_agent,
    names_generation,
    stream_of,
)
from everlog.store.backup.export_file import ExportReader


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


def restore_agent(store: FileStore, path: Path, progress: Progress | None = None, *, ports: Ports) -> RestoreReport:
    """Import a file of `export_agent`. Return a report. Raises as `AgentSystem.restore` does.

    An agent that was deleted here after the export comes back as the next generation of its name: a fork of its own
    stream at the last exported record. It stays deleted if some of these records were erased here since.
    """
    check_generations(store, path)
    report = store.restore(path, DERIVER, progress)
    own = report.contents.own
    erased = _erased_since(store, own, ports)
    if erased:
        ports.note(stays_deleted(own.agent_id, erased))
        return msgspec.structs.replace(report, erased_since=erased)
    revived = (
        ""
        if erased is None
        else LocalSystem(store, ports=ports).fork(own.agent_id, bare_name(own.agent_id), at=own.to_seq).agent_id
    )
    return msgspec.structs.replace(report, revived=revived)


def stays_deleted(name: str, erased: int) -> str:
    """Return the warning about a deleted agent that a restore does not bring back. `erased`: see `RestoreReport`."""
    return (
        f"{name!r} was deleted here and stays so: {erased} of the exported records were erased since. "
        "Restore it into another store (--store DIR)"
    )


def check_generations(store: FileStore, path: Path) -> None:
    """Raise BadInput if an export holds a later agent of a name that belongs to a living agent here: the name would
    then lead to the restored one.
    """
    with closing(ExportReader(path)) as export:
        names = [stream.agent_id for stream in export.contents.streams]
    for name in filter(names_generation, names):
        newest = store.latest(bare_name(name))
        if is_deleted(store, newest) is False and is_deleted(store, name) is None:
            raise BadInput(
                f"The export holds {name!r}, a later agent of the name {bare_name(name)!r}, and {newest!r} of this "
                "store has that name and is not deleted. Nothing was changed. Delete it first, or restore into another "
                "store (--store DIR)."
            )


def _erased_since(store: FileStore, own: ExportedStream, ports: Ports) -> int | None:
    """Return how many exported records of an agent, which was deleted since, were erased since. None: it was not
    deleted, or another agent has its name.
    """
    name = own.agent_id
    if not is_agent(name) or not is_deleted(store, name) or is_deleted(store, store.latest(bare_name(name))) is False:
        return None
    with closing(LocalSystem(store, ports=ports).view(name, as_of=own.to_seq)) as view:
        if view.rows("standing")[0]["deleted"]:
            return None
        erased = sum(is_erased(record.payload) for record in view.reader.read(name, own.from_seq, own.to_seq))
    return max(0, erased - own.erased)

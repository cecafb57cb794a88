"""Sources of documents for clients of Letta, which calls them folders, and their files."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from everlog.actors.memory.document_load import UnreadableDocument
from everlog.events import BadInput
from everlog.events.times import moment
from everlog.interfaces.documents import KINDS
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.http.letta.agent_states import LettaAgent, LettaFolder, agent_state, folder_id, folder_of
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_ref,
    agent_stream,
    ordered,
    page_of,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.letta_forms import file_in, uploaded_form
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, uuid_id
from everlog.interfaces.http.native.sources import read_document
from everlog.interfaces.http.runs.agent_digests import digest_of
from everlog.store import open_private, source_of, stream_of

COPIES_MAX = 1000


class LettaFolderBody(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to create."""

    name: str
    description: str | None = None
    instructions: str | None = None
    metadata: dict[str, Any] | None = None


class LettaFolderQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of folders."""

    name: str | None = None


class LettaUploadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Name of a file, and what happens if the folder has one of that name."""

    name: str | None = None
    duplicate_handling: str = "suffix"


class LettaFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a folder."""

    id: str
    source_id: str
    file_name: str
    original_file_name: str
    file_type: str
    file_size: int
    processing_status: str = "completed"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    content: None = None


async def list_folders(call: HttpCall) -> Sequence[LettaFolder]:
    """List the folders."""
    query: LettaFolderQuery = call.query
    folders = [folder_of(call, name) for name in await _sources(call)]
    chosen = [folder for folder in folders if query.name in {None, folder.name}]
    return page_of(ordered(chosen, query, lambda folder: folder.name), query, lambda folder: folder.id)


async def create_folder(call: HttpCall) -> LettaFolder:
    """Create a folder without files."""
    body: LettaFolderBody = call.body
    if body.description or body.instructions or body.metadata:
        raise refused("A folder has a name, and no description, instructions or metadata.")
    name = source_of(stream_of(call.names.inner(body.name)))
    if name in await _sources(call):
        raise refused(f"There is a folder {body.name[:80]!r} already.", 409)
    await call.service.system.sources.load(name, [])
    return folder_of(call, name)


async def show_folder(call: HttpCall) -> LettaFolder:
    """Return a folder."""
    return folder_of(call, await source_of_folder(call, call.params["folder_id"]))


async def list_files(call: HttpCall) -> Sequence[LettaFile]:
    """List the files of a folder."""
    source = await source_of_folder(call, call.params["folder_id"])
    files = [_file(source, row) for row in await call.service.system.sources.documents(source)]
    return page_of(ordered(files, call.query, lambda file: file.created_at), call.query, lambda file: file.id)


async def show_file(call: HttpCall) -> LettaFile:
    """Return a file of a folder."""
    source = await source_of_folder(call, call.params["folder_id"])
    for row in await call.service.system.sources.documents(source):
        if file_id(source, row["document"]) == call.params["file_id"]:
            return _file(source, row)
    raise not_found(f"file {call.params['file_id'][:80]!r} in this folder")


async def upload_file(call: HttpCall) -> JsonResponse:
    """Load a file into a folder. It is read, cut and found as soon as the answer is there."""
    query: LettaUploadQuery = call.query
    source = await source_of_folder(call, call.params["folder_id"])
    async with _uploaded_file(call) as (given, path):
        had = {row["document"]: row for row in await call.service.system.sources.documents(source)}
        name = query.name or given
        if name in had:
            if query.duplicate_handling == "skip":
                return JsonResponse(_file(source, had[name]))
            if query.duplicate_handling == "error":
                raise refused(f"There is a file {name[:80]!r} in this folder already.", 409)
            if query.duplicate_handling == "suffix":
                name = next(free for number in range(1, COPIES_MAX) if (free := _numbered(name, number)) not in had)
        document = await call.service.ports.aside(read_document, name, path)
    if isinstance(document, UnreadableDocument):
        raise BadInput(f"{name!r} was not loaded: {document.reason}.")
    report = await call.service.system.sources.load(source, [document])
    if report.failed:
        raise BadInput(f"{name!r} was not loaded: {report.failed[0].reason}.")
    rows = await call.service.system.sources.documents(source)
    return JsonResponse(_file(source, next(row for row in rows if row["document"] == document.name)))


async def list_folder_agents(call: HttpCall) -> Sequence[str]:
    """List the ids of the agents that can search a folder."""
    source = await source_of_folder(call, call.params["folder_id"])
    agents = (await call.service.system.sources.attached()).get(source, ())
    return [LettaIds(agent).agent for agent in agents if call.names.owns(agent)]


async def list_agent_folders(call: HttpCall) -> Sequence[LettaFolder]:
    """List the folders that an agent can search."""
    rows = await viewed(call, await agent_stream(call), lambda view: view.rows("sources"))
    folders = [folder_of(call, row["source"]) for row in rows if row["source"]]
    return page_of(ordered(folders, call.query, lambda folder: folder.name), call.query, lambda folder: folder.id)


async def attach_folder(call: HttpCall) -> LettaAgent:
    """Let an agent search a folder."""
    stream, source = await agent_stream(call), await source_of_folder(call, call.params["folder_id"])
    await (await agent_ref(call, stream)).attach_source(source)
    return await agent_state(call, stream)


async def detach_folder(call: HttpCall) -> LettaAgent:
    """Stop an agent from searching a folder."""
    stream, source = await agent_stream(call), await source_of_folder(call, call.params["folder_id"])
    await (await agent_ref(call, stream)).detach_source(source)
    return await agent_state(call, stream)


async def source_of_folder(call: HttpCall, given: str) -> str:
    """Return the name in the store of the source that is a folder. Raises the refusal of an unknown one."""
    for name in await _sources(call):
        if folder_id(name) == given:
            return name
    raise not_found(f"folder {given[:80]!r}")


def file_id(source: str, document: str) -> str:
    """Return the id of a file."""
    return uuid_id("file", digest_of(f"{stream_of(source)}\0{document}"))


async def _sources(call: HttpCall) -> Sequence[str]:
    return [name for name in await call.service.system.sources.names() if call.names.owns(name)]


def _file(source: str, row: Any) -> LettaFile:
    return LettaFile(
        id=file_id(source, row["document"]), source_id=folder_id(source), file_name=row["document"],
        original_file_name=row["document"], file_type=row["media_type"], file_size=row["bytes"],
        created_at=moment(row["time"]), updated_at=moment(row["time"]),
    )  # fmt: skip


def _numbered(name: str, number: int) -> str:
    path = PurePath(name)
    return str(path.with_name(f"{path.stem}_({number}){path.suffix}"))


@asynccontextmanager
async def _uploaded_file(call: HttpCall) -> AsyncIterator[tuple[str, Path]]:
    """Yield the name and the path of the file in a form. Raises the refusal of a form that is too large, or none."""
    async with uploaded_form(call) as form:
        file = file_in(form)
        name = PurePath((file.filename or "file").replace("\\", "/")).name
        suffix = PurePath(name).suffix.lower()
        if suffix not in KINDS:
            raise refused(f"A file ends with {', '.join(sorted(KINDS))}, not {suffix or 'nothing'!r}.", 415)
        with TemporaryDirectory(prefix="everlog-upload-") as folder:
            path = Path(folder) / f"body{suffix}"
            with open_private(path, "wb") as out:
                while part := await file.read(1024 * 1024):
                    await call.service.ports.aside(out.write, part)
            yield name, path

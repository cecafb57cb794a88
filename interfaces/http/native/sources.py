"""Sources of documents: list them at any moment, upload documents, attach them to agents."""

from pathlib import Path
from typing import Any

from everlog.actors.memory.document_load import Document, UnreadableDocument
from everlog.actors.store_services import DocumentSources
from everlog.events import BadInput
from everlog.events.times import moment
from everlog.interfaces.documents import KINDS, DocumentFile, check_readers_installed, read
from everlog.interfaces.http.core.moments import time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.http.core.uploads import uploaded
from everlog.interfaces.wire.runs import Changed
from everlog.interfaces.wire.shared import (
    DocumentRow,
    DocumentsShape,
    FailedDocument,
    LoadBody,
    LoadShape,
    SourceRow,
    SourcesShape,
    UploadedShape,
    UploadStatus,
)
from everlog.store import source_of, stream_of

SUFFIXES = {kind.media_type: suffix for suffix, kind in reversed(KINDS.items())}
"""Extension of a file of each media type, which chooses its reader."""
DOCUMENT_TYPES = tuple(sorted(SUFFIXES))
"""Media types of documents that can be uploaded."""
ORIGIN = "upload"


async def list_sources(call: HttpCall) -> SourcesShape:
    """List the sources with the agents that can search them, as of a time."""
    when = time_of_parameter(call.query.as_of, "as_of")
    sources, names = call.service.system.sources, call.names
    loaded = [name for name in await sources.names() if names.owns(name)]
    attached = {
        name: [names.outer(agent) for agent in agents if names.owns(agent)]
        for name, agents in (await sources.attached(as_of=when)).items()
        if names.owns(name)
    }
    rows = []
    for name in sorted({*loaded, *attached}):
        documents = await sources.documents(name, as_of=when) if name in loaded else ()
        rows.append(
            SourceRow(
                source=names.outer(name), documents=len(documents), agents=attached.get(name, []),
                characters=sum(row["chars"] for row in documents),
            )
        )  # fmt: skip
    return SourcesShape(sources=rows)


async def list_documents(call: HttpCall) -> DocumentsShape:
    """List the documents of a source, as of a time."""
    name = await _known_source(call)
    when = time_of_parameter(call.query.as_of, "as_of")
    rows = [
        DocumentRow(
            document=row["document"], title=row["title"], characters=row["chars"], bytes=row["bytes"],
            media_type=row["media_type"], sha256=row["sha256"], origin=row["origin"], seq=row["seq"],
            loaded=moment(row["time"]),
        )
        for row in await _sources(call).documents(name, as_of=when)
    ]  # fmt: skip
    return DocumentsShape(source=call.params["source"], documents=rows)


async def upload_document(call: HttpCall) -> Any:
    """Load a document into a source, which is created if needed. The type of the body chooses the reader of its text.

    A document of the same name is replaced; its text before stays in the log.
    """
    media = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    source = source_of(stream_of(call.names.inner(call.params["source"])))
    name = call.params["document"]
    if media not in SUFFIXES:
        raise Refusal(415, "unsupported-media-type", f"Say what the document is: {', '.join(DOCUMENT_TYPES)}.")
    async with uploaded(call.request, call.service, suffix=SUFFIXES[media]) as path:
        document: Document | UnreadableDocument = await call.service.ports.aside(read_document, name, path)
    if isinstance(document, UnreadableDocument):
        raise BadInput(f"{name!r} was not loaded: {document.reason}.")
    report = await _sources(call).load(source, [document])
    if report.failed:
        raise BadInput(f"{name!r} was not loaded: {report.failed[0].reason}.")
    status: UploadStatus = "new" if report.new else "changed" if report.changed else "unchanged"
    shape = UploadedShape(source=call.params["source"], document=name, status=status, characters=len(document.text))
    return JsonResponse(shape, 201 if status == "new" else 200)


async def load_documents(call: HttpCall) -> LoadShape:
    """Load documents into a source, which is created if needed, and remove others, in few commits.

    A document that cannot be loaded is told, and the others are loaded. What was replaced or removed stays in the log.
    """
    body: LoadBody = call.body
    documents = [
        Document(
            name=one.document, text=one.text, title=one.title, media_type=one.media_type, bytes=one.bytes,
            origin=one.origin,
        )
        for one in body.documents
    ]  # fmt: skip
    report = await _sources(call).load(call.names.inner(call.params["source"]), documents, remove=body.remove)
    failed = [FailedDocument(document=one.name, reason=one.reason) for one in report.failed]
    return LoadShape(
        source=call.params["source"], new=report.new, changed=report.changed, unchanged=report.unchanged,
        removed=report.removed, failed=failed,
    )  # fmt: skip


async def attach_source(call: HttpCall) -> Changed:
    """Let an agent search the documents of a source, which may be loaded later."""
    return Changed(changed=await (await call.agent()).attach_source(call.names.inner(call.params["source"])))


async def detach_source(call: HttpCall) -> Changed:
    """Stop an agent from searching the documents of a source. The source itself stays."""
    return Changed(changed=await (await call.agent()).detach_source(call.names.inner(call.params["source"])))


def read_document(name: str, path: Path) -> Document | UnreadableDocument:
    """Return the document in a file that was uploaded. The extension of the file chooses the reader. Blocks."""
    file = DocumentFile(name=name, path=path, origin=ORIGIN, bytes=path.stat().st_size)
    check_readers_installed([file])
    return read(file)


def _sources(call: HttpCall) -> DocumentSources:
    return call.service.system.sources.signed(call.caller.key_id)


async def _known_source(call: HttpCall) -> str:
    """Return the name in the store of the source that the path names. Raises the refusal of one that does not exist."""
    name = call.names.inner(call.params["source"])
    if name not in await _sources(call).names():
        raise not_found(f"source {call.params['source'][:80]!r}")
    return name

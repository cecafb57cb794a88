"""Exports, restores and queries of a server: answers and bodies that are files."""

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa

from everlog.events import BadInput, ClusterError, StoreError
from everlog.interfaces.client.server_address import WireRequest, path_of
from everlog.interfaces.client.server_channel import BlockingChannel
from everlog.interfaces.wire.sql import POSITION_KEY
from everlog.interfaces.wire.transfer import RestoredShape
from everlog.store import ExportedStream, ExportHeader, FleetPosition, RestoredStream, RestoreReport, open_private
from everlog.store.backup.export_file import ExportReader

EXPORT = "application/vnd.everlog.export"


def export_to(channel: BlockingChannel, name: str, path: Path, *, with_sources: bool, replace: bool) -> ExportHeader:
    """Download the export of an agent into a file. Return its header. Raises BadInput for a file that exists."""
    if path.exists() and not replace:
        raise BadInput(f"There is a file {path} already. Nothing was written; use --force to replace it.")
    part = path.with_name(f".{path.name}.part")
    try:
        with open_private(part, "wb") as file:
            for piece in channel.parts_of(export_request(name, with_sources=with_sources)):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        with closing(ExportReader(part)) as export:
            header = export.contents
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} could not be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return header


def export_request(name: str, *, with_sources: bool = False) -> WireRequest:
    """Return the request for the export of an agent."""
    query = [("with_sources", "true")] if with_sources else []
    return WireRequest("GET", f"/agents{path_of(name)}/export", query=query)


def restore_from(channel: BlockingChannel, path: Path) -> RestoreReport:
    """Upload an export, and return what the server restored. Raises BadInput for a file that is none."""
    with closing(ExportReader(path)) as export:
        contents = export.contents
    with path.open("rb") as file:
        request = WireRequest("POST", "/restores", content=_Whole(file), media=EXPORT)
        shape = channel.call(request, RestoredShape)
    streams = [
        RestoredStream(
            ExportedStream(
                row.stream, row.from_seq, row.to_seq, row.chain, row.parent or "", row.parent_seq or 0, row.erased
            ),
            row.restored,
            row.ended,
        )
        for row in shape.streams
    ]
    return RestoreReport(contents, streams, shape.revived or "", shape.erased_since)


class _Whole:
    """File as the body of a request, in pieces."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(1 << 20):
            yield piece


def table_of(content: bytes) -> tuple[pa.Table, FleetPosition]:
    """Return the rows of an answer in Arrow, and the position that they are of. Raises ClusterError for bytes that are
    none.
    """
    try:
        table = pa.ipc.open_stream(content).read_all()
        position = msgspec.json.decode((table.schema.metadata or {})[POSITION_KEY], type=FleetPosition)
    except (pa.ArrowInvalid, KeyError, msgspec.MsgspecError) as error:
        raise ClusterError(
            f"The server answered no rows that this everlog understands: {error}. Is it of another version?"
        ) from error
    return table.replace_schema_metadata(None), position

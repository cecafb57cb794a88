"""Read and write export files: Parquet that any tool reads, with a header and one checksum over every byte.

    row groups             the records of `store.SCHEMA`, stream after stream; `commit` counts each stream's from 1
    footer                 Parquet's own, and in its key-value metadata:
      everlog              the header, a JSON object: `ExportHeader`
      everlog.sha256       SHA-256 of the whole file, in which these 64 hexadecimal digits are zeros

The checksum is located by the bytes of its key (`MARK`), so that it can be verified before anything in the file is
parsed. These bytes are the same in every version of the format.

Used by `export_agent` and `restore_service`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import msgspec
import pyarrow as pa

from everlog.events import BadInput, CorruptLog, NewerFormat, Record, StoreError
from everlog.store.base.arrow_schema import SCHEMA, batch_of, records_of
from everlog.store.base.block_streams import is_agent
from everlog.store.base.export_types import ExportedStream, ExportHeader
from everlog.store.base.lazy_pyarrow import pq
from everlog.store.base.names import name_of
from everlog.store.base.store_constants import EXPORT_GROUP_BYTES_MAX, EXPORT_VERSION, EXPORT_ZSTD_LEVEL, PAGE_BYTES
from everlog.store.sealed.parquet_file import DICTIONARIES, ENCODINGS, STATISTICS

HEADER = "everlog"
CHECKSUM = "everlog.sha256"
DIGITS = 64
MARK = CHECKSUM.encode() + b"\x18\x40"
"""Bytes before the digits: the key, and Parquet's encoding of a text of 64 bytes."""
MAGIC = b"PAR1"
TAIL_BYTES = 4 + len(MAGIC)
"""Bytes at the end of every Parquet file: the length of the footer, and the magic."""
READ_BYTES = 1024 * 1024


class _Sink:
    """File object for Parquet's writer: counts, hashes, and holds the footer back until the checksum is put into it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._bytes = 0
        self._end: bytearray | None = None

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._bytes += len(part)
        if self._end is None:
            self._sha256.update(part)
            self._file.write(part)
        else:
            self._end += part
        return len(part)

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Do nothing: no bytes are buffered here."""

    def close(self) -> None:
        """Do nothing: the caller that opened the file closes it."""

    def hold(self) -> None:
        """Hold back the bytes written from now on."""
        self._end = bytearray()

    def finish(self) -> None:
        """Put the checksum into the held bytes, and write them."""
        assert self._end is not None, "the footer was held back"
        self._sha256.update(self._end)
        at = self._end.rindex(MARK) + len(MARK)
        self._end[at : at + DIGITS] = self._sha256.hexdigest().encode()
        self._file.write(self._end)


class ExportWriter:
    """Writes an export into an open file: row groups first, then the header."""

    def __init__(self, file: IO[bytes]) -> None:
        self._finished = False
        self._sink = _Sink(file)
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA,
            compression="zstd",
            compression_level=EXPORT_ZSTD_LEVEL,
            data_page_size=PAGE_BYTES,
            use_dictionary=list(DICTIONARIES),
            column_encoding=ENCODINGS,
            write_statistics=list(STATISTICS),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._finished:  # Parquet's writer must be closed; the held bytes are dropped
            self._sink.hold()
            self._writer.close()

    def write(self, records: list[Record]) -> None:
        """Write records as one row group."""
        if records:
            self._writer.write_table(pa.Table.from_batches([batch_of(records)], SCHEMA), row_group_size=len(records))

    def finish(self, contents: ExportHeader) -> None:
        """Write the header and the checksum. After that the file is complete, but not synced."""
        self._sink.hold()
        self._writer.add_key_value_metadata({HEADER: msgspec.json.encode(contents).decode(), CHECKSUM: "0" * DIGITS})
        self._writer.close()
        self._finished = True
        self._sink.finish()


class ExportReader:
    """Reader of an export; every byte was verified when it was opened."""

    def __init__(self, path: Path) -> None:
        """Open and verify an export. Raises BadInput for another kind of file, CorruptLog for damage, NewerFormat,
        StoreError.
        """
        self.path = path
        with export_errors(path):
            with path.open("rb") as file:
                _check(file, path)
            self._file = pq.ParquetFile(path)
            self.contents = _header(self._file.metadata.metadata or {}, path)
            if not self._file.schema_arrow.equals(SCHEMA):
                raise damaged_error(path, "its columns are not those of a log")
            _check_row_groups(self._file.metadata, path)

    def records(self) -> Iterator[Record]:
        """Yield all records, in the order of the file; some thousand are in memory at a time."""
        with export_errors(self.path):
            for number in range(self._file.num_row_groups):
                yield from records_of(self._file.read_row_group(number, use_threads=False))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def damaged_error(path: Path, what: str) -> CorruptLog:
    """Return the error for an export that differs from what was written."""
    return CorruptLog(f"{path} is damaged: {what}. Nothing was restored; take another copy of the file.")


@contextmanager
def export_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading an export into errors that name the file and the remedy."""
    try:
        yield
    except pa.ArrowException as error:
        raise damaged_error(path, str(error)) from error
    except FileNotFoundError as error:
        raise BadInput(f"There is no file {path}.") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}. Nothing was restored.") from error


def _check(file: IO[bytes], path: Path) -> None:
    """Verify every byte against the checksum. Raises BadInput, CorruptLog."""
    begins = file.read(len(MAGIC)) == MAGIC
    size = file.seek(0, 2)
    file.seek(max(size - TAIL_BYTES, 0))
    tail = file.read()
    ends = tail.endswith(MAGIC)
    if not begins and not ends:
        raise BadInput(f"{path} is no export of everlog: it is not Parquet. `everlog export` makes one.")
    if not begins or not ends or len(tail) < TAIL_BYTES:
        raise damaged_error(path, "it was cut short, or its first or last bytes were changed")
    footer = max(size - TAIL_BYTES - int.from_bytes(tail[:4], "little"), 0)
    file.seek(footer)
    end = file.read()
    place = end.rfind(MARK)
    if place < 0 or place + len(MARK) + DIGITS > len(end):
        if HEADER.encode() in end:
            raise damaged_error(path, "its checksum is missing")
        raise BadInput(f"{path} is Parquet, but no export of everlog. `everlog export` makes one.")
    at = footer + place + len(MARK)
    digits = end[place + len(MARK) :][:DIGITS]
    if _sha256(file, at).encode() != digits:
        raise damaged_error(path, f"the SHA-256 of its {size:,} bytes does not match")


def _sha256(file: IO[bytes], at: int) -> str:
    """Return the SHA-256 of the whole file, with zeros in place of the digits at byte `at`."""
    found = hashlib.sha256()
    file.seek(0)
    left = at
    while left:
        part = file.read(min(left, READ_BYTES))
        found.update(part)
        left -= len(part)
    found.update(b"0" * DIGITS)
    file.seek(at + DIGITS)
    while part := file.read(READ_BYTES):
        found.update(part)
    return found.hexdigest()


class _ExportFormat(msgspec.Struct):
    format: int


def _header(metadata: dict[bytes, bytes], path: Path) -> ExportHeader:
    try:
        header = metadata[HEADER.encode()]
        version = msgspec.json.decode(header, type=_ExportFormat).format
        if version > EXPORT_VERSION:
            raise NewerFormat(
                f"{path} has format {version}, but this everlog knows formats up to {EXPORT_VERSION}. Use a newer "
                "everlog."
            )
        contents = msgspec.json.decode(header, type=ExportHeader)
        if version < 1:
            raise damaged_error(path, f"its header names the format {version}")
    except (KeyError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged_error(path, f"its header cannot be read ({error})") from error
    if contents.agent_id not in [stream.agent_id for stream in contents.streams]:
        raise damaged_error(path, f"it has no records of {contents.agent_id!r}")
    wrong = _header_fault(contents.streams)
    if wrong:
        raise damaged_error(path, wrong)
    return contents


def _header_fault(streams: Sequence[ExportedStream]) -> str:
    """Return the first fault in a header's streams, or an empty text."""
    names = [stream.agent_id for stream in streams]
    if len(set(names)) < len(names):
        return "its header has a name twice"
    for stream in streams:
        for name in filter(None, (stream.agent_id, stream.parent)):
            try:
                is_name = name_of(name) == name
            except BadInput:
                is_name = False
            if not is_name:
                return f"{name!a} in its header is not a valid stream name"
        if not stream.agent_id:
            return "a stream in its header has no name"
        if stream.parent and not (is_agent(stream.parent) and is_agent(stream.agent_id)):
            return f"{stream.agent_id!r} in its header is a fork of {stream.parent!r}, and only agents have forks"
    return ""


def _check_row_groups(metadata: Any, path: Path) -> None:
    """Raise CorruptLog for a row group above the size that exports have: a row group is read into memory whole."""
    for number in range(metadata.num_row_groups):
        size = metadata.row_group(number).total_byte_size
        if size > EXPORT_GROUP_BYTES_MAX:
            raise damaged_error(
                path, f"row group {number} has {size:,} bytes, above the limit of {EXPORT_GROUP_BYTES_MAX:,}"
            )

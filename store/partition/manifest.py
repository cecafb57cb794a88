"""Read and publish manifests: the list of a partition's live files. A file that the manifest does not name does not
count.

Manifests are numbered from 1 and the highest is in force. Each is written completely under a temporary name and then
linked to its number. Only one process can create that link, so publishing is a compare-and-swap. The content is one
JSON object whose `crc32c` covers the text of its `manifest`. New kinds of file get a new `kind`, and new fields have
defaults.

Used by every file of `store` that opens a partition: `file_log`, `partition_reader`, `seal_pass`.
"""

from collections.abc import Callable

import google_crc32c
import msgspec

from everlog.events import GENESIS, CorruptLog, NewerFormat, StoreError
from everlog.store.base.contract import Head
from everlog.store.base.disk import parse_json, publish, remove_if_there, storage
from everlog.store.base.store_constants import FORMAT_VERSION
from everlog.store.partition.partition import MANIFEST, Partition, numbers_in, token

OPEN = "open"
FRAMES = "frames"
SEALED = "sealed"
KINDS = (OPEN, FRAMES, SEALED)
MANIFESTS_KEPT = 2
"""Number of newest manifests that stay on disk."""
READ_ATTEMPTS_MAX = 100


class RowGroupEntry(msgspec.Struct, frozen=True, array_like=True):
    """One row group of a Parquet file: its bytes up to the next row group, and its rows, which are sorted."""

    offset: int
    bytes: int
    crc32c: int
    rows: int
    first: tuple[str, int]
    """Agent and seq of the first row."""
    last: tuple[str, int]


class ParquetEntry(msgspec.Struct, frozen=True):
    """A Parquet file, with a checksum for each part that is read separately, because Parquet itself does not detect a
    flipped bit.
    """

    name: str
    bytes: int
    groups: list[RowGroupEntry]
    """Row groups in order, from byte 0 to the footer, without a gap."""
    footer_crc32c: int
    """Checksum of the bytes after the last row group."""
    maker: str = ""
    """Version of the derivation that made a state file. Another derivation must not use the file."""


class FileEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One live file. Of an open file only name and first commit are known; its end is the end of its last whole
    frame.
    """

    name: str
    kind: str
    """`open`: frames, growing; `frames`: frames, closed; `sealed`: Parquet, sorted by agent and seq."""
    first_commit: int
    last_commit: int = 0
    bytes: int = 0
    """Length that counts. Bytes beyond it were written by a fenced writer and are ignored."""
    sha256: str = ""
    """SHA-256 of those `bytes` bytes."""
    ids_to: int = 0
    """Time of the newest event id in the file, microseconds UTC."""
    chains: dict[str, tuple[int, str]] = {}
    """Seq and chain value (hexadecimal) at the end of each stream that has records in the file."""
    away: list[str] = []
    """Streams that have moved to another partition by the end of the file, sorted."""
    arrivals: dict[str, int] = {}
    """Streams that arrived from another partition in the file or were forked in it: seq of the last record that says
    so.
    """
    records: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of `text` and `payload` as they were appended: the base for computing amplification."""
    erasures: int = 0
    """Number of `records_erased` in a file of frames, which sealing carries out."""
    parquet: ParquetEntry | None = None
    """Parquet file of the records (sealed files only)."""
    state: ParquetEntry | None = None
    """States of the file's agents at its end, if they were derived (sealed files only)."""
    checkpoints: ParquetEntry | None = None
    """States in the middle of the file, for agents with many records in it (sealed files only)."""
    held: dict[str, list[int]] = {}
    """Seqs of the checkpoints of each such agent, ascending."""
    marks: dict[str, list[tuple[int, str]]] = {}
    """Chain checkpoints of each stream with many records in a sealed file: seqs, ascending, with the chain value at
    each.
    """
    rare: list[str] | None = None
    """Kinds of rare records in a sealed file, see `sealed.rare_kinds`; None if the file was sealed before they were
    noted.
    """
    figures: int = 0
    """Version of the derived columns of a sealed file, see `sealed.derived_columns`."""


class Manifest(msgspec.Struct, frozen=True):
    """Live files in the order of their commits; at most the last one is open."""

    number: int
    """Number of the manifest; 0 for a partition that never had a manifest."""
    epoch: int
    files: list[FileEntry]
    format: int = FORMAT_VERSION

    def closed_heads(self) -> dict[str, Head]:
        """Return the end of every stream in the closed files."""
        heads = {}
        for entry in self.files:
            away = frozenset(entry.away)
            for agent_id, (seq, chain) in entry.chains.items():
                heads[agent_id] = Head(seq, bytes.fromhex(chain), agent_id in away)
        return heads

    def covered_to(self) -> int:
        """Return the number of the last commit in the closed files, 0 for none."""
        return max((entry.last_commit for entry in self.files), default=0)

    def sealed_to(self) -> int:
        """Return the number of the last commit before the first file of frames, 0 for none."""
        frames = [entry.first_commit - 1 for entry in self.files if entry.kind != SEALED]
        return min(frames, default=self.covered_to())

    def names(self) -> set[str]:
        """Return the names of all live files."""
        derived = (part.name for entry in self.files for part in (entry.state, entry.checkpoints) if part is not None)
        return {entry.name for entry in self.files}.union(derived)

    def open_file(self) -> FileEntry | None:
        """Return the open file; None if there is none."""
        return self.files[-1] if self.files and self.files[-1].kind == OPEN else None


class _Envelope(msgspec.Struct):
    crc32c: str
    manifest: msgspec.Raw


class _ManifestFormat(msgspec.Struct):
    format: int


EMPTY = Manifest(0, 0, [])
_encoder = msgspec.json.Encoder()


def chains_of(heads: dict[str, Head]) -> dict[str, tuple[int, str]]:
    """Return the ends of streams in the form that a file entry stores."""
    return {agent_id: (head.seq, head.chain.hex()) for agent_id, head in sorted(heads.items())}


def load(partition: Partition, listed: Callable[[list[str]], None] = lambda _: None) -> Manifest:
    """Read the manifest in force; EMPTY if there is none. Raises CorruptLog, NewerFormat, StoreError.

    `listed` gets the names in the folder before the manifest is read.
    """
    for _ in range(READ_ATTEMPTS_MAX):
        with storage("list", partition.path):
            names = partition.names()
            listed(names)
            numbers = numbers_in(names, MANIFEST)
            if not numbers:
                _check_no_orphans(partition)
        if not numbers:
            return EMPTY
        path = partition.numbered(MANIFEST, numbers[-1])
        try:
            with storage("read", path):
                content = partition.disk.read(path)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # a newer manifest was published, and the owner removed this one
            raise
        return _decode(content, str(path))
    raise StoreError(f"{partition.path}: the manifest changed {READ_ATTEMPTS_MAX} times while it was read. Try again.")


def _check_no_orphans(partition: Partition) -> None:
    """Raise CorruptLog if files hold records although no manifest exists.

    A file is created before the first manifest names it, but nothing is written into the file before that.
    """
    try:
        names = [name for name in partition.disk.names(partition.path) if name.endswith(".open")]
    except FileNotFoundError:
        return
    written = [name for name in names if _is_written(partition, name)]
    # The manifests are listed again: the owner may have published the first one after the caller's listing.
    if written and not partition.numbers(MANIFEST):
        raise CorruptLog(
            f"{partition.path} has no manifest, but {', '.join(sorted(written))} holds records. Nothing was changed; "
            "restore the newest manifest from a backup."
        )


def _is_written(partition: Partition, name: str) -> bool:
    try:
        return bool(partition.disk.read(partition.path / name, 0, 1))
    except FileNotFoundError:  # the file's owner has published a manifest meanwhile, and swept
        return False


def _decode(content: bytes, path: str) -> Manifest:
    envelope = parse_json(content, _Envelope, path)
    if f"{google_crc32c.value(bytes(envelope.manifest)):08x}" != envelope.crc32c:
        raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
    version = parse_json(bytes(envelope.manifest), _ManifestFormat, path).format
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer everlog."
        )
    manifest = parse_json(bytes(envelope.manifest), Manifest, path)
    unknown = [entry.name for entry in manifest.files if entry.kind not in KINDS]
    if unknown:
        raise NewerFormat(f"{path} names files of kinds unknown to this everlog: {unknown}. Use a newer everlog.")
    return manifest


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest file."""
    inner = _encoder.encode(manifest)
    return _encoder.encode(_Envelope(f"{google_crc32c.value(inner):08x}", msgspec.Raw(inner)))


def succeed(partition: Partition, before: Manifest, epoch: int, files: list[FileEntry]) -> Manifest | None:
    """Publish the manifest after `before`. Return None if another process was first: the caller is fenced, or must read
    again.
    """
    manifest = Manifest(before.number + 1, epoch, files)
    path = partition.numbered(MANIFEST, manifest.number)
    with storage("publish", path):
        if not publish(partition.disk, path, encode(manifest), f"e{epoch:06d}-{token()}"):
            return None
        numbers = partition.numbers(MANIFEST)
        if numbers[-1:] != [manifest.number]:  # free only because it is in the past: newer manifests exist
            return None
        for number in numbers:
            if number <= manifest.number - MANIFESTS_KEPT:
                remove_if_there(partition.disk, partition.numbered(MANIFEST, number))
    return manifest


def head_in(heads: dict[str, Head], agent_id: str) -> Head:
    """Return the end of a stream; Head(0, GENESIS) if it has no records."""
    return heads.get(agent_id) or Head(0, GENESIS)

"""The manifest: which files a partition consists of. A file that it does not name does not exist.

Manifests are numbered from 1 and the highest rules. Each is written whole beside and linked to its number, which only
one process can do: publishing is a compare-and-swap. The content is one JSON object whose `crc32c` covers the text of
its `manifest`. New kinds of file are named in `kind`, and their fields have defaults.
"""

import google_crc32c
import msgspec

from everlog.events import GENESIS, CorruptLog, NewerFormat, StoreError
from everlog.store.base.contract import Head
from everlog.store.base.disk import parse_json, publish, remove_if_there, storage
from everlog.store.base.store_constants import FORMAT_VERSION
from everlog.store.partition.partition import MANIFEST, Partition, token

OPEN = "open"
FRAMES = "frames"
SEALED = "sealed"
KINDS = (OPEN, FRAMES, SEALED)
MANIFESTS_KEPT = 2
READ_ATTEMPTS_MAX = 100


class RowGroupEntry(msgspec.Struct, frozen=True, array_like=True):
    """One row group of a Parquet file: the bytes up to the next one, and the rows in them, which are sorted."""

    offset: int
    bytes: int
    crc32c: int
    rows: int
    first: tuple[str, int]
    """Agent and seq of the first row."""
    last: tuple[str, int]


class ParquetEntry(msgspec.Struct, frozen=True):
    """A Parquet file, with a checksum for each part that is read by itself. Parquet alone tells no flipped bit."""

    name: str
    bytes: int
    groups: list[RowGroupEntry]
    """In order, from byte 0 to the footer, without a gap."""
    footer_crc32c: int
    """Of the bytes after the last row group."""
    maker: str = ""
    """Of a state file: what made it. Another one must not use it."""


class FileEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One live file. An open one is known by name and first commit only; its end is where its whole frames end."""

    name: str
    kind: str
    """`open`: frames, growing; `frames`: frames, closed; `sealed`: Parquet, sorted by agent and seq."""
    first_commit: int
    last_commit: int = 0
    bytes: int = 0
    """Length that counts; bytes beyond it are those of a fenced writer and do not exist."""
    sha256: str = ""
    """Of those bytes."""
    ids_to: int = 0
    """Time of the newest event id in it, microseconds UTC."""
    chains: dict[str, tuple[int, str]] = {}
    """Of each stream that has records in it: seq and chain value (hexadecimal) at its end."""
    away: list[str] = []
    """Those of the streams that have gone to another partition at its end, sorted."""
    arrivals: dict[str, int] = {}
    """Of each stream that came from another partition in it, or was forked: the seq of the last record that says so."""
    records: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of `text` and `payload`, as they were appended: what amplification is held against."""
    erasures: int = 0
    """Of frames: how many `records_erased` are in them, which sealing carries out."""
    parquet: ParquetEntry | None = None
    """Of a sealed file: how it is read."""
    state: ParquetEntry | None = None
    """Of a sealed file: where its agents stood at its end, if that was derived."""
    checkpoints: ParquetEntry | None = None
    """Of a sealed file: where those of its agents that have many records in it stood in between."""
    held: dict[str, list[int]] = {}
    """Of each such agent: the seqs of its checkpoints, ascending."""
    marks: dict[str, list[tuple[int, str]]] = {}
    """Of each stream with many records in a sealed file: seqs in between, ascending, and the chain value at each."""


class Manifest(msgspec.Struct, frozen=True):
    """The live files in the order of their commits; at most the last one is open."""

    number: int
    """0 for a partition that never had one."""
    epoch: int
    files: list[FileEntry]
    format: int = FORMAT_VERSION

    def closed_heads(self) -> dict[str, Head]:
        """The end of every stream in the closed files."""
        heads = {}
        for entry in self.files:
            away = frozenset(entry.away)
            for agent_id, (seq, chain) in entry.chains.items():
                heads[agent_id] = Head(seq, bytes.fromhex(chain), agent_id in away)
        return heads

    def covered_to(self) -> int:
        """Number of the last commit in the closed files, 0 for none."""
        return max((entry.last_commit for entry in self.files), default=0)

    def sealed_to(self) -> int:
        """Number of the last commit before the first file of frames, 0 for none."""
        frames = [entry.first_commit - 1 for entry in self.files if entry.kind != SEALED]
        return min(frames, default=self.covered_to())

    def names(self) -> set[str]:
        """Names of all live files."""
        derived = (part.name for entry in self.files for part in (entry.state, entry.checkpoints) if part is not None)
        return {entry.name for entry in self.files}.union(derived)

    def open_file(self) -> FileEntry | None:
        """The open file, if there is one."""
        return self.files[-1] if self.files and self.files[-1].kind == OPEN else None


class _Envelope(msgspec.Struct):
    crc32c: str
    manifest: msgspec.Raw


class _ManifestFormat(msgspec.Struct):
    format: int


EMPTY = Manifest(0, 0, [])
_encoder = msgspec.json.Encoder()


def chains_of(heads: dict[str, Head]) -> dict[str, tuple[int, str]]:
    """The ends of streams as an entry keeps them."""
    return {agent_id: (head.seq, head.chain.hex()) for agent_id, head in sorted(heads.items())}


def load(partition: Partition) -> Manifest:
    """The ruling manifest; EMPTY if there is none. Raises CorruptLog, NewerFormat, StoreError."""
    for _ in range(READ_ATTEMPTS_MAX):
        with storage("list", partition.path):
            numbers = partition.numbers(MANIFEST)
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
                continue  # a newer one rules by now, and the owner removed this one
            raise
        return _decode(content, str(path))
    raise StoreError(f"{partition.path}: the manifest changed {READ_ATTEMPTS_MAX} times while it was read. Try again.")


def _check_no_orphans(partition: Partition) -> None:
    """A file is begun before the first manifest names it, but nothing is written into it before that."""
    try:
        names = [name for name in partition.disk.names(partition.path) if name.endswith(".open")]
    except FileNotFoundError:
        return
    written = [name for name in names if _is_written(partition, name)]
    if written and not partition.numbers(MANIFEST):
        raise CorruptLog(
            f"{partition.path} has no manifest, but {', '.join(sorted(written))} holds records. Nothing was changed; "
            "restore the newest manifest from a backup."
        )


def _is_written(partition: Partition, name: str) -> bool:
    try:
        return bool(partition.disk.read(partition.path / name, 0, 1))
    except FileNotFoundError:  # its owner has published a manifest by now, and swept
        return False


def _decode(content: bytes, path: str) -> Manifest:
    envelope = parse_json(content, _Envelope, path)
    if f"{google_crc32c.value(bytes(envelope.manifest)):08x}" != envelope.crc32c:
        raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
    version = parse_json(bytes(envelope.manifest), _ManifestFormat, path).format
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer one."
        )
    manifest = parse_json(bytes(envelope.manifest), Manifest, path)
    unknown = [entry.name for entry in manifest.files if entry.kind not in KINDS]
    if unknown:
        raise NewerFormat(f"{path} names files of a kind that this everlog does not know: {unknown}. Use a newer one.")
    return manifest


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest file."""
    inner = _encoder.encode(manifest)
    return _encoder.encode(_Envelope(f"{google_crc32c.value(inner):08x}", msgspec.Raw(inner)))


def succeed(partition: Partition, before: Manifest, epoch: int, files: list[FileEntry]) -> Manifest | None:
    """Publish the manifest after `before`; None if somebody else has: the caller is fenced, or must look again."""
    manifest = Manifest(before.number + 1, epoch, files)
    path = partition.numbered(MANIFEST, manifest.number)
    with storage("publish", path):
        file = publish(partition.disk, path, encode(manifest), f"e{epoch:06d}-{token()}")
        if file is None:
            return None
        file.close()
        numbers = partition.numbers(MANIFEST)
        if numbers[-1:] != [manifest.number]:  # the number was free only because it is past: others have gone on since
            return None
        for number in numbers:
            if number <= manifest.number - MANIFESTS_KEPT:
                remove_if_there(partition.disk, partition.numbered(MANIFEST, number))
    return manifest


def head_in(heads: dict[str, Head], agent_id: str) -> Head:
    """The end of a stream; Head(0, GENESIS) if it has no records."""
    return heads.get(agent_id) or Head(0, GENESIS)

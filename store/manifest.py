"""The manifest: which files a partition consists of. A file that it does not name does not exist.

Manifests are numbered from 1 and the highest rules. Each is written whole beside and linked to its number, which only
one process can do: publishing is a compare-and-swap. The content is one JSON object whose `crc32c` covers the text of
its `manifest`. Room for later kinds of file (`sealed`, `state`) is in `kind`; their fields are added with defaults.
"""

import google_crc32c
import msgspec

from events import GENESIS, CorruptLog, NewerFormat, StoreError

from .constants import FORMAT_VERSION
from .contract import Head
from .disk import publish, remove_if_there, storage
from .partition import MANIFEST, Partition, token

OPEN = "open"
FRAMES = "frames"
KINDS = (OPEN, FRAMES)
MANIFESTS_KEPT = 2
READ_ATTEMPTS_MAX = 100


class FileEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One live file. An open one is known by name and first commit only; its end is where its whole frames end."""

    name: str
    kind: str
    """`open`: frames, growing; `frames`: frames, closed."""
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


class Manifest(msgspec.Struct, frozen=True):
    """The live files in the order of their commits; at most the last one is open."""

    number: int
    """0 for a partition that never had one."""
    epoch: int
    files: list[FileEntry]
    format: int = FORMAT_VERSION

    def closed_heads(self) -> dict[str, Head]:
        """The end of every stream in the closed files."""
        return {
            agent_id: Head(seq, bytes.fromhex(chain))
            for entry in self.files
            for agent_id, (seq, chain) in entry.chains.items()
        }

    def open_file(self) -> FileEntry | None:
        """The open file, if there is one."""
        return self.files[-1] if self.files and self.files[-1].kind == OPEN else None


class _Envelope(msgspec.Struct):
    crc32c: str
    manifest: msgspec.Raw


class _FormatOnly(msgspec.Struct):
    format: int


EMPTY = Manifest(0, 0, [])
_encoder = msgspec.json.Encoder()


def closed_entry(entry: FileEntry, *, last_commit: int, length: int, sha256: str, ids_to: int,
                 heads: dict[str, Head]) -> FileEntry:  # fmt: skip
    """The open `entry` as a closed one; `heads` are the ends of the streams with records in it."""
    chains = {agent_id: (head.seq, head.chain.hex()) for agent_id, head in sorted(heads.items())}
    return FileEntry(entry.name, FRAMES, entry.first_commit, last_commit, length, sha256, ids_to, chains)


def load(partition: Partition) -> Manifest:
    """The ruling manifest; EMPTY if there is none. Raises CorruptLog, NewerFormat, StoreError."""
    for _ in range(READ_ATTEMPTS_MAX):
        with storage("list", partition.path):
            numbers = partition.numbers(MANIFEST)
        if not numbers:
            _refuse_orphans(partition)
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


def _refuse_orphans(partition: Partition) -> None:
    """A file is begun before the first manifest names it, but nothing is written into it before that."""
    with storage("list", partition.path):
        names = [name for name in partition.disk.names(partition.path) if name.endswith(".open")]
        written = [name for name in names if partition.disk.read(partition.path / name, 0, 1)]
    if written and not partition.numbers(MANIFEST):
        raise CorruptLog(
            f"{partition.path} has no manifest, but {', '.join(sorted(written))} holds records. Nothing was changed; "
            "restore the newest manifest from a backup."
        )


def _decode(content: bytes, path: str) -> Manifest:
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
        if f"{google_crc32c.value(bytes(envelope.manifest)):08x}" != envelope.crc32c:
            raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
        version = msgspec.json.decode(envelope.manifest, type=_FormatOnly).format
        if version > FORMAT_VERSION:
            raise NewerFormat(
                f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer one."
            )
        manifest = msgspec.json.decode(envelope.manifest, type=Manifest)
    except msgspec.DecodeError as error:
        raise CorruptLog(f"{path} is damaged: {error}. Nothing was changed; restore it from a backup.") from error
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
        file = publish(partition.disk, path, encode(manifest), token())
        if file is None:
            return None
        file.close()
        for number in partition.numbers(MANIFEST):
            if number <= manifest.number - MANIFESTS_KEPT:
                remove_if_there(partition.disk, partition.numbered(MANIFEST, number))
    return manifest


def head_in(heads: dict[str, Head], agent_id: str) -> Head:
    """The end of a stream; Head(0, GENESIS) if it has no records."""
    return heads.get(agent_id) or Head(0, GENESIS)

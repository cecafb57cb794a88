"""Check the file system of a store: can it keep the log's promises, and do all nodes see the same store?

A log needs four things of its file system: a sync that reaches the disk; exclusive creation of a file; a second name
that only one process can create (link); and, if several machines share it, names that all of them see as soon as they
are created. Storage that is known to lack one of them is refused. Unknown storage is accepted.

Used by `everlog up`, and by `actors/cluster`, which requires that all nodes see one store.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from everlog.events import ClusterError, EverlogError, StoreError
from everlog.store.base.names import is_bucket_url, url_of
from everlog.store.stores.file_store import CONFIGURATION, FileStore

_MOUNTS = Path("/proc/self/mountinfo")
_BOOT = Path("/proc/sys/kernel/random/boot_id")

INSTEAD = (
    "Keep the store on a local disk or, for several machines, on NFS 4.1 mounted as docs/reference/cluster.md says."
)

_OBJECTS = (
    "it keeps objects, not files: a record cannot be added to the end of a file and made durable there, and a name can "
    "be created by two processes at once"
)
_LINKS = "it cannot give a file a second name (link), by which only one process becomes the owner of a log"
_CACHED_NAMES = "it caches writes and file names for a while, so that two owners of a log would not notice each other"
_SOFT_MOUNT = (
    "it is mounted `soft`: a write that takes too long is reported as failed, and may be carried out later and "
    "overwrite newer data. Mount it `hard`"
)
_NO_SYNC = "it is mounted `nostrictsync`: a sync does not reach the server's disk. Mount it `strictsync`"

_UNSAFE = {
    _OBJECTS: "s3fs gcsfuse goofys mountpoint-s3 s3ql rclone blobfuse blobfuse2 ossfs cosfs obsfs geesefs minfs riofs "
    "yas3fs fuse_dfs alluxio-fuse",
    _LINKS: "vfat msdos exfat vboxsf",
    _CACHED_NAMES: "sshfs davfs davfs2 curlftpfs afpfs google-drive-ocamlfuse onedriver",
}
_REASONS = {name: reason for reason, names in _UNSAFE.items() for name in names.split()}

_KINDS_OF_ONE_MACHINE = (
    "ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs bcachefs nilfs2 ntfs ntfs3 fuseblk hfsplus apfs ubifs jffs2 "
    "ecryptfs overlay aufs tmpfs ramfs 9p virtiofs"
)
_ONE_MACHINE = frozenset(_KINDS_OF_ONE_MACHINE.split())
"""File systems of one machine: other machines have their own, or see cached content of it."""
_NFS = ("nfs", "nfs4")
_SMB = ("cifs", "smb3", "smbfs")
_IN_MEMORY = ("tmpfs", "ramfs")
_UNCACHED = frozenset({"lookupcache=none", "noac", "acdirmax=0"})
"""NFS options of which at least one must be set if several machines share a store: with it, no machine relies on a
cached answer to whether a name exists.
"""


class Mount(msgspec.Struct, frozen=True):
    """A mounted file system, as the kernel reports it."""

    point: str
    """Folder at which it is mounted."""
    kind: str
    """Type: `ext4`, `nfs4`, `fuse.s3fs`."""
    source: str
    options: frozenset[str] = frozenset()
    """Options of the mount and of the file system, such as `hard` and `vers=4.1`."""


class StoreIdentity(msgspec.Struct, frozen=True):
    """A store as one process sees it, for comparing what several hosts see."""

    root: str
    node: str
    """Host name of the machine, by which the owner of an epoch is identified too."""
    machine: str
    """Boot id of the running kernel: the same for all containers of a machine, different after a restart."""
    device: int
    inode: int
    """Inode of the store's configuration; 0 if there is none. A copy of the store has another inode."""
    store_id: str
    """Id of the store; empty if there is no store."""
    mount: Mount | None
    """Mount of the store; None if the system does not report mounts, or if the store is in a bucket."""
    fault: str = ""
    """Reason why a store in a bucket cannot be opened from this process; empty if it can, and for folders."""


def mount_of(path: Path, text: str | None = None) -> Mount | None:
    """Return the mount of `path`, which need not exist; None if the system does not report it.

    `text` replaces the kernel's list of mounts in tests (proc(5), mountinfo).
    """
    if text is None:
        try:
            text = os.fsdecode(_MOUNTS.read_bytes())
        except OSError:
            return None
    whole = path.expanduser().resolve()
    found: Mount | None = None
    for mount in filter(None, map(_parsed, text.splitlines())):
        under = whole.is_relative_to(mount.point)
        if under and (found is None or len(mount.point) >= len(found.point)):  # a later mount hides an earlier one
            found = mount
    return found


def _parsed(line: str) -> Mount | None:
    before, dash, after = line.partition(" - ")
    first, last = before.split(" "), after.split(" ")
    if not dash or len(first) < 6 or len(last) < 3:
        return None
    options = frozenset(first[5].split(",")) | frozenset(last[2].split(","))
    return Mount(_unescaped(first[4]), last[0], _unescaped(last[1]), options)


def _unescaped(text: str) -> str:
    """Undo the kernel's escapes: it writes space, tab, line end and backslash as a backslash and three octal digits."""
    for escape, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, sign)
    return text


def unsafe(mount: Mount) -> str:
    """Return the reason why no log can be kept on the mount, not even by one machine; empty if it can."""
    program = Path(mount.source).name.partition(":")[0] if mount.kind == "fuse" else ""
    for name in (mount.kind, mount.kind.removeprefix("fuse."), program.lower()):
        if name in _REASONS:
            return _REASONS[name]
    if mount.kind in _NFS + _SMB and mount.options & {"soft", "softerr"}:
        return _SOFT_MOUNT
    return _NO_SYNC if mount.kind in _SMB and "nostrictsync" in mount.options else ""


def storage_warning(path: Path, text: str | None = None) -> str:
    """Return a warning about keeping a store in `path`; empty if there is none. `text` is as for `mount_of`."""
    mount = None if url_of(path) else mount_of(path, text)
    if mount is None:
        return ""
    if mount.kind in _IN_MEMORY:
        return f"{mount.point} is memory ({mount.kind}): its files are gone when the machine stops"
    if "volatile" in mount.options or mount.options & {"nobarrier", "barrier=0"}:
        return f"{mount.point} ({mount.kind}) is mounted so that no sync reaches the disk: power loss loses records"
    if mount.kind == "overlay":
        return f"{mount.point} belongs to a container (overlay): its files are gone when the container is removed"
    return ""


def check_storage(path: Path, text: str | None = None) -> None:
    """Raise StoreError if the folder `path`, existing or not, is on storage that cannot keep the log's promises.

    `text` is as for `mount_of`. Writes nothing.
    """
    if url_of(path):  # `FileStore.create` tries what a bucket can do
        return
    mount = mount_of(path, text)
    reason = unsafe(mount) if mount is not None else ""
    if mount is not None and reason:
        raise StoreError(
            f"{path} is on {mount.kind}, mounted at {mount.point}, and a log cannot be kept there: {reason}. Nothing "
            f"was written. {INSTEAD}"
        )


def store_identity(root: Path, text: str | None = None) -> StoreIdentity:
    """Return the store in `root` as this process sees it. Never raises: missing facts are empty. `text` is as for
    `mount_of`.

    Call it on every host, and pass all results to `check_one_store`. For a store in a bucket it asks the service.
    """
    if url := url_of(root):
        store_id, fault = _opened(root)
        return StoreIdentity(url, os.uname().nodename, _machine(), 0, 0, store_id, None, fault)
    path = root / CONFIGURATION
    device = inode = 0
    store_id = ""
    try:
        status = path.stat()
        device, inode = status.st_dev, status.st_ino
        store_id = msgspec.json.decode(path.read_bytes(), type=_StoreIdField).store_id
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        pass
    return StoreIdentity(str(root), os.uname().nodename, _machine(), device, inode, store_id, mount_of(root, text))


def _opened(root: Path) -> tuple[str, str]:
    """Return the id of the store, and the reason why it cannot be opened; one of them is empty."""
    try:
        return FileStore(root, lambda: 0).store_id, ""
    except EverlogError as error:
        return "", str(error)


class _StoreIdField(msgspec.Struct):
    store_id: str = ""


def _machine() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return os.uname().nodename


def check_one_store(sights: Sequence[StoreIdentity]) -> None:
    """Raise ClusterError unless all hosts see one store, on storage that their machines can share.

    The error names the node that differs, what it found and what to do.
    """
    reason = sharing_fault(sights)
    if reason:
        raise ClusterError(f"{reason}. Nothing was started; the logs are as they were.")


def sharing_fault(sights: Sequence[StoreIdentity]) -> str:
    """Return the reason why hosts with these views cannot share the store; empty if they can."""
    if not sights:
        return ""
    first, machines = sights[0], {sight.machine for sight in sights}
    checks = (_another, _shared) if len(machines) > 1 else (_another,)
    for sight in sights:
        for check in checks:
            reason = check(sight, first)
            if reason:
                return reason
    return _duplicate_host_names(sights)


def _another(sight: StoreIdentity, first: StoreIdentity) -> str:
    """Return the reason why `sight` is not the store of `first`: no store, another store, or a copy; else an empty
    text.
    """
    if is_bucket_url(sight.root):
        return _another_bucket(sight, first)
    where = f"node {sight.node} finds {{}} in {sight.root}{_on(sight)}"
    if not sight.store_id:
        return f"{where.format('no store')}: mount there the storage of the other nodes, at the same path"
    if sight.store_id != first.store_id:
        found = f"the store {sight.store_id} instead of {first.store_id}, which node {first.node} has,"
        return f"{where.format(found)}: mount the same storage on all nodes, at the same path"
    same_device = sight.machine != first.machine or sight.device == first.device or not _local(sight)
    if sight.inode != first.inode or not same_device:
        return f"{where.format('a copy of the store')}, which would diverge from it: mount one storage on all nodes"
    return ""


def _another_bucket(sight: StoreIdentity, first: StoreIdentity) -> str:
    """Return what `_another` does, for a store in a bucket."""
    cure = "give all nodes the same variables of the service, the credentials among them"
    if not sight.store_id:
        return f"node {sight.node} cannot open the store {sight.root} ({sight.fault.rstrip('.')}): {cure}"
    if sight.store_id != first.store_id:
        found = f"the store {sight.store_id} instead of {first.store_id}, which node {first.node} has,"
        return f"node {sight.node} finds {found} in {sight.root}: {cure}"
    return ""


def _shared(sight: StoreIdentity, _first: StoreIdentity) -> str:
    """Return the reason why several machines cannot share the storage of `sight`; else an empty text."""
    mount = sight.mount
    if mount is None:
        return ""
    if _local(sight):
        return (
            f"the store {sight.root} is on a file system of one machine ({mount.kind}, on node {sight.node}), but "
            "hosts run on several: mount NFS 4.1 or another shared file system there, as docs/reference/cluster.md says"
        )
    if mount.kind in _SMB:
        return (
            f"the store {sight.root} is on {mount.kind} on node {sight.node}, which caches for a while that a name "
            "does not exist, so that two owners of a log would not notice each other: share it by NFS 4.1, as "
            "docs/reference/cluster.md says"
        )
    if mount.kind in _NFS and ("nocto" in mount.options or not mount.options & _UNCACHED):
        return (
            f"the store {sight.root} is on {mount.kind} on node {sight.node}, mounted so that the node caches for up "
            "to a minute that a name does not exist, and two owners of a log would not notice each other: mount it "
            "with lookupcache=none,noac and without nocto, as docs/reference/cluster.md says"
        )
    return ""


def _duplicate_host_names(sights: Iterable[StoreIdentity]) -> str:
    """Return an error if two machines have one name: an owner on one would be mistaken for a dead process on the
    other.
    """
    machines: dict[str, str] = {}
    for sight in sights:
        if machines.setdefault(sight.node, sight.machine) != sight.machine:
            return f"two machines are both called {sight.node}, which identifies owners of logs: rename one of them"
    return ""


def _local(sight: StoreIdentity) -> bool:
    return sight.mount is not None and sight.mount.kind in _ONE_MACHINE


def _on(sight: StoreIdentity) -> str:
    return f" ({sight.mount.kind})" if sight.mount is not None else ""

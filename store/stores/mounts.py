"""What file system a store is on: which ones cannot keep the log's promises, and whether all nodes see the same store.

A log needs four things of its file system: a sync that reaches the disk, a file that is made by one process only, a
second name that is given to one file only (link), and, where several machines share it, names that are seen on all of
them as soon as they are given. What is known to lack one of them is refused, and so is nothing else: storage that
nobody here has heard of is taken at its word.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from everlog.events import ClusterError, StoreError
from everlog.store.stores.file_store import CONFIGURATION

_MOUNTS = Path("/proc/self/mountinfo")
_BOOT = Path("/proc/sys/kernel/random/boot_id")

INSTEAD = "Keep the store on a local disk or, for several machines, on NFS 4.1 as docs/cluster.md mounts it."

_OBJECTS = (
    "it keeps objects, not files: a record cannot be added to the end of a file and made durable there, and no name "
    "belongs to the first who takes it"
)
_LINKS = "it cannot give a file a second name (link), by which one owner of a log is told from another"
_CACHES = "it keeps what was written and what it has seen to itself for a while, so that two owners would not meet"
_GIVES_UP = (
    "it is mounted `soft`: a write that takes too long is reported as failed, and may be carried out later, over what "
    "was written since. Mount it `hard`"
)
_NO_SYNC = "it is mounted `nostrictsync`: a sync does not reach the server's disk. Mount it `strictsync`"

_UNSAFE = {
    _OBJECTS: "s3fs gcsfuse goofys mountpoint-s3 s3ql rclone blobfuse blobfuse2 ossfs cosfs obsfs geesefs minfs riofs "
    "yas3fs fuse_dfs alluxio-fuse",
    _LINKS: "vfat msdos exfat vboxsf",
    _CACHES: "sshfs davfs davfs2 curlftpfs afpfs google-drive-ocamlfuse onedriver",
}
_REASONS = {name: reason for reason, names in _UNSAFE.items() for name in names.split()}

_KINDS_OF_ONE_MACHINE = (
    "ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs bcachefs nilfs2 ntfs ntfs3 fuseblk hfsplus apfs ubifs jffs2 "
    "ecryptfs overlay aufs tmpfs ramfs 9p virtiofs"
)
_ONE_MACHINE = frozenset(_KINDS_OF_ONE_MACHINE.split())
"""Each machine has its own, or holds on to what it has seen of another's."""
_NFS = ("nfs", "nfs4")
_SMB = ("cifs", "smb3", "smbfs")
_IN_MEMORY = ("tmpfs", "ramfs")
_UNCACHED = frozenset({"lookupcache=none", "noac", "acdirmax=0"})
"""Options of NFS of which one must be set where several machines share a store: none of them trusts an old answer to
the question whether a name is there.
"""


class Mount(msgspec.Struct, frozen=True):
    """A file system in its place, as the kernel tells of it."""

    point: str
    """The folder at which it is mounted."""
    kind: str
    """Its type: `ext4`, `nfs4`, `fuse.s3fs`."""
    source: str
    options: frozenset[str] = frozenset()
    """Of the mount and of the file system, as `hard` and `vers=4.1`."""


class StoreIdentity(msgspec.Struct, frozen=True):
    """A store as one process sees it; what hosts in several places are compared by."""

    root: str
    node: str
    """What its machine is called, which is also what an epoch's owner is told by."""
    machine: str
    """The running kernel: the same for all containers of a machine, another after it has restarted."""
    device: int
    inode: int
    """Of the store's configuration; 0 where there is none. A copy has another."""
    store_id: str
    """Empty where there is no store."""
    mount: Mount | None
    """None where the system does not say."""


def mount_of(path: Path, text: str | None = None) -> Mount | None:
    """The file system of `path`, which need not exist; None if nobody can say.

    `text`: what the kernel tells of mounts, for a test (proc(5), mountinfo); None asks it.
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
        if under and (found is None or len(mount.point) >= len(found.point)):  # what was mounted later hides the former
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
    """The kernel writes a space as a backslash and 040, and a tab, a line end and a backslash in the same way."""
    for escape, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, sign)
    return text


def unsafe(mount: Mount) -> str:
    """Why a log cannot be kept there, whoever uses it; empty if it can."""
    program = Path(mount.source).name.partition(":")[0] if mount.kind == "fuse" else ""
    for name in (mount.kind, mount.kind.removeprefix("fuse."), program.lower()):
        if name in _REASONS:
            return _REASONS[name]
    if mount.kind in _NFS + _SMB and mount.options & {"soft", "softerr"}:
        return _GIVES_UP
    return _NO_SYNC if mount.kind in _SMB and "nostrictsync" in mount.options else ""


def caveat(path: Path, text: str | None = None) -> str:
    """What somebody who keeps a store in `path` should know; empty for nothing. `text` as for `mount_of`."""
    mount = mount_of(path, text)
    if mount is None:
        return ""
    if mount.kind in _IN_MEMORY:
        return f"{mount.point} is memory ({mount.kind}): what is kept there is gone when the machine stops"
    if "volatile" in mount.options or mount.options & {"nobarrier", "barrier=0"}:
        return f"{mount.point} ({mount.kind}) is mounted so that no sync reaches the disk: power loss loses records"
    if mount.kind == "overlay":
        return f"{mount.point} belongs to a container (overlay): what is kept there is gone when it is removed"
    return ""


def check_storage(path: Path, text: str | None = None) -> None:
    """Raises StoreError if the folder `path`, there or not yet, is on storage that cannot keep the log's promises.

    `text` as for `mount_of`. Writes nothing.
    """
    mount = mount_of(path, text)
    reason = unsafe(mount) if mount is not None else ""
    if mount is not None and reason:
        raise StoreError(
            f"{path} is on {mount.kind}, mounted at {mount.point}, and a log cannot be kept there: {reason}. Nothing "
            f"was written. {INSTEAD}"
        )


def seen_by(root: Path, text: str | None = None) -> StoreIdentity:
    """The store in `root` as this process sees it; `text` as for `mount_of`. Raises nothing: what is missing is empty.

    Ask every host, and give all the answers to `check_one_store`.
    """
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


class _StoreIdField(msgspec.Struct):
    store_id: str = ""


def _machine() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return os.uname().nodename


def check_one_store(sights: Sequence[StoreIdentity]) -> None:
    """Raises ClusterError unless all of them see one store, on storage that can be shared by the machines they are on.

    Names the node that is at odds, what it found and what to do.
    """
    reason = sharing_fault(sights)
    if reason:
        raise ClusterError(f"{reason}. Nothing was started; the logs are as they were.")


def sharing_fault(sights: Sequence[StoreIdentity]) -> str:
    """Why hosts that see the store so cannot share it; empty if they can."""
    if not sights:
        return ""
    first, machines = sights[0], {sight.machine for sight in sights}
    checks = (_another, _shared) if len(machines) > 1 else (_another,)
    for sight in sights:
        for check in checks:
            reason = check(sight, first)
            if reason:
                return reason
    return _namesakes(sights)


def _another(sight: StoreIdentity, first: StoreIdentity) -> str:
    """Whether one sees a store that is not the other's."""
    where = f"node {sight.node} finds {{}} in {sight.root}{_on(sight)}"
    if not sight.store_id:
        return f"{where.format('no store')}: mount there what the other nodes keep it on, at the same path"
    if sight.store_id != first.store_id:
        found = f"the store {sight.store_id} instead of {first.store_id}, which node {first.node} has,"
        return f"{where.format(found)}: mount the same storage on all nodes, at the same path"
    same_device = sight.machine != first.machine or sight.device == first.device or not _local(sight)
    if sight.inode != first.inode or not same_device:
        return f"{where.format('a copy of the store')}, which would go its own way: mount one storage on all nodes"
    return ""


def _shared(sight: StoreIdentity, _first: StoreIdentity) -> str:
    """Whether its storage cannot be shared by several machines."""
    mount = sight.mount
    if mount is None:
        return ""
    if _local(sight):
        return (
            f"the store {sight.root} is on a file system of one machine ({mount.kind}, on node {sight.node}), but "
            "hosts run on several: mount NFS 4.1 or another shared file system there, as docs/cluster.md says"
        )
    if mount.kind in _SMB:
        return (
            f"the store {sight.root} is on {mount.kind} on node {sight.node}, which remembers for a while that a name "
            "is not there, so that two owners of a log would not meet: share it by NFS 4.1, as docs/cluster.md says"
        )
    if mount.kind in _NFS and ("nocto" in mount.options or not mount.options & _UNCACHED):
        return (
            f"the store {sight.root} is on {mount.kind} on node {sight.node}, mounted so that the node remembers for "
            "up to a minute that a name is not there, and two owners of a log would not meet: mount it with "
            "lookupcache=none,noac and without nocto, as docs/cluster.md says"
        )
    return ""


def _namesakes(sights: Iterable[StoreIdentity]) -> str:
    """Two machines of one name: an owner on the one would be taken for a dead process of the other."""
    machines: dict[str, str] = {}
    for sight in sights:
        if machines.setdefault(sight.node, sight.machine) != sight.machine:
            return f"two machines are both called {sight.node}, and owners of logs are told by that name: rename one"
    return ""


def _local(sight: StoreIdentity) -> bool:
    return sight.mount is not None and sight.mount.kind in _ONE_MACHINE


def _on(sight: StoreIdentity) -> str:
    return f" ({sight.mount.kind})" if sight.mount is not None else ""

"""Storage that cannot keep the log's promises is refused, and so is a store that not all nodes see as the same
store.
"""

import shutil
from pathlib import Path

import msgspec
import pytest

from everlog.events import ClusterError, StoreError
from everlog.store import FileStore, StoreIdentity, check_one_store, check_storage, storage_warning, store_identity
from everlog.store.stores.mounts import Mount, mount_of, sharing_fault

ROOT_LINE = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
NFS_OPTIONS = "rw,vers=4.1,hard,noac,lookupcache=none"


def told(kind: str, options: str = "rw", source: str = "server:/everlog", point: str = "/store") -> str:
    """Return the kernel's list of mounts: a root file system, and one of that kind at `point`."""
    return f"{ROOT_LINE}\n30 22 0:50 / {point} rw,relatime shared:5 - {kind} {source} {options}\n"


SAFE = [
    ("ext4", "rw", "/dev/vdb"),
    ("xfs", "rw", "/dev/vdb"),
    ("nfs4", NFS_OPTIONS, "server:/everlog"),
    ("nfs", "rw,vers=3,hard", "server:/everlog"),
    ("tmpfs", "rw", "tmpfs"),
    ("overlay", "rw", "overlay"),
    ("ceph", "rw", "mon:/"),
    ("fuse.glusterfs", "rw", "server:/volume"),
    ("fuse", "rw", "something-new"),
    ("cifs", "rw,hard", "//server/share"),
    ("9p", "rw,trans=virtio", "share"),
    ("unheard-of", "rw", "none"),
]
UNSAFE = [
    ("fuse.s3fs", "rw", "s3fs", "objects"),
    ("fuse", "rw", "mountpoint-s3", "objects"),
    ("fuse", "rw", "/usr/bin/goofys", "objects"),
    ("fuse.gcsfuse", "rw", "bucket", "objects"),
    ("fuse.rclone", "rw", "remote:bucket", "objects"),
    ("fuse.blobfuse2", "rw", "blobfuse2", "objects"),
    ("fuse.sshfs", "rw", "me@server:/", "two owners of a log would not notice each other"),
    ("vfat", "rw", "/dev/sdb1", "second name"),
    ("vboxsf", "rw", "share", "second name"),
    ("nfs4", "rw,vers=4.1,soft,timeo=600", "server:/", "`hard`"),
    ("nfs", "rw,softerr", "server:/", "`hard`"),
    ("cifs", "rw,soft", "//server/share", "`hard`"),
    ("cifs", "rw,hard,nostrictsync", "//server/share", "`strictsync`"),
]


@pytest.mark.parametrize(("kind", "options", "source"), SAFE, ids=lambda value: str(value)[:24])
def test_storage_that_can_keep_a_log_is_allowed(kind: str, options: str, source: str) -> None:
    """Only storage that is known to break a promise is refused; unknown storage is accepted."""
    check_storage(Path("/store/agents"), told(kind, options, source))


@pytest.mark.parametrize(("kind", "options", "source", "why"), UNSAFE, ids=lambda value: str(value)[:24])
def test_storage_that_cannot_keep_a_log_is_refused(kind: str, options: str, source: str, why: str) -> None:
    """The error names the folder, the kind, the reason and an alternative; only folders on that storage are
    affected.
    """
    text = told(kind, options, source)
    with pytest.raises(StoreError) as refused:
        check_storage(Path("/store/agents"), text)
    said = str(refused.value)
    assert all(words in said for words in ("/store/agents", kind, "/store", why, "Nothing was written", "NFS 4.1"))
    check_storage(Path("/storehouse"), text)


def test_the_innermost_mount_counts() -> None:
    """The innermost mount above a folder counts; of two mounts at one place, the later one."""
    text = told("fuse.s3fs")
    text += "31 30 8:1 / /store/disk rw - xfs /dev/vdb rw\n32 31 8:2 / /store/disk rw - ext4 /dev/vdc rw\n"
    found = mount_of(Path("/store/disk/sam"), text)
    assert found == Mount("/store/disk", "ext4", "/dev/vdc", frozenset({"rw"}))
    outer = mount_of(Path("/store/else"), text)
    assert outer is not None
    assert outer.kind == "fuse.s3fs"


def test_a_mount_may_have_spaces_in_its_name() -> None:
    """The kernel escapes a space in a name; the folder is found nevertheless."""
    text = told("fuse.s3fs", point="/my\\040store")
    with pytest.raises(StoreError, match="/my store"):
        check_storage(Path("/my store/agents"), text)


def test_unknown_lines_refuse_nothing() -> None:
    """With a list of mounts in an unknown format, a store can be used."""
    assert mount_of(Path("/store"), "nonsense\n\n1 2 3 - \n") is None
    check_storage(Path("/store"), "nonsense")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [("tmpfs", "rw", "gone when the machine stops"), ("overlay", "rw", "container"),
     ("overlay", "rw,volatile", "no sync reaches the disk"), ("ext4", "rw,nobarrier", "no sync reaches the disk"),
     ("ext4", "rw", "")],
)  # fmt: skip
def test_risky_storage_is_allowed_with_a_warning(kind: str, options: str, words: str) -> None:
    """Storage that is lost with the machine or the container is allowed with a warning."""
    said = storage_warning(Path("/store"), told(kind, options, "source"))
    assert words in said
    assert bool(said) == bool(words)


def test_this_machine_can_keep_a_store(tmp_path: Path) -> None:
    """The kernel of this test lists its mounts in the format that everlog parses."""
    if Path("/proc/self/mountinfo").exists():
        assert mount_of(tmp_path) is not None
    check_storage(tmp_path)


def sight(text: str, node: str = "one", **changes: object) -> StoreIdentity:
    """Return a store as a host on a node sees it."""
    seen = StoreIdentity("/store", node, f"boot-{node}", 50, 7, "store-1", mount_of(Path("/store"), text))
    return msgspec.structs.replace(seen, **changes)


SHARED = [told("nfs4", NFS_OPTIONS), told("nfs4", "rw,noac"), told("nfs4", "rw,lookupcache=none"),
          told("nfs", "rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0"), told("ceph"), told("unheard-of")]  # fmt: skip


@pytest.mark.parametrize("text", SHARED)
def test_nodes_that_share_a_store(text: str) -> None:
    """Hosts on several machines may share a store on a file system that shows each host the changes of the others at
    once.
    """
    sights = [sight(text, "one", device=50), sight(text, "two", device=61), sight(text, "three", device=50)]
    check_one_store(sights)
    check_one_store([])


@pytest.mark.parametrize("text", [told("ext4"), told("fuse.s3fs"), told("nfs4")])
def test_hosts_of_one_machine_share_any_store(text: str) -> None:
    """Hosts of one machine, in containers or not, share any file system."""
    assert sharing_fault([sight(text), sight(text), sight(text, "container", machine="boot-one")]) == ""


APART = [
    ("none", [{}, {"store_id": "", "inode": 0}], "node two finds no store in /store"),
    ("another", [{}, {"store_id": "store-2"}], "finds the store store-2 instead of store-1, which node one has"),
    ("a copy", [{}, {"inode": 8}], "finds a copy of the store"),
    ("a copy beside it", [{}, {"machine": "boot-one", "device": 51}], "finds a copy of the store"),
]


@pytest.mark.parametrize(("changes", "words"), [case[1:] for case in APART], ids=[case[0] for case in APART])
def test_nodes_that_do_not_see_one_store(changes: list[dict[str, object]], words: str) -> None:
    """A node with no store, another store or a copy is named, with its finding and what to do."""
    text = told("ext4") if "device" in changes[1] else told("nfs4", NFS_OPTIONS)
    sights = [sight(text, "one", **changes[0]), sight(text, "two", **changes[1])]
    with pytest.raises(ClusterError) as refused:
        check_one_store(sights)
    assert words in str(refused.value)
    assert "Nothing was started" in str(refused.value)


NOT_SHARED = [
    (told("ext4"), r"one machine \(ext4, on node one\)"),
    (told("overlay"), r"one machine \(overlay"),
    (told("nfs4", "rw,vers=4.1,hard"), "lookupcache=none,noac"),
    (told("nfs4", "rw,noac,nocto"), "without nocto"),
    (told("cifs", "rw,hard"), "NFS 4.1"),
]


@pytest.mark.parametrize(("text", "words"), NOT_SHARED)
def test_storage_that_machines_cannot_share(text: str, words: str) -> None:
    """A file system for one machine only is refused if hosts run on several machines, with the reason and the cure."""
    with pytest.raises(ClusterError, match=words):
        check_one_store([sight(text), sight(text, "two")])


def test_two_machines_of_one_name() -> None:
    """An owner is identified by its machine's name, so two machines of one name would take each other's owners for
    dead.
    """
    text = told("nfs4", NFS_OPTIONS)
    assert "both called one" in sharing_fault([sight(text), sight(text, machine="boot-two")])


def test_what_this_process_sees(tmp_path: Path) -> None:
    """A store is identified with its id; a copy is distinguished from the original, and a folder without a store has no
    id.
    """
    FileStore.create(tmp_path / "a", lambda: 1, "store-1")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "everlog.json").write_bytes(b"\xff nonsense")
    seen = {name: store_identity(tmp_path / name) for name in "abcd"}
    assert seen["a"].store_id == "store-1"
    assert sharing_fault([seen["a"], store_identity(tmp_path / "a")]) == ""
    assert "a copy" in sharing_fault([seen["a"], seen["b"]])
    assert "no store" in sharing_fault([seen["a"], seen["c"]])
    assert "no store" in sharing_fault([seen["a"], seen["d"]])
    assert msgspec.json.decode(msgspec.json.encode(seen["a"]), type=StoreIdentity) == seen["a"]


def test_nodes_that_share_a_bucket() -> None:
    """Machines that open one store in a bucket share it, wherever their own folders are; a node that cannot open it is
    named with the reason, and so is one whose service has another store at that address.
    """
    one, two = (StoreIdentity("s3://b/p", node, f"boot-{node}", 0, 0, "store-1", None) for node in ("one", "two"))
    assert sharing_fault([one, two]) == ""
    reason = sharing_fault([one, msgspec.structs.replace(two, store_id="", fault="the credentials are refused.")])
    assert reason.startswith("node two cannot open the store s3://b/p (the credentials are refused): give all nodes")
    other = msgspec.structs.replace(two, store_id="store-2")
    assert "finds the store store-2 instead of store-1" in sharing_fault([one, other])

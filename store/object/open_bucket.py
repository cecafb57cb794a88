"""Open a bucket as a disk, and check that a store can be made there.

Used by `FileStore` for folders that stand for buckets, see `names.folder_of`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.store.base.disk import RealDisk
from everlog.store.base.names import url_of
from everlog.store.object.bucket import PAUSES_S, Bucket, BucketError, ObjectTag, again, wait
from everlog.store.object.bucket_service import service_of
from everlog.store.object.object_disk import ObjectDisk, foreign_keys
from everlog.store.object.obstore_bucket import ObstoreBucket, open_bucket
from everlog.store.partition.partition import token

PROBE = "everlog-probe"
"""Beginning of the names of objects with which a bucket is tried."""
TRIALS = 3
"""Puts of which all must replace an object before a bucket counts as one without conditional writes."""


def bucket_disk(root: Path) -> ObjectDisk:
    """Return the disk of the bucket that the folder `root` stands for; create the folder, which may have vanished.
    Raises UsageError, OSError.
    """
    RealDisk().make_dirs(root)
    return ObjectDisk(open_bucket(url_of(root)), root, prepare=check_bucket)


def check_bucket(bucket: Bucket) -> None:
    """Raise BucketError if no store can be made under this prefix, as far as trying shows. Leaves nothing behind, and
    deletes what trials left that were interrupted.
    """
    keys = [found.key for found in bucket.objects("")]
    foreign = foreign_keys(key for key in keys if not key.startswith(PROBE))
    if foreign:
        raise BucketError(
            f"{bucket.url} holds {len(foreign)} objects that are not everlog's, for example {foreign[0]}",
            "Nothing was changed. Give the store a prefix of its own.",
        )
    bucket.delete([key for key in keys if key.startswith(PROBE)])
    with _probe(bucket) as (key, tag):
        # Another process that makes the store at the same time may take the object for a left one, and delete it.
        if all(_creates(bucket, key) for _ in range(TRIALS)):
            raise BucketError(
                f"{bucket.url} replaced an object although it was asked to create a new one only "
                f"({service_of(bucket.url).condition})",
                "Without conditional writes two processes could both believe that they own a log. Nothing was stored. "
                "Use a service that has them.",
            )
    _check_versions(bucket, key, tag, "Nothing was stored. Switch versioning off for this bucket, or use another.")


def check_forgets(bucket: Bucket) -> None:
    """Raise BucketError if the bucket keeps what is deleted from it: versioning was switched on after all. Deletes what
    trials left that were interrupted.
    """
    cure = (
        "Nothing was erased. Switch versioning off, delete the old versions that it kept under this prefix, and erase "
        "again."
    )

    def attempt() -> None:
        bucket.delete([name for name in bucket.children("") if name.startswith(PROBE)])
        with _probe(bucket) as (key, tag):
            pass
        _check_versions(bucket, key, tag, cure)

    again(attempt, wait, PAUSES_S)


@contextmanager
def _probe(bucket: Bucket) -> Iterator[tuple[str, ObjectTag]]:
    """Keep an object in the bucket while the block runs; yield its key and its tag."""
    key = f"{PROBE}-{token()}"
    try:
        bucket.put(key, b"1")
        yield key, _tag(bucket, key)
    finally:  # also if it is unknown whether the put was carried out
        again(lambda: bucket.delete([key]), wait, PAUSES_S)


def _creates(bucket: Bucket, key: str) -> bool:
    """Return True if a put that should create an object succeeded. The put is repeated while the service asks to wait:
    that of Google may do so, because the same object was written a moment ago.
    """
    try:
        again(lambda: bucket.put_new(key, b"2"), wait, PAUSES_S)
    except FileExistsError:
        return False
    return True


def _tag(bucket: Bucket, key: str) -> ObjectTag:
    """Return the tag of an object; an empty one if the bucket, a simulated one, has no versions."""
    return (isinstance(bucket, ObstoreBucket) and bucket.tag(key)) or ("", "")


def _check_versions(bucket: Bucket, key: str, tag: ObjectTag, cure: str) -> None:
    if isinstance(bucket, ObstoreBucket) and bucket.keeps(key, tag):
        raise BucketError(
            f"{bucket.url} keeps old versions of objects, so that erased records could still be read", cure
        )

"""Open a bucket as a disk, and check that a store can be made there.

Used by `FileStore` for folders that stand for buckets, see `names.folder_of`.
"""

from pathlib import Path

from everlog.store.base.disk import RealDisk
from everlog.store.base.names import url_of
from everlog.store.object.bucket import Bucket, BucketError, ObjectTag
from everlog.store.object.bucket_service import service_of
from everlog.store.object.object_disk import ObjectDisk, foreign_keys
from everlog.store.object.obstore_bucket import ObstoreBucket, open_bucket
from everlog.store.partition.partition import token

PROBE = "everlog-probe"


def bucket_disk(root: Path) -> ObjectDisk:
    """Return the disk of the bucket that the folder `root` stands for; create the folder, which may have vanished.
    Raises UsageError, OSError.
    """
    RealDisk().make_dirs(root)
    return ObjectDisk(open_bucket(url_of(root)), root, prepare=check_bucket)


def check_bucket(bucket: Bucket) -> None:
    """Raise BucketError if no store can be made under this prefix, as far as trying shows. Leaves nothing behind."""
    foreign = foreign_keys(found.key for found in bucket.objects("") if not found.key.startswith(PROBE))
    if foreign:
        raise BucketError(
            f"{bucket.url} holds {len(foreign)} objects that are not everlog's, for example {foreign[0]}",
            "Nothing was changed. Give the store a prefix of its own.",
        )
    key = f"{PROBE}-{token()}"
    bucket.put(key, b"1")
    tag = _tag(bucket, key)
    try:
        bucket.put_new(key, b"2")
    except FileExistsError:
        pass
    else:
        raise BucketError(
            f"{bucket.url} replaced an object although it was asked to create a new one only "
            f"({service_of(bucket.url).condition})",
            "Without conditional writes two processes could both believe that they own a log. Nothing was stored. Use "
            "a service that has them.",
        )
    finally:
        bucket.delete([key])
    _check_versions(bucket, key, tag, "Nothing was stored. Switch versioning off for this bucket, or use another.")


def check_forgets(bucket: Bucket) -> None:
    """Raise BucketError if the bucket keeps what is deleted from it: versioning was switched on after all."""
    key = f"{PROBE}-{token()}"
    bucket.put(key, b"1")
    tag = _tag(bucket, key)
    bucket.delete([key])
    _check_versions(
        bucket,
        key,
        tag,
        "Nothing was erased. Switch versioning off, delete the old versions that it kept under this prefix, and erase "
        "again.",
    )


def _tag(bucket: Bucket, key: str) -> ObjectTag:
    """Return the tag of an object; an empty one if the bucket, a simulated one, has no versions."""
    return (isinstance(bucket, ObstoreBucket) and bucket.tag(key)) or ("", "")


def _check_versions(bucket: Bucket, key: str, tag: ObjectTag, cure: str) -> None:
    if isinstance(bucket, ObstoreBucket) and bucket.keeps(key, tag):
        raise BucketError(
            f"{bucket.url} keeps old versions of objects, so that erased records could still be read", cure
        )

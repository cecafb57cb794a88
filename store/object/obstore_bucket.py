"""Reach a bucket of S3, Google Cloud Storage or Azure, or of what speaks their protocols, through obstore.

obstore is imported when a store in a bucket is opened, never before. It makes one attempt at each request, because an
attempt of unknown outcome has to be told from a failed one; `ObjectDisk` repeats it. Settings come from the variables
and files that other tools for the service use (see `bucket_service`); none is ever logged or part of an error.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from everlog.events import UsageError
from everlog.store.base.disk import Bytes
from everlog.store.object.bucket import BucketError, ListedObject, ObjectTag, UnknownOutcome, missing, taken
from everlog.store.object.bucket_service import check_endpoint, service_of

EXTRA = "everlog[object]"
TIMEOUT = "30s"
_PARALLEL_MAX = 16
_DENIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "403 Forbidden", "401 Unauthorized",
            "CredentialsProvider")  # fmt: skip
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_SKEWED = ("RequestTimeTooSkewed", "Request date header too old")


def open_bucket(url: str) -> "ObstoreBucket":
    """Return the bucket at `url` (s3://, gs:// or az://BUCKET/PREFIX). Sends nothing yet. Raises UsageError."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise UsageError(f"A store in a bucket needs obstore, which is missing: pip install '{EXTRA}'.") from error
    service = service_of(url)
    check_endpoint(service, os.environ)
    # `timeout` bounds one attempt; without retries each failure is seen here.
    options: dict[str, Any] = {
        "client_options": {"timeout": TIMEOUT, "allow_http": True},
        "retry_config": {"max_retries": 0},
    }
    try:
        return ObstoreBucket(from_url(url, **options), url)
    except (BaseError, OSError, ValueError):  # its text may hold a part of a key
        raise UsageError(
            f"The settings of {service.name} in the environment cannot be used for {url}. Nothing was sent. Check "
            f"{service.credentials}."
        ) from None


class Refused(BucketError):
    """A request that the service refused because of its sender."""


class ObstoreBucket:
    """A `Bucket` of a store that obstore knows. Thread-safe."""

    def __init__(self, store: Any, url: str) -> None:
        """Wrap `store`, an object of obstore whose prefix is that of `url`."""
        self.url = url
        self._store = store

    def put_new(self, key: str, content: Bytes) -> None:
        with _errors(self.url, key, writes=True):
            self._store.put(key, bytes(content), mode="create", use_multipart=False)

    def put(self, key: str, content: Bytes) -> None:
        with _errors(self.url, key, writes=True):
            self._store.put(key, bytes(content), use_multipart=False)

    def put_over(self, key: str, content: Bytes, tag: ObjectTag) -> None:
        condition = {name: value for name, value in zip(("e_tag", "version"), tag, strict=True) if value}
        with _errors(self.url, key, writes=True):
            self._store.put(key, bytes(content), mode=condition, use_multipart=False)

    def keeps(self, key: str, tag: ObjectTag) -> bool:
        """Return True if the service keeps the version with that tag of an object that was replaced or deleted since.
        Raises BucketError.
        """
        version = tag[1]
        if version in ("", "null"):
            return False
        if not service_of(self.url).counts_versions:
            return True
        try:
            with _errors(self.url, key):
                self._store.get(key, options={"version": version})
        except FileNotFoundError:
            return False
        return True

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        from obstore.exceptions import BaseError

        with _errors(self.url, key):
            if not start and length is None:
                return bytes(self._store.get(key).bytes())
            if length == 0:
                return b""
            wanted = {"offset": start} if length is None else (start, start + length)
            try:
                return bytes(self._store.get(key, options={"range": wanted}).bytes())
            except BaseError:  # services refuse a range that begins at the end, and each says so in its own words
                if start < self._store.head(key)["size"]:
                    raise
                return b""

    def get_tagged(self, key: str) -> tuple[bytes, ObjectTag]:
        with _errors(self.url, key):
            found = self._store.get(key)
            return bytes(found.bytes()), _tag_of(found.meta)

    def tag(self, key: str) -> ObjectTag | None:
        try:
            with _errors(self.url, key):
                return _tag_of(self._store.head(key))
        except FileNotFoundError:
            return None

    def get_all(self, keys: Sequence[str]) -> list[bytes]:
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(keys), _PARALLEL_MAX)) as pool:
            return list(pool.map(self.get, keys))

    def size(self, key: str) -> int | None:
        try:
            with _errors(self.url, key):
                return int(self._store.head(key)["size"])
        except FileNotFoundError:
            return None
        except Refused:
            self.children("")  # the answer to a look has no reason in it, and the answer to a listing has
            raise

    def objects(self, folder: str) -> list[ListedObject]:
        with _errors(self.url, folder):
            chunks = list(self._store.list(folder or None))
        return sorted(ListedObject(found["path"], found["size"]) for chunk in chunks for found in chunk)

    def children(self, folder: str) -> list[str]:
        with _errors(self.url, folder):
            found = self._store.list_with_delimiter(folder or None)
        paths = [*found["common_prefixes"], *(entry["path"] for entry in found["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                with _errors(self.url, key, writes=True):
                    self._store.delete(key)
            except FileNotFoundError:
                continue


def _tag_of(meta: Any) -> ObjectTag:
    return meta["e_tag"] or "", meta["version"] or ""


@contextmanager
def _errors(url: str, key: str, *, writes: bool = False) -> Iterator[None]:
    """Turn the errors of obstore into those of `Bucket`. The reason of an unknown error is never passed on: it may
    contain a signed address.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileExistsError as error:
        raise taken(f"{url}/{key}") from error
    except (BaseError, OSError, ValueError) as error:
        raise _translated(error, url, key, writes) from None


def _translated(error: Exception, url: str, key: str, writes: bool) -> Exception:
    import obstore.exceptions as kinds

    text = str(error)
    service = service_of(url)
    place = f"{url}/{key}" if key else url
    if isinstance(error, (kinds.AlreadyExistsError, kinds.PreconditionError)):
        return taken(place)
    if any(words in text for words in _SKEWED):
        return BucketError(
            "the clock of this machine differs from the clock of the service by more than it accepts",
            "Nothing was changed. Set the clock, for example with NTP, then try again.",
        )
    if any(code in text for code in _NO_BUCKET):
        return BucketError(f"there is no such bucket: {url}", "Create the bucket or container, or correct --store.")
    if isinstance(error, (kinds.NotFoundError, FileNotFoundError)):
        return missing(place)
    denied = isinstance(error, (kinds.PermissionDeniedError, kinds.UnauthenticatedError, PermissionError))
    if denied or any(code in text for code in _DENIALS):
        return Refused(
            "the service refused the credentials, or they do not allow this request",
            f"Check {service.credentials}: list, get, put and delete.",
        )
    if isinstance(error, kinds.BaseError):
        conflict = "409 Conflict" in text or "ConditionalRequestConflict" in text
        return UnknownOutcome(
            "another request for the object was being carried out" if conflict else
            f"the service did not answer as expected{' (the request may have been carried out)' if writes else ''}",
            f"Check the network, {' and '.join(service.endpoints)}, and the state of the service, then try again.",
        )  # fmt: skip
    return error

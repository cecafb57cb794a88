"""Reach a bucket of S3, or of what speaks its protocol, through obstore.

obstore is imported when a store in a bucket is opened, never before. It makes one attempt at each request, because an
attempt of unknown outcome has to be told from a failed one; `ObjectDisk` repeats it. Settings come from the variables
and files that other tools for the service use (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and so on); none is ever logged or
part of an error.
"""

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from everlog.events import UsageError
from everlog.store.base.disk import Bytes
from everlog.store.object.bucket import BucketError, ListedObject, ObjectTag, UnknownOutcome, missing, taken

EXTRA = "everlog[object]"
TIMEOUT = "30s"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables from which obstore takes the address of a service."""
PORT_MAX = 65535
_ADDRESS = re.compile(
    r"https?://(?:[a-z0-9._-]+|\[(?P<ip>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?(?:/[a-z0-9/._~%!$&'()*+,;=:-]*)?",
    re.IGNORECASE,
).fullmatch
_PARALLEL_MAX = 16
_DENIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "403 Forbidden", "CredentialsProvider")


def open_bucket(url: str) -> "ObstoreBucket":
    """Return the bucket at `url`, s3://BUCKET/PREFIX. Asks the service nothing yet. Raises UsageError, BucketError."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise UsageError(f"A store in a bucket needs obstore, which is missing: pip install '{EXTRA}'.") from error
    check_endpoint(os.environ)
    # `timeout` bounds one attempt; without retries each failure is seen here.
    options: dict[str, Any] = {
        "client_options": {"timeout": TIMEOUT, "allow_http": True},
        "retry_config": {"max_retries": 0},
    }
    with _errors(url, ""):
        return ObstoreBucket(from_url(url, **options), url)


def check_endpoint(environment: Mapping[str, str]) -> None:
    """Raise UsageError if the address of the service, as the variables name it, is none: obstore would end the thread
    that sends the first request.
    """
    for name in ENDPOINTS:
        value = environment.get(name)
        if value is None or _is_address(value):
            continue
        found = "a user name or a password in it" if "@" in value else repr(value) if value else "nothing"
        raise UsageError(
            f"The variable {name} must be the address of a service, as http://127.0.0.1:9000 or "
            f"https://s3.example.com, but has {found}. Nothing was sent. Correct it, or unset it to use S3 of AWS."
        )


def _is_address(text: str) -> bool:
    found = _ADDRESS(text)
    if found is None or int(found["port"] or 0) > PORT_MAX:
        return False
    try:
        return found["ip"] is None or bool(ipaddress.IPv6Address(found["ip"]))
    except ValueError:
        return False


class Refused(BucketError):
    """A request that the service refused because of its sender."""


class ObstoreBucket:
    """A `Bucket` of a store that obstore knows. Thread-safe."""

    def __init__(self, store: Any, url: str) -> None:
        """Wrap `store`, an object of obstore whose prefix is that of `url`."""
        self.url = url
        self.keeps_versions = False
        """True once the service has given a version to an object: it keeps what is replaced and deleted."""
        self._store = store

    def put_new(self, key: str, content: Bytes) -> None:
        with _errors(self.url, key, writes=True):
            self._note(self._store.put(key, bytes(content), mode="create", use_multipart=False))

    def put(self, key: str, content: Bytes) -> None:
        with _errors(self.url, key, writes=True):
            self._note(self._store.put(key, bytes(content), use_multipart=False))

    def put_over(self, key: str, content: Bytes, tag: ObjectTag) -> None:
        condition = {name: value for name, value in zip(("e_tag", "version"), tag, strict=True) if value}
        with _errors(self.url, key, writes=True):
            self._note(self._store.put(key, bytes(content), mode=condition, use_multipart=False))

    def _note(self, result: Any) -> None:
        if result.get("version") not in (None, "null"):
            self.keeps_versions = True

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
    place = f"{url}/{key}" if key else url
    if isinstance(error, (kinds.AlreadyExistsError, kinds.PreconditionError)):
        return taken(place)
    if "RequestTimeTooSkewed" in text:
        return BucketError(
            "the clock of this machine differs from the clock of the service by more than it accepts "
            "(RequestTimeTooSkewed)",
            "Nothing was changed. Set the clock, for example with NTP, then try again.",
        )
    if "NoSuchBucket" in text:
        return BucketError(f"there is no such bucket: {url}", "Create the bucket, or correct --store.")
    if isinstance(error, (kinds.NotFoundError, FileNotFoundError)):
        return missing(place)
    denied = isinstance(error, (kinds.PermissionDeniedError, kinds.UnauthenticatedError, PermissionError))
    if denied or any(code in text for code in _DENIALS):
        return Refused(
            "the service refused the credentials, or they do not allow this request",
            "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the rights on the bucket: list, "
            "get, put and delete.",
        )
    if isinstance(error, kinds.BaseError):
        conflict = "409" in text or "ConditionalRequestConflict" in text
        return UnknownOutcome(
            "another request for the object was being carried out" if conflict else
            f"the service did not answer as expected{' (the request may have been carried out)' if writes else ''}",
            "Check the network, AWS_ENDPOINT_URL and the state of the service, then try again.",
        )  # fmt: skip
    return error

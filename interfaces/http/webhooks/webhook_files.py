"""Keep the webhooks of a store: what each is, and how far its receiver is.

    <root>/webhooks/<id>.json     what was asked for, and the secret; never changes
    <root>/webhooks/<id>.state    position, and the portion that is being delivered
    <root>/webhooks/<id>.lock     held by the server that delivers; of a store in a bucket: claims/webhook-<id>

The state is changed only by who knows what it was: a server that lost its webhook to another one cannot set it back.
All files are private to the owner of the store, as its other secrets are.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from everlog.events import CorruptLog
from everlog.store import names_beside, read_whole, remove_whole, stamp_of, url_of, write_whole
from everlog.store.base.disk import storage
from everlog.store.base.permissions import create_file
from everlog.store.base.store_constants import CLAIMS
from everlog.store.stores import claims
from everlog.store.stores.side_files import side_files_of

FOLDER = "webhooks"
T = TypeVar("T")


class Webhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver of records."""

    id: str
    url: str
    secret: str
    """`whsec_` and the key in base64."""
    tenant: str = ""
    agents: Sequence[str] = ()
    types: Sequence[str] = ()
    created_at: int
    """Microseconds UTC."""


class PendingPortion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A portion that is being delivered: every try sends the same records under the same id."""

    partition: str
    commit: int
    id: str


class WebhookState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Progress of the receiver of a webhook."""

    position: str
    """Token of the feed up to which the receiver has acknowledged everything."""
    pending: PendingPortion | None = None
    delivered: int = 0
    """Deliveries that were acknowledged."""
    failing_since: int | None = None
    """Time of the first failure since the last success, microseconds UTC."""
    last_error: str = ""
    parked: bool = False


class DeliveryRight(Protocol):
    """The right to deliver for one webhook, which one server has at a time. Methods raise StoreError."""

    beat_s: float | None
    """Seconds after which the holder calls `keep` again; None: never."""

    def take(self) -> bool:
        """Return True if this server may deliver now."""
        ...

    def keep(self) -> bool:
        """Return True if this server still has the right."""
        ...

    def free(self) -> None:
        """Let another server take the right at once."""
        ...


class WebhookFiles:
    """The webhooks of one store."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / FOLDER
        self.is_in_bucket = bool(url_of(root))

    def add(self, webhook: Webhook, position: str) -> None:
        """Add a webhook, durably. Raises StoreError."""
        self._write(self._folder / f"{webhook.id}.state", WebhookState(position=position))
        self._write(self._folder / f"{webhook.id}.json", webhook)

    def all(self) -> list[Webhook]:
        """Return all webhooks, oldest first. Raises StoreError, CorruptLog."""
        names = [name for name in names_beside(self._folder) if name.endswith(".json")]
        found = (self._read(self._folder / name, Webhook) for name in names)
        return sorted((webhook for webhook in found if webhook is not None), key=lambda one: (one.created_at, one.id))

    def find(self, webhook_id: str) -> Webhook | None:
        """Return a webhook by its id; None if there is none."""
        if not webhook_id.replace("-", "").isalnum():  # nothing that could lead out of the folder
            return None
        return self._read(self._folder / f"{webhook_id}.json", Webhook)

    def exists(self, webhook_id: str) -> bool:
        """Return True unless the webhook was removed."""
        return stamp_of(self._folder / f"{webhook_id}.json") is not None

    def state(self, webhook_id: str) -> WebhookState | None:
        """Return the state of a webhook; None if it was removed."""
        return self._read(self._folder / f"{webhook_id}.state", WebhookState)

    def change(self, webhook_id: str, before: WebhookState, after: WebhookState) -> bool:
        """Replace the state `before`, durably. Return False if it is another one, or the webhook was removed. Raises
        StoreError.
        """
        path = self._folder / f"{webhook_id}.state"
        files = side_files_of(path)
        found = files.read(path)
        return found is not None and self._parsed(path, found[0], WebhookState) == before and files.replace(
            path, _content(after), found
        )  # fmt: skip

    def remove(self, webhook_id: str) -> None:
        """Remove a webhook: no server begins another delivery."""
        for ending in ("json", "state"):
            remove_whole(self._folder / f"{webhook_id}.{ending}")
        remove_whole(self._lock(webhook_id))  # the id is never used again

    def right(self, webhook_id: str, server: str, now_s: Callable[[], float]) -> DeliveryRight:
        """Return the right of a server to deliver for a webhook, not taken yet. `server` is another text for each
        server; `now_s` returns seconds of a clock that never goes back.
        """
        path = self._lock(webhook_id)
        if not self.is_in_bucket:
            return LockedFile(path)
        who = f"process {os.getpid()} on {os.uname().nodename}"
        return ClaimedObject(claims.Claim(side_files_of(path), path, server, who, now_s))

    def _lock(self, webhook_id: str) -> Path:
        if self.is_in_bucket:
            return self._root / CLAIMS / f"webhook-{webhook_id}"
        return self._folder / f"{webhook_id}.lock"

    def _read(self, path: Path, kind: type[T]) -> T | None:
        content = read_whole(path)
        return None if content is None else self._parsed(path, content, kind)

    def _parsed(self, path: Path, content: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise CorruptLog(f"{path} is damaged ({error}): restore it, or remove the webhook.") from error

    def _write(self, path: Path, value: object) -> None:
        write_whole(path, _content(value))


def _content(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


class LockedFile:
    """The right in a folder: the lock of a file, which the system takes from a process that ends."""

    beat_s: float | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def take(self) -> bool:
        """Lock the file if no other server has; see `DeliveryRight`."""
        with storage("lock a webhook in", self._path.parent):
            fd = create_file(self._path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def keep(self) -> bool:
        """Return True: the lock stays until it is freed."""
        return True

    def free(self) -> None:
        """Unlock the file."""
        os.close(self._fd)


class ClaimedObject:
    """The right in a bucket: a claim, which another server takes from one that has gone."""

    beat_s: float | None = claims.BEAT_S

    def __init__(self, claim: claims.Claim) -> None:
        self._claim = claim

    def take(self) -> bool:
        """Take the claim if it is free; see `DeliveryRight`."""
        return not self._claim.take()

    def keep(self) -> bool:
        """Renew the claim."""
        return self._claim.keep()

    def free(self) -> None:
        """Free the claim."""
        self._claim.free()

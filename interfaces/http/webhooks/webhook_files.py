"""Keep the webhooks of a store: what each is, and how far its receiver is.

    <root>/webhooks/<id>.json     what was asked for, and the secret; never changes
    <root>/webhooks/<id>.state    position, and the portion that is being delivered
    <root>/webhooks/<id>.lock     held by the server that delivers

Only the holder of the lock writes the state. All files are private to the owner of the store, as its other secrets are.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from everlog.events import CorruptLog
from everlog.store import names_beside, read_whole, remove_whole, stamp_of, write_whole
from everlog.store.base.disk import storage
from everlog.store.base.permissions import create_file

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


class WebhookFiles:
    """The webhooks of one store."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def add(self, webhook: Webhook, position: str) -> None:
        """Add a webhook, durably. Raises StoreError."""
        self.save(webhook.id, WebhookState(position=position))
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

    def save(self, webhook_id: str, state: WebhookState) -> None:
        """Write the state of a webhook, durably. The caller holds its lock. Raises StoreError."""
        self._write(self._folder / f"{webhook_id}.state", state)

    def remove(self, webhook_id: str) -> None:
        """Remove a webhook: no server begins another delivery."""
        for ending in ("json", "state"):
            remove_whole(self._folder / f"{webhook_id}.{ending}")
        with storage("remove a webhook in", self._folder):  # the id is never used again, so the lock's file can go too
            (self._folder / f"{webhook_id}.lock").unlink(missing_ok=True)

    @contextmanager
    def held(self, webhook_id: str, *, wait: bool = False) -> Iterator[bool]:
        """Hold the lock of a webhook while the block runs. Yield False if another server holds it."""
        with storage("lock a webhook in", self._folder):
            fd = create_file(self._folder / f"{webhook_id}.lock", os.O_RDWR)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                mine = True
            except BlockingIOError:
                mine = False
            yield mine
        finally:
            os.close(fd)

    def _read(self, path: Path, kind: type[T]) -> T | None:
        content = read_whole(path)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise CorruptLog(f"{path} is damaged ({error}): restore it, or remove the webhook.") from error

    def _write(self, path: Path, value: object) -> None:
        write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

"""Keys of a server: who may do what, and whose agents they see. A file in the store holds the SHA-256 of each key.

The key itself is shown once, when it is created. Servers read the file again when it changes, so a key that was revoked
is refused at the next request, by every server in front of the store.

Used by the guards of every surface and by `everlog keys`.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from everlog.events import BadInput
from everlog.store import FileStamp, change_whole, read_whole, stamp_of

Role = Literal["read", "talk", "admin"]
"""Permission of a key: `read` agents; `talk` to them and edit their memory; `admin`: also create, delete and erase
them, and what concerns the whole tenant.
"""
ROLES: Sequence[Role] = ("read", "talk", "admin")
PREFIX = "evl_"
"""Beginning of every key, so that scanners of published code recognize one."""
TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
NAME_CHARS_MAX = 100
FILE = "keys.json"
LINK_NAME, SESSION_NAME = "one-time link to the console", "browser"
"""Names of the key in a one-time link, which opens nothing but the console, and of the key that replaces it."""


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One key, without the key itself."""

    id: str
    """Id that records name: see `Event.by`."""
    name: str
    """Purpose of the key, in words of its owner."""
    sha256: str
    role: Role
    tenant: str = ""
    """Tenant whose agents the key sees; empty: the operator, who sees all."""
    created_at: int
    """Microseconds UTC."""
    expires_at: int | None = None
    """Time from which the key is refused, microseconds UTC; None: never."""
    revoked_at: int | None = None

    def is_valid(self, now: int) -> bool:
        """Return True if the key counts at a time, microseconds UTC."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class _KeyFile(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[KeyEntry] = []


class KeyRing:
    """The keys of one store."""

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        self._read: FileStamp | None = None
        self._keys: dict[str, KeyEntry] = {}

    def all(self) -> list[KeyEntry]:
        """Return all keys, revoked and expired ones too, oldest first. Raises BadInput for a damaged file."""
        self._refresh()
        return sorted(self._keys.values(), key=lambda entry: (entry.created_at, entry.id))

    def find(self, key: str, now: int) -> KeyEntry | None:
        """Return the entry of a key that counts at a time, microseconds UTC; None if there is none."""
        self._refresh()
        digest = digest_of(key)
        found: KeyEntry | None = None
        # Every entry is compared, in constant time: the answer's time tells nothing about the keys.
        for entry in self._keys.values():
            if hmac.compare_digest(entry.sha256, digest) and entry.is_valid(now):
                found = entry
        return found

    def create(
        self, name: str, role: Role, *, key: str, key_id: str, now: int, tenant: str = "", expires_at: int | None = None
    ) -> KeyEntry:
        """Add a key and return its entry. `key`: the key, from `PREFIX` and a secret. Raises BadInput."""
        if role not in ROLES:
            raise BadInput(f"A key's role is {', '.join(ROLES)}, not {role!r}. No key was created.")
        if tenant and not TENANT.fullmatch(tenant):
            raise BadInput(
                f"A tenant is named by up to 32 of a-z, 0-9 and -, beginning with a letter or digit, not {tenant!r}. "
                "No key was created."
            )
        if not name.strip() or len(name) > NAME_CHARS_MAX:
            raise BadInput(f"A key's name has 1 to {NAME_CHARS_MAX} characters. No key was created.")
        entry = KeyEntry(
            id=key_id, name=name, sha256=digest_of(key), role=role, tenant=tenant, created_at=now, expires_at=expires_at
        )
        self._change(lambda keys: [*keys, entry])
        return entry

    def make_link(self, *, key: str, key_id: str, now: int, expires_at: int) -> KeyEntry:
        """Add the key of a one-time link, for the operator, and remove links and browsers' keys that have expired."""
        entry = KeyEntry(
            id=key_id, name=LINK_NAME, sha256=digest_of(key), role="admin", created_at=now, expires_at=expires_at
        )
        passing = (LINK_NAME, SESSION_NAME)
        self._change(lambda keys: [*(one for one in keys if one.name not in passing or one.is_valid(now)), entry])
        return entry

    def use_link(self, link: str, *, key: str, key_id: str, now: int, expires_at: int) -> KeyEntry | None:
        """Replace the key of a one-time link by the key of a browser, and return its entry; None if the link was used
        or has expired. Of several callers, one gets the entry.
        """
        known = self.find(link, now)
        if known is None or known.name != LINK_NAME:
            return None  # any sender may ask: only a link that counts is worth a lock and a write
        digest = digest_of(link)
        session = msgspec.structs.replace(
            known, id=key_id, name=SESSION_NAME, sha256=digest_of(key), created_at=now, expires_at=expires_at
        )

        def exchange(keys: list[KeyEntry]) -> list[KeyEntry]:
            # A link that is not there any more was used by another caller.
            return [session if hmac.compare_digest(one.sha256, digest) else one for one in keys]

        return session if session in self._change(exchange) else None

    def revoke(self, key_id: str, now: int, owns: Callable[[KeyEntry], bool] = lambda _: True) -> KeyEntry:
        """Revoke a key, at once and for ever, and return its entry. `owns`: the keys that the caller may revoke.

        `key_id` may be the beginning of an id, if only one key has it. Raises BadInput for an unknown key.
        """

        def revoked(keys: list[KeyEntry]) -> list[KeyEntry]:
            meant = [entry for entry in keys if entry.id.startswith(key_id) and owns(entry)]
            if len(meant) != 1 or not key_id:
                found = "there is none" if not meant else f"there are {len(meant)}"
                raise BadInput(
                    f"A key whose id begins with {key_id!r} is needed, and {found}: see `everlog keys list`."
                )
            after = msgspec.structs.replace(meant[0], revoked_at=meant[0].revoked_at or now)
            return [after if entry is meant[0] else entry for entry in keys]

        return next(entry for entry in self._change(revoked) if entry.id.startswith(key_id) and owns(entry))

    def _change(self, change: Callable[[list[KeyEntry]], list[KeyEntry]]) -> list[KeyEntry]:
        """Write what `change` makes of the keys, and return that. No other process's change is lost."""
        keys: dict[str, KeyEntry] = {}

        def changed(content: bytes | None) -> bytes:
            nonlocal keys
            keys = {entry.id: entry for entry in change(self._parsed(content))}
            file = _KeyFile(list(keys.values()))
            return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"

        change_whole(self._path, changed)
        return list(keys.values())

    def _refresh(self) -> None:
        stamp = stamp_of(self._path)
        if stamp != self._read:
            self._keys = {entry.id: entry for entry in self._parsed(read_whole(self._path))}
            self._read = stamp

    def _parsed(self, content: bytes | None) -> list[KeyEntry]:
        if content is None:
            return []
        try:
            return msgspec.json.decode(content, type=_KeyFile).keys
        except msgspec.MsgspecError as error:
            raise BadInput(
                f"{self._path} is no file of keys ({error}): restore it, or remove it and create the keys again."
            ) from error


def digest_of(key: str) -> str:
    """Return the SHA-256 of a key, in hexadecimal."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()

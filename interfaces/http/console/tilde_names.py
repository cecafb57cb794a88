"""Write names of agents into paths, where `/`, `..` and `?` would change the address. Pure.

Letters, digits, `-` and `_` stay as they are; every other byte of the name, in UTF-8, becomes `~XX`.
"""

import re

from everlog.interfaces.http.core.routes import not_found

_WRITTEN = re.compile(r"(?:[A-Za-z0-9_-]|~[0-9A-F]{2})+")
_BYTE = re.compile(rb"~([0-9A-F]{2})")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def written(name: str) -> str:
    """Return a name as one part of a path."""
    return "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in name.encode("utf-8", "surrogateescape"))


def name_in(part: str) -> str:
    """Return the name that a part of a path stands for. Raises the refusal of a part that is none."""
    if not _WRITTEN.fullmatch(part):
        raise not_found(f"page of an agent {part[:80]!r}")
    plain = _BYTE.sub(lambda found: bytes([int(found[1], 16)]), part.encode())
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_found(f"page of an agent {part[:80]!r}") from error

"""Read and write the operator's files of servers and agents of others: TOML, with one table for each.

Such a file says what is run and where secrets go, so its owner is checked before it is used. People change it by hand:
a command that adds or removes a table leaves all other lines as they are.

Used by `servers_toml` and `a2a/remote_agents`.
"""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from everlog.events import BadInput
from everlog.store import read_whole, url_of

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def text_of(path: Path) -> str:
    """Return the text of a file; empty if there is none. Raise BadInput, StoreError."""
    return text_in(read_whole(path), path)


def text_in(content: bytes | None, path: Path) -> str:
    """Return the text of a file with that content; None: there is none. Raise BadInput."""
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no UTF-8, from byte {error.start} on. Nothing was read of it.") from error


def check_owner(path: Path) -> None:
    """Raise BadInput for a file that another user owns or can write to: it says what is run, and where secrets go.

    An object has no owner: the rights on the bucket say who can write it.
    """
    if url_of(path):
        return
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(
            f"{path} says what everlog runs and where it sends secrets, and another user of this machine can write to "
            f"it. Make it yours alone: `chmod go-w {path}`. Nothing was run."
        )


def with_table(text: str, table: str) -> str:
    """Return the text of a file with a table at its end."""
    return f"{text.rstrip()}\n\n{table}".lstrip()


def without_table(text: str, names: Sequence[str]) -> str:
    """Return the text of a file without a table and those in it. `names`: the parts of its header."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            inside = header_of(line)[: len(names)] == list(names)
        kept += [] if inside else [line]
    return "\n".join(kept).rstrip() + "\n"


def header_of(line: str) -> list[str]:
    """Return the names in the header of a table."""
    plain = line.strip().split("#")[0]
    return [part.strip("\"' ") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.\[\]\s]+', plain)]


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml_text(key)} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return toml_text(value) if isinstance(value, str) else str(value).lower()


def toml_text(text: str) -> str:
    """Return a basic string of TOML, which is one of JSON with DEL escaped."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007F")

"""Encode and decode the files of the register. Pure.

    {"crc32c":"xxxxxxxx","agents":[{"agent_id":...,"partition":...,"epoch":...,"parent":...,"parent_seq":...}]}

`crc32c` is the checksum of the encoded list. A file is valid only if encoding its content gives the same bytes. So each
flipped bit is found, also in a key. Stores of everlog 0.1 have files without a checksum: one assignment, or a list of
them. They are read as strictly, but a flipped bit in a name or a number of such a file cannot be found here; `everlog
log check` compares it with the log. No flipped bit turns a file of one kind into a file of the other.

Used by `register`, and by every file that needs an `Assignment`. A file that was valid stays valid: never add a field
to `Assignment` without reading the files that lack it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import msgspec

from everlog.events import CorruptLog
from everlog.store.base.names import hash_of

REPAIR = "everlog log repair-register"
"""Command that makes the files of the register again from the logs."""


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition of an agent."""

    agent_id: str
    partition: str
    epoch: int = 1
    """Number of the assignment: a move publishes the next one."""
    parent: str = ""
    """Parent of a fork, whose records come before its own; empty for an agent that is not a fork."""
    parent_seq: int = 0
    """Fork point of a fork: the last of the parent's records that belong to the fork too."""


class RegisterFile(NamedTuple):
    """Content of one file of the register."""

    assignments: Mapping[str, Assignment]
    """Assignments by the hash of the agent's name."""
    signed: bool
    """False for a file of everlog 0.1, which has no checksum, and no mark beside it while its agent has no record."""


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    crc32c: str
    agents: list[Assignment]


def signed_json(field: str, value: bytes) -> bytes:
    """Return the bytes of a file whose `field` has an encoded value, with the checksum of the value before it. Other
    names and the number of shards are kept in such files, too.
    """
    return b'{"crc32c":"%s","%s":%s}' % (f"{google_crc32c.value(value):08x}".encode(), field.encode(), value)


def encode_assignments(assignments: Sequence[Assignment]) -> bytes:
    """Return the bytes of a file that holds these assignments, one or more."""
    return signed_json("agents", msgspec.json.encode(list(assignments)))


def decode_assignments(content: bytes, path: Path) -> RegisterFile:
    """Return the content of the file at `path`. Raises CorruptLog unless the file has exactly the bytes that were
    written.
    """
    signed = content.startswith(b'{"crc32c"')
    try:
        if signed:
            found = msgspec.json.decode(content, type=_Signed).agents
            again = encode_assignments(found)
        else:
            one = content.startswith(b"{")
            found = [msgspec.json.decode(content, type=Assignment)] if one else _old_list(content)
            again = msgspec.json.encode(found[0] if one else found)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged_error(path, str(error)) from error
    if again != content or not found:
        why = "wrong checksum" if signed else "its bytes are not those that everlog writes"
        raise damaged_error(path, why)
    return RegisterFile({hash_of(assignment.agent_id): assignment for assignment in found}, signed)


def _old_list(content: bytes) -> list[Assignment]:
    return msgspec.json.decode(content, type=list[Assignment])


def damaged_error(path: Path, why: str) -> CorruptLog:
    """Return the error for a file of the register that is not as it was written."""
    return CorruptLog(
        f"{path}, a file of the register, is damaged: {why}. Nothing was changed; restore the file from a backup, or "
        f"run `{REPAIR}`, which makes it again from the logs."
    )

"""Keep the conversations that clients create before they say anything: small files of the store, one each.

The file has what no log has: the client's notes on the conversation, and words that were said elsewhere before. What is
said in it afterwards is in the agent's log, under the id of the conversation.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from everlog.store import write_whole

FOLDER = "conversations"
PREFIX = "conv_"
_ID = re.compile(rf"{PREFIX}[0-9a-f]{{32}}")


class ConversationFile(msgspec.Struct, frozen=True, kw_only=True):
    """File of one conversation."""

    id: str
    tenant: str
    """Tenant whose conversation it is; empty: the operator."""
    created_at: int
    """Seconds since 1970."""
    metadata: Mapping[str, str] = {}
    items: Sequence[Mapping[str, Any]] = ()
    """Items that the client brought along, as it sent them."""
    stream: str = ""
    """Agent that it is held with; empty: nothing was said yet."""


class ConversationFolder:
    """The files of one store. Its methods read and write files."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def read(self, conversation: str, tenant: str) -> ConversationFile | None:
        """Return a conversation of a tenant; None if there is none."""
        if not _ID.fullmatch(conversation):
            return None
        try:
            found = msgspec.json.decode((self._folder / f"{conversation}.json").read_bytes(), type=ConversationFile)
        except FileNotFoundError:
            return None
        return found if found.tenant == tenant else None

    def write(self, conversation: ConversationFile) -> None:
        """Write a conversation. A reader sees the file before or after, and no part of it."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_whole(self._folder / f"{conversation.id}.json", msgspec.json.encode(conversation))

    def delete(self, conversation: str) -> None:
        """Delete a conversation's file."""
        (self._folder / f"{conversation}.json").unlink(missing_ok=True)

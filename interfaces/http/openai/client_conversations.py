"""Keep the conversations that clients create before they say anything: small files of the store, one each.

The file has what no log has: the client's notes on the conversation, and words that were said elsewhere before. What is
said in it afterwards is in the agent's log, under the id of the conversation.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from everlog.store import read_whole, remove_whole, write_whole
from everlog.store.base.disk import parse_json

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
        """Return a conversation of a tenant; None if there is none. Raises CorruptLog, StoreError."""
        path = self._folder / f"{conversation}.json"
        content = read_whole(path) if _ID.fullmatch(conversation) else None
        found = None if content is None else parse_json(content, ConversationFile, path)
        return found if found is not None and found.tenant == tenant else None

    def write(self, conversation: ConversationFile) -> None:
        """Write a conversation. A reader sees the file before or after, and no part of it. Raises StoreError."""
        write_whole(self._folder / f"{conversation.id}.json", msgspec.json.encode(conversation))

    def delete(self, conversation: str) -> None:
        """Delete a conversation's file. Raises StoreError."""
        remove_whole(self._folder / f"{conversation}.json")

"""Refuse edits of shared blocks by commands: a server has routes for them."""

from collections.abc import Mapping

from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, SharedBlock
from everlog.events import UsageError


class RemoteBlocks:
    """Client of shared blocks that edits none. `RemoteSharedBlocks` has the requests."""

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """Refuse: agents of a server read their blocks there."""
        raise UsageError(f"Shared blocks are read by requests of their own, not by {len(known)} names.")

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Refuse: agents of a server edit their blocks there."""
        raise UsageError(f"The shared block {edit.name!r} is edited by a request of its own.")

"""Name the streams of shared memory blocks: edits that several agents follow. Pure.

A shared block is a stream in a partition of its own, as a source of documents is; its name begins with `block:`. The
process that edits a block owns its partition while edits are pending. A block is not an agent, so lists of agents leave
blocks out; maintenance of logs (check, seal, stats, erase) treats a block like any other stream.

Used by `actors/memory` for shared blocks, by `streams.routes`, and by commands that take names of agents. The prefix is
in stored names, so it never changes.
"""

from everlog.events import BadInput
from everlog.store.base.names import name_under
from everlog.store.base.source_streams import check_not_source, is_source

BLOCK_PREFIX = "block:"
"""Prefix of the stream names of shared blocks. No agent's name begins with it."""


def is_block(name: str) -> bool:
    """Return True if `name` is the stream of a shared block."""
    return name.startswith(BLOCK_PREFIX)


def is_agent(name: str) -> bool:
    """Return True if `name` is the stream of an agent."""
    return not (is_source(name) or is_block(name))


def stream_of_block(block: str) -> str:
    """Return the stream name of a shared block, in NFC form. Raises BadInput for an impossible name."""
    return name_under(BLOCK_PREFIX, block, "block", "a shared block's")


def block_of(stream: str) -> str:
    """Return the name of the shared block whose stream is `stream`."""
    return stream.removeprefix(BLOCK_PREFIX)


def check_not_reserved(name: str) -> None:
    """Raise BadInput if `name` is reserved for sources or shared blocks."""
    check_not_source(name)
    if is_block(name):
        raise BadInput(
            f"{name!r} cannot be the name of an agent: names that begin with {BLOCK_PREFIX!r} are reserved for shared "
            "memory blocks (`everlog shared`). Choose another name. An existing agent of such a name can still be read."
        )

"""Shared memory blocks: streams of edits that several agents follow. Pure.

A shared block is a stream in a partition of its own, as a source of documents is; its name begins with `block:`.
Whoever edits it owns it for as long as edits wait. It is nobody to talk to, so what lists agents leaves it out; what
looks after logs (check, seal, stats, erase) has it like any other.
"""

from everlog.events import BadInput
from everlog.store.base.names import name_under
from everlog.store.base.source_streams import check_not_source, is_source

BLOCK_PREFIX = "block:"
"""How the names of the streams of shared blocks begin, and no agent's."""


def is_block(name: str) -> bool:
    """Whether a stream is a shared block, by its name."""
    return name.startswith(BLOCK_PREFIX)


def is_agent(name: str) -> bool:
    """Whether a stream is an agent, by its name."""
    return not (is_source(name) or is_block(name))


def stream_of_block(block: str) -> str:
    """The stream of a shared block, in its NFC form. Raises BadInput for an impossible name."""
    return name_under(BLOCK_PREFIX, block, "block", "a shared block's")


def block_of(stream: str) -> str:
    """The name of the shared block whose stream it is."""
    return stream.removeprefix(BLOCK_PREFIX)


def check_not_reserved(name: str) -> None:
    """Raises BadInput for a name that no agent can have."""
    check_not_source(name)
    if is_block(name):
        raise BadInput(
            f"{name!r} is no agent: names that begin with {BLOCK_PREFIX!r} are those of shared memory blocks "
            "(`everlog shared`). Take another name. An agent of such a name that was made before can still be read."
        )

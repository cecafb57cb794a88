"""Names: which are possible, and the path that each becomes. Pure.

A name may hold any character, so it is never a path: files are called by the sha256 of the name.
"""

import difflib
import hashlib
import unicodedata
from collections.abc import Sequence

from everlog.events import BadInput, UnknownAgent
from everlog.store.base.store_constants import NAME_BYTES_MAX

NEAR_NAMES_MAX = 3
"""Names that the error for an unknown one suggests."""


def name_of(agent_id: str) -> str:
    """`agent_id` in its NFC form; raises BadInput unless that has 1 to `NAME_BYTES_MAX` bytes in UTF-8."""
    if not isinstance(agent_id, str):
        raise BadInput(f"an agent name is text, not {agent_id!r}")
    name = unicodedata.normalize("NFC", agent_id)
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"the agent name {agent_id!r} holds half of a character (a lone surrogate): {error}") from error
    if not 1 <= size <= NAME_BYTES_MAX:
        raise BadInput(f"an agent name has 1 to {NAME_BYTES_MAX} bytes in UTF-8, but {name[:40]!r}... has {size}")
    return name


def name_under(prefix: str, word: str, called: str, whose: str) -> str:
    """The name of a stream that is no agent's: `prefix` and `word`, in NFC form; `called` and `whose` say in an error
    what it is that has the name. Raises BadInput for an impossible one.
    """
    longest = NAME_BYTES_MAX - len(prefix)
    try:
        size = len(word.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"the {called} name {word!r} holds half of a character (a lone surrogate): {error}") from error
    if not word.strip() or size > longest:
        raise BadInput(f"{whose} name has 1 to {longest} bytes in UTF-8, but {word[:40]!r} has {size}")
    return name_of(prefix + word)


def hash_of(name: str) -> str:
    """The sha256 of `name` (already NFC), in hexadecimal."""
    return hashlib.sha256(name.encode()).hexdigest()


def partition_of(name: str) -> str:
    """The dedicated partition of the agent `name`."""
    return f"agent-{hash_of(name)}"


def shard_of(name: str, shards: int) -> str:
    """The shared partition of the agent `name` in a store that has `shards` of them; BadInput if it has none."""
    if not shards:
        raise BadInput(
            f"{name!r} cannot share a partition with others: this store has none to share, and their number is fixed "
            "when a store is made. Keep it by itself (dedicated), or make a store with shards."
        )
    return f"shard-{int(hash_of(name)[:8], 16) % shards:03d}"


def is_shared(partition: str) -> bool:
    """Whether a partition is one that agents share."""
    return partition.startswith("shard-")


def unknown_agent(name: str, names: Sequence[str]) -> UnknownAgent:
    """The error for a name that nobody has, with those of `names` that are near."""
    near = difflib.get_close_matches(name, names, NEAR_NAMES_MAX)
    hint = f" Did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
    return UnknownAgent(f"there is no agent {name!r} in this store.{hint}")

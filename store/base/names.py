"""Check names, and derive partition names from them; map addresses of buckets to folders.

A name may hold any character, so no path contains a name: files are named by the sha256 of the name.

Used by both stores, hosts and commands. `hash_of` and `partition_of` must return the same for ever: files on disk are
found by their results.
"""

import difflib
import hashlib
import re
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from everlog.events import BadInput, UnknownAgent
from everlog.store.base.generations import names_generation
from everlog.store.base.store_constants import NAME_BYTES_MAX

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and line separators: two names that differ in these alone look the same."""
SCHEMES = ("s3", "gs", "az")
BUCKETS = "everlog-buckets"
"""Name of the folder of the cache below which all stores in buckets have their folders."""
NEAR_NAMES_MAX = 3
"""Number of similar names that the error for an unknown name suggests."""


def name_of(agent_id: str) -> str:
    """Return `agent_id` in its NFC form. Raises BadInput unless that has 1 to `NAME_BYTES_MAX` bytes in UTF-8."""
    if not isinstance(agent_id, str):
        raise BadInput(f"an agent name must be text, not {agent_id!r}")
    name = unicodedata.normalize("NFC", agent_id)
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"the agent name {agent_id!r} holds half of a character (a lone surrogate): {error}") from error
    if not size:
        raise BadInput("The name of an agent is empty. Give a name.")
    if size > NAME_BYTES_MAX:
        raise BadInput(f"an agent name must have 1 to {NAME_BYTES_MAX} bytes in UTF-8, but {name[:40]!r}... has {size}")
    return name


def check_new_name(agent_id: str, locate: Callable[[str], object]) -> None:
    """Raise BadInput if no agent has that name yet, and the name has a control character, begins with a `-`, or ends
    with @genN.

    `locate(name)` raises UnknownAgent for a name that no agent has. An agent that came with such a name from elsewhere
    can be used.
    """
    name = name_of(agent_id)
    try:
        check_name_form(name)
    except BadInput as refused:
        try:
            locate(name)
        except UnknownAgent:
            raise refused from None


def check_name_form(name: str) -> None:
    """Raise BadInput for a name that no agent may get: one with a control character, or that begins with a `-`."""
    why = "begins with `-`, so that a command takes it for an option" if name.startswith("-") else ""
    if _CONTROL.search(name):
        why = "has a control character or a line break"
    if names_generation(name):
        why = "ends as everlog marks an agent that has the name of a deleted one"
    if why:
        raise BadInput(f"An agent cannot be called {name!r}: the name {why}. Choose another name.")


def typed(name: str) -> str:
    """Return a name as it is typed in a shell, quoted where needed: for commands that a message suggests."""
    return shlex.quote(name)


def name_under(prefix: str, word: str, called: str, whose: str) -> str:
    """Return the stream name of a source or a block: `prefix` and `word`, in NFC form. Raises BadInput for an
    impossible name.

    `called` ("block") and `whose` ("a shared block's") name the kind of stream in errors.
    """
    longest = NAME_BYTES_MAX - len(prefix)
    try:
        size = len(word.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"the {called} name {word!r} holds half of a character (a lone surrogate): {error}") from error
    if not word.strip() or size > longest:
        raise BadInput(f"{whose} name must have 1 to {longest} bytes in UTF-8, but {word[:40]!r} has {size}")
    return name_of(prefix + word)


def hash_of(name: str) -> str:
    """Return the sha256 of `name` (already NFC), in hexadecimal."""
    return hashlib.sha256(name.encode()).hexdigest()


def partition_of(name: str) -> str:
    """Return the dedicated partition of the agent `name`."""
    return f"agent-{hash_of(name)}"


def shard_of(name: str, shards: int) -> str:
    """Return the shared partition of the agent `name` in a store with that many `shards`. Raises BadInput if there are
    none.
    """
    if not shards:
        raise BadInput(
            f"{name!r} cannot have shared placement: this store has no shards. Use dedicated placement, or give the "
            "store shards with `everlog cluster shards 8`."
        )
    return shard_name(int(hash_of(name)[:8], 16) % shards)


def shard_name(number: int) -> str:
    """Return the name of the shared partition with that number, from 0."""
    return f"shard-{number:03d}"


def is_shared(partition: str) -> bool:
    """Return True if the partition is one that agents share."""
    return partition.startswith("shard-")


def unknown_agent(name: str, names: Sequence[str]) -> UnknownAgent:
    """Return the error for an unknown agent name; it suggests similar names out of `names`."""
    near = difflib.get_close_matches(name, names, NEAR_NAMES_MAX)
    hint = f" Did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
    return UnknownAgent(f"there is no agent {name!r} in this store.{hint}")


def is_bucket_url(text: str) -> bool:
    """Return True if `text` is the address of a store that is no folder."""
    return "://" in text


def folder_of(url: str) -> Path:
    """Return the folder of this machine that stands for the store at `url`. Raises BadInput.

    Everything above the store knows a store by its folder. For a bucket that is a folder of the cache: what is derived
    is kept there and can vanish; the records are in the bucket. Every process finds the bucket by the path alone.
    """
    scheme, _, rest = url.partition("://")
    parts = rest.rstrip("/").split("/")
    if scheme not in SCHEMES or not all(parts) or {".", ".."} & set(parts) or "@" in rest or "?" in rest:
        raise BadInput(
            f"{url!r} is no address of a store in a bucket: expected s3://BUCKET/PREFIX, gs:// or az://, without "
            "credentials, which come from the environment."
        )
    if len(parts) < 2:
        raise BadInput(f"{url!r} names a whole bucket: add a prefix for the store, such as {url.rstrip('/')}/everlog.")
    return Path.home() / ".cache" / BUCKETS / scheme / Path(*parts)


def url_of(root: Path) -> str:
    """Return the address of the bucket that the folder `root` stands for; empty if it is an ordinary folder."""
    if BUCKETS not in root.parts:
        return ""
    scheme, *parts = root.parts[root.parts.index(BUCKETS) + 1 :]
    return f"{scheme}://{'/'.join(parts)}"


def store_address(root: Path) -> str:
    """Return the text by which every machine of a cluster finds the store in `root`: the address of its bucket, or the
    folder, which all machines have at the same path.
    """
    return url_of(root) or str(root.resolve())


def store_folder(address: str) -> Path:
    """Return the folder of this machine for the result of `store_address` on any machine. Raises BadInput."""
    return folder_of(address) if is_bucket_url(address) else Path(address)

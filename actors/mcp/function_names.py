"""Name the functions of servers for models: `server__tool`, in the characters and the length that endpoints take. Pure.

A name follows from the server's and the function's name alone. So it stays the same whatever else a server offers, and
in every process. Names that had to be changed end in a hash of both, and a name that looks as if it had one gets one
too: two functions never share a name, not even if a server tries it.
"""

import re
from hashlib import sha256

NAME_CHARS_MAX = 64
"""Most characters of a function's name that endpoints take."""
SERVER_CHARS_MAX = 24
SERVER = re.compile(rf"(?=.{{1,{SERVER_CHARS_MAX}}}$)[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")
"""Form of a server's name: without two underscores in a row, which end it in the name of a function."""
HASH_CHARS = 8

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_HASHED = re.compile(rf"_[0-9a-f]{{{HASH_CHARS}}}")


def function_name(server: str, tool: str) -> str:
    """Return the name of a function for models. `tool`: the server's own name for it."""
    readable = f"{server}__{_FOREIGN.sub('_', tool)}"
    if readable == f"{server}__{tool}" and len(readable) <= NAME_CHARS_MAX and not _HASHED.fullmatch(readable[-9:]):
        return readable
    digest = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{readable[: NAME_CHARS_MAX - HASH_CHARS - 1]}_{digest}"

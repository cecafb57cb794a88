"""Sources: streams of documents that several agents can search. Pure.

A source is a stream in a partition of its own, as a dedicated agent is; its name begins with `source:`. Whoever loads
documents owns it for as long as that takes. It is nobody to talk to, so what lists agents leaves it out; what looks
after logs (check, seal, stats, erase) has it like any other.
"""

from everlog.events import BadInput
from everlog.store.base.names import name_under

SOURCE_PREFIX = "source:"
"""How the names of the streams of sources begin, and no agent's."""


def is_source(name: str) -> bool:
    """Whether a stream is a source, by its name."""
    return name.startswith(SOURCE_PREFIX)


def stream_of(source: str) -> str:
    """The stream of a source, in its NFC form. Raises BadInput for an impossible name."""
    return name_under(SOURCE_PREFIX, source, "source", "a source")


def source_of(stream: str) -> str:
    """The name of the source whose stream it is."""
    return stream.removeprefix(SOURCE_PREFIX)


def check_not_source(name: str) -> None:
    """Raises BadInput for a name that no agent can have."""
    if is_source(name):
        raise BadInput(
            f"{name!r} is no agent: names that begin with {SOURCE_PREFIX!r} are those of sources of documents. "
            "Take another name. An agent of such a name that was made by everlog 0.1 can still be read."
        )

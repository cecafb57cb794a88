"""Name the streams of sources: documents that several agents can search. Pure.

A source is a stream in a partition of its own, as a dedicated agent is; its name begins with `source:`. The process
that loads documents owns the partition while it loads. A source is not an agent, so lists of agents leave sources out;
maintenance of logs (check, seal, stats, erase) treats a source like any other stream.

Used by `actors/memory` and `actors/hosting` for documents, by `streams.routes`, and by the archive. The prefix is in
stored names, so it never changes.
"""

from everlog.events import BadInput
from everlog.store.base.names import name_under

SOURCE_PREFIX = "source:"
"""Prefix of the stream names of sources. No agent's name begins with it."""


def is_source(name: str) -> bool:
    """Return True if `name` is the stream of a source."""
    return name.startswith(SOURCE_PREFIX)


def stream_of(source: str) -> str:
    """Return the stream name of a source, in NFC form. Raises BadInput for an impossible name."""
    return name_under(SOURCE_PREFIX, source, "source", "a source")


def source_of(stream: str) -> str:
    """Return the name of the source whose stream is `stream`."""
    return stream.removeprefix(SOURCE_PREFIX)


def check_not_source(name: str) -> None:
    """Raise BadInput if `name` is reserved for sources."""
    if is_source(name):
        raise BadInput(
            f"{name!r} cannot be the name of an agent: names that begin with {SOURCE_PREFIX!r} are reserved for "
            "sources of documents. Choose another name. An agent of such a name from everlog 0.1 can still be read."
        )

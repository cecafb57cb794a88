"""Give each agent a digest of its name, for surfaces whose ids say nothing but which thing they mean.

A digest is made of the name of the agent's stream alone: every server makes the same one, and none is stored. A digest
is found again among the names of the store. Used by the surfaces of other makers.
"""

from hashlib import sha256
from uuid import UUID

from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.core.service import HttpService

SHORT_DIGITS = 16
"""Hexadecimal digits of a digest that goes into the id of something of the agent, such as a run."""


def digest_of(stream: str) -> str:
    """Return the digest of an agent: 32 hexadecimal digits, in the form of a UUID of version 4 without hyphens."""
    return UUID(bytes=sha256(stream.encode("utf-8", "surrogateescape")).digest()[:16], version=4).hex


async def stream_of_digest(call: HttpCall, digest: str) -> str | None:
    """Return the agent of the caller's tenant that has a digest; None if there is none. `digest`: all of its digits,
    or the first SHORT_DIGITS.
    """
    known = call.service.streams_by_digest
    if digest[:SHORT_DIGITS] not in known:
        known.update(await call.service.ports.aside(_streams_by_digest, call.service))
    stream = known.get(digest[:SHORT_DIGITS])
    if stream is None or not digest_of(stream).startswith(digest) or not call.names.owns(stream):
        return None
    return stream


def remember_stream(service: HttpService, stream: str) -> None:
    """Keep the digest of an agent that was created now, so that its first request does not read the whole register."""
    service.streams_by_digest[digest_of(stream)[:SHORT_DIGITS]] = stream


def _streams_by_digest(service: HttpService) -> dict[str, str]:
    return {digest_of(stream)[:SHORT_DIGITS]: stream for stream in service.system.store.register_files.scan().routes}

"""Ids of responses and items: each holds its run and the digest of its agent, so that every server finds it again."""

import re
from typing import NamedTuple
from uuid import UUID

from everlog.events import time_of
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.runs.agent_digests import SHORT_DIGITS, digest_of, stream_of_digest

RESPONSE = "resp_"
MESSAGE = "msg_"
COMPLETION = "chatcmpl-"
_ID = re.compile(rf"(?:resp|msg)_([0-9a-f]{{32}})([0-9a-f]{{{SHORT_DIGITS}}})u?")


class RunPlace(NamedTuple):
    """Run of an agent."""

    stream: str
    run: str
    """Event id of its input."""


def id_of_run(prefix: str, stream: str, run: str) -> str:
    """Return the id of something that a run of an agent made."""
    return f"{prefix}{run.replace('-', '')}{digest_of(stream)[:SHORT_DIGITS]}"


async def run_of_id(call: HttpCall, given: str) -> RunPlace:
    """Return the run in the id of a response. Raises the refusal for one that no response of the caller has."""
    found = _ID.fullmatch(given)
    run = str(UUID(found[1])) if found else ""
    stream = await stream_of_digest(call, found[2]) if found and time_of(run) is not None else None
    if stream is None:
        raise not_found(f"response {given[:80]!r}")
    return RunPlace(stream, run)

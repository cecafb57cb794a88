"""Send the requests of a probe over HTTP: limited in time and size, without redirects, with the key removed from
answers.

Used by `probe.py`; the command line makes the sender.
"""

import os
from collections.abc import Callable

import msgspec

from everlog.actors.models.response_body import redact_key

TIMEOUT_S = 120
"""Seconds to wait for an answer of the model: the server may have to load the model first."""
LOOK_S = 15
"""Seconds to wait for an answer that needs no model."""
BODY_BYTES_MAX = 1 << 20
"""Maximum bytes of an answer that are read."""


class ProbeResponse(msgspec.Struct, frozen=True):
    """Status and body of an answer, without the key. Status 0: there was no answer, and the body says why."""

    status: int
    body: str


ProbeTransport = Callable[[str, str, bytes | None], ProbeResponse]
"""Sender of a request: method, whole address, body."""


def sender(key_name: str) -> ProbeTransport:
    """Return a sender of requests, with the key in the variable of that name if there is one.
    Answers never hold the key.
    """
    import httpx2

    key = os.environ.get(key_name, "").strip() if key_name else ""
    usable = key and key.isascii() and key.isprintable()
    headers = {"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity", "User-Agent": "everlog"}
    headers |= {"Authorization": f"Bearer {key}"} if usable else {}
    trust = httpx2.create_ssl_context()

    def send(method: str, url: str, body: bytes | None) -> ProbeResponse:
        typed, wait = ({}, LOOK_S) if body is None else ({"Content-Type": "application/json"}, TIMEOUT_S)
        found = b""
        try:
            with (
                httpx2.Client(verify=trust, timeout=wait, follow_redirects=False) as client,
                client.stream(method, url, content=body, headers=headers | typed) as answer,
            ):
                for part in answer.iter_raw():
                    found += part
                    if len(found) >= BODY_BYTES_MAX:
                        break
                return ProbeResponse(
                    answer.status_code, redact_key(found[:BODY_BYTES_MAX].decode(errors="replace"), key)
                )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return ProbeResponse(0, redact_key(str(error) or type(error).__name__, key))

    return send

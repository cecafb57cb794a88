"""Send the requests of a probe over HTTP: bounded in time and size, without redirects, the key kept out of answers."""

import os
from collections.abc import Callable

import msgspec

from everlog.actors.models.response_body import redact_key

TIMEOUT_S = 120
"""Longest wait for an answer: a server may have to load the model first."""
LOOK_S = 15
"""The same for what needs no model."""
BODY_BYTES_MAX = 1 << 20


class ProbeResponse(msgspec.Struct, frozen=True):
    """What came back: a status and a body, without the key; status 0: nothing did, and the body says why."""

    status: int
    body: str


ProbeTransport = Callable[[str, str, bytes | None], ProbeResponse]
"""Sends a request: method, whole address, body."""


def sender(key_name: str) -> ProbeTransport:
    """Return what sends requests with the key in the variable of that name, or none; the key cannot come back."""
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

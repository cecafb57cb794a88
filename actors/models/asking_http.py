"""How a probe sends its requests: one at a time, with a key of the environment that cannot come back."""

import http.client
import os
import urllib.error
import urllib.request

from everlog.actors.models.probing import Reply, Send

TIMEOUT_S = 120
"""Longest wait for an answer: a server may have to load the model first."""
LOOK_S = 15
"""The same for what needs no model."""
BODY_BYTES_MAX = 1 << 20
SECRET_CHARS_MIN = 16
"""Keys that protect something are longer; see `endpoint.py`."""


class _Staying(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: the key is for one address."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def sender(key_name: str) -> Send:
    """Sends requests with the key in the variable of that name; empty: without one."""
    key = os.environ.get(key_name, "").strip() if key_name else ""
    opener = urllib.request.build_opener(_Staying)

    def send(method: str, url: str, body: bytes | None) -> Reply:
        headers = {"Accept": "application/json, text/event-stream", "User-Agent": "everlog"}
        if key and key.isascii() and key.isprintable():
            headers["Authorization"] = f"Bearer {key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=body, headers=headers, method=method)  # noqa: S310 - http(s): checked
        try:
            with opener.open(request, timeout=TIMEOUT_S if body is not None else LOOK_S) as answer:
                return Reply(answer.status, clean(answer.read(BODY_BYTES_MAX).decode(errors="replace")))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, clean(error.read(BODY_BYTES_MAX).decode(errors="replace")))
        except urllib.error.URLError as error:
            return Reply(0, clean(str(error.reason)))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Reply(0, clean(str(error) or type(error).__name__))

    def clean(text: str) -> str:
        return text.replace(key, "[key]") if len(key) >= SECRET_CHARS_MIN else text

    return send

"""Check the key and the address of a model endpoint before anything is sent to it. Pure.

No message may repeat a key or a password. Used by `openai_client.py`.
"""

from urllib.parse import urlsplit, urlunsplit

from everlog.actors.models.model_types import OPENAI_KEY
from everlog.events import ModelError


def check_address(name: str, key: str, base_url: str | None, key_name: str = OPENAI_KEY) -> None:
    """Raise ModelError for a key that does not fit into a header,
    and for an address that is none or holds a password.
    """
    if not key and base_url is None:
        raise ModelError(
            f"The model {name!r} needs a key: set {key_name}, or name your own server with --base-url "
            "(or OPENAI_BASE_URL). Without either, use --model offline.",
            kind="key",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelError(f"{key_name} holds characters that no key has; copy it again.", kind="key")
    try:
        parts = urlsplit(base_url or "https://")
        usable = base_url is None or (parts.scheme in ("http", "https") and bool(parts.hostname))
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        usable, secret = False, False
    if secret:
        raise ModelError(
            "The address of the endpoint holds a name or password, and would be shown in messages. Leave them out; the "
            f"key belongs into {key_name}.",
            kind="key",
        )
    if not usable:
        raise ModelError(
            f"The address {base_url!r} is not one of an endpoint; one looks like http://127.0.0.1:8000/v1.",
            kind="unreachable",
        )


def split_query(base_url: str | None) -> tuple[str | None, str]:
    """Split an address into the address proper and its query, with the question mark, which goes after each path."""
    if base_url is None:
        return None, ""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(query="", fragment="")), f"?{parts.query}" if parts.query else ""

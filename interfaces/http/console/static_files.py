"""Serve the console's scripts and style: read once, compressed once, and never changed at an address.

The address holds a digest of all files, so a browser keeps them for ever and asks for others after an upgrade.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.responses import Response

from everlog.interfaces.http.core.routes import HttpCall, not_found

FOLDER = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@cache
def files() -> Mapping[str, bytes]:
    """Return all files, by name."""
    return {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}


@cache
def digest() -> str:
    """Return the digest of all files that their addresses hold."""
    return sha256(b"\0".join(name.encode() + b"\0" + body for name, body in files().items())).hexdigest()[:12]


@cache
def _compressed(name: str) -> bytes:
    return gzip.compress(files()[name], mtime=0)


def path_of(name: str) -> str:
    """Return the address of a file. Raises KeyError for a file that does not exist."""
    assert name in files(), f"the console has no file {name}"
    return f"/console/static/{digest()}/{name}"


async def show_file(call: HttpCall) -> Response:
    """Return a script, a style or an image of the console."""
    name = call.params["file"]
    if call.params["digest"] != digest() or name not in files():
        raise not_found("such file")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Vary": "Accept-Encoding",
    }
    body = files()[name]
    if "gzip" in call.request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = _compressed(name), "gzip"
    return Response(body, headers=headers, media_type=TYPES[Path(name).suffix])

"""A service of the XML protocol of Google Cloud Storage on loopback: what is published about it, for what obstore asks.

An emulator with the conditions of that protocol (`x-goog-if-generation-match`) was not found: fake-gcs-server refuses
the puts of obstore. Requests: put, get (whole, a range, or a generation), head, delete, and list (version 2, in pages).
An object that is replaced gets the next generation; a bucket with versions keeps old ones readable by generation.
"""

import hashlib
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 100
"""Entries of a page of a listing, few so that tests see several pages."""
_RANGE = re.compile(r"bytes=(\d+)-(\d*)").fullmatch
_LIST = "http://doc.s3.amazonaws.com/2006-03-01"


class GoogleServer(ThreadingHTTPServer):
    """A service that answers who has `token`. Without `is_conditional` it ignores the condition of a put. After each
    put it refuses `refused` more of the same object, as Google does, which accepts about one a second.
    """

    daemon_threads = True

    def __init__(self, token: str, *, is_conditional: bool = True, refused: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), type("Handler", (_Answers,), _METHODS))
        self.token = token
        self.is_conditional = is_conditional
        self.refused = refused
        self.to_refuse: dict[str, int] = {}
        """Number of puts that are refused next, by key."""
        self.lock = threading.Lock()
        self.generations = count(1_700_000_000_000_001)
        self.objects: dict[str, dict[str, tuple[int, bytes]]] = {}
        self.old: dict[str, dict[tuple[str, int], bytes]] = {}
        """Old generations of the buckets that keep them."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not report a connection that ended because its process was killed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def make_bucket(self, name: str, *, versions: bool = False) -> None:
        """Create a bucket; with `versions` it keeps what is replaced and deleted."""
        self.objects[name] = {}
        if versions:
            self.old[name] = {}


@contextmanager
def google_server(token: str, *, is_conditional: bool = True, refused: int = 0) -> Iterator[GoogleServer]:
    """Run a service while the block runs."""
    server = GoogleServer(token, is_conditional=is_conditional, refused=refused)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Answers(BaseHTTPRequestHandler):
    server: GoogleServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        bucket, _, key = address.path.lstrip("/").partition("/")
        asked = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        if self.headers.get("Authorization") != f"Bearer {self.server.token}":
            return self._refuse(401, "AuthenticationRequired")
        with self.server.lock:
            if bucket not in self.server.objects:
                return self._refuse(404, "NoSuchBucket")
            if not key:
                return self._list(bucket, asked)
            if self.command == "PUT":
                return self._put(bucket, unquote(key), content)
            return self._one(bucket, unquote(key), asked)

    def _put(self, bucket: str, key: str, content: bytes) -> None:
        objects, to_refuse = self.server.objects[bucket], self.server.to_refuse
        if to_refuse.get(key):
            to_refuse[key] -= 1
            return self._refuse(429, "SlowDown")
        to_refuse[key] = self.server.refused
        wanted = self.headers.get("x-goog-if-generation-match")
        found = objects[key][0] if key in objects else 0
        if self.server.is_conditional and wanted is not None and int(wanted) != found:
            return self._refuse(412, "PreconditionFailed")
        self._keep_old(bucket, key)
        objects[key] = (next(self.server.generations), content)
        return self._send(200, b"", _headers(*objects[key]))

    def _one(self, bucket: str, key: str, asked: dict[str, str]) -> None:
        objects = self.server.objects[bucket]
        found = objects.get(key)
        generation = int(asked.get("generation", 0))
        if generation and (found is None or found[0] != generation):
            old = self.server.old.get(bucket, {}).get((key, generation))
            found = None if old is None else (generation, old)
        if found is None:
            return self._refuse(404, "NoSuchKey")
        if self.command == "DELETE":
            self._keep_old(bucket, key)
            del objects[key]
            return self._send(204, b"", {})
        content, headers, wanted = found[1], _headers(*found), _RANGE(self.headers.get("Range", ""))
        if wanted is None:
            return self._send(200, content, headers)
        start, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        if start >= len(content):
            return self._refuse(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {start}-{last}/{len(content)}"
        return self._send(206, content[start : last + 1], headers)

    def _keep_old(self, bucket: str, key: str) -> None:
        found = self.server.objects[bucket].get(key)
        if found is not None and bucket in self.server.old:
            self.server.old[bucket][key, found[0]] = found[1]

    def _list(self, bucket: str, asked: dict[str, str]) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        entries: dict[str, str] = {}  # by what comes after a page: a key, or the common beginning of keys
        for key, (generation, content) in sorted(self.server.objects[bucket].items()):
            folder, slash, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if not key.startswith(prefix):
                continue
            if slash:
                name = prefix + folder + slash
                entries[name] = f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            else:
                entries[key] = (
                    f"<Contents><Key>{escape(key)}</Key><Generation>{generation}</Generation><LastModified>"
                    f"2026-01-01T00:00:00.000Z</LastModified><ETag>{_tag(content)}</ETag><Size>{len(content)}</Size>"
                    "</Contents>"
                )
        names = [name for name in entries if name > asked.get("continuation-token", "")]
        more = f"<NextContinuationToken>{escape(names[PAGE - 1])}</NextContinuationToken>" if names[PAGE:] else ""
        body = "".join(entries[name] for name in names[:PAGE])
        self._send(200, f"<ListBucketResult xmlns='{_LIST}'>{body}{more}</ListBucketResult>".encode(), {})

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode(), {})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


_METHODS = {f"do_{method}": _Answers.answer for method in ("GET", "HEAD", "PUT", "DELETE")}


def _headers(generation: int, content: bytes) -> dict[str, str]:
    return {"ETag": _tag(content), "x-goog-generation": str(generation), "Last-Modified": formatdate(0, usegmt=True)}


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'

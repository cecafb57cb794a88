"""Services of the protocols of Google Cloud Storage and Azure on loopback, in one form for tests of both schemes."""

import base64
import hashlib
import hmac
import http.client
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

from tests.support.store.google_server import google_server

AZURITE = "azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Published key of the account that every Azurite has."""
TOKEN = "not-a-token-of-anyone"


class CloudService(NamedTuple):
    """A running service."""

    scheme: str
    make_bucket: Callable[[str], None]
    variables: dict[str, str]
    """Variables with which everlog reaches it."""
    wrong: dict[str, str]
    """Variables with credentials that it refuses."""
    secret: str
    """Text that no error may contain."""


def google_variables(address: str) -> dict[str, str]:
    """Return the variables for a service of Google's protocol."""
    return {"GOOGLE_BASE_URL": address, "GOOGLE_BEARER_TOKEN": TOKEN}


def azure_variables(address: str) -> dict[str, str]:
    """Return the variables for a service of Azure's protocol."""
    endpoint = f"{address}/{ACCOUNT}"
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint,
    }


@contextmanager
def cloud_service(scheme: str) -> Iterator[CloudService]:
    """Run the service for `gs` or `az` while the block runs. Skips the test if it is not installed."""
    with ExitStack() as stack:
        if scheme == "gs":
            server = stack.enter_context(google_server(TOKEN))
            variables = google_variables(server.address)
            wrong = {**variables, "GOOGLE_BEARER_TOKEN": "wrong"}
            yield CloudService("gs", server.make_bucket, variables, wrong, TOKEN)
        else:
            port = stack.enter_context(_azurite())
            variables = azure_variables(f"http://127.0.0.1:{port}")
            wrong = {**variables, "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"wrong").decode()}
            yield CloudService("az", lambda name: _make_container(port, name), variables, wrong, KEY)


@contextmanager
def keeping_versions(service: CloudService) -> Iterator[dict[str, str]]:
    """Answer for a service of Azure as if blob versioning were on, which Azurite lacks: each answer about a blob
    names a version. Yield the variables.
    """
    target = urlsplit(service.variables["AZURE_STORAGE_ENDPOINT"]).netloc

    class Passing(BaseHTTPRequestHandler):
        """Send each request on, and add the version to the answer."""

        def pass_on(self) -> None:
            connection = http.client.HTTPConnection(target)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            if answer.getheader("ETag"):
                self.send_header("x-ms-version-id", "2030-01-31T12:00:00.0000000Z")
            if answer.getheader("Content-Length") is None:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield azure_variables(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def cloud_settings(service: CloudService, home: Path, **others: str) -> Iterator[None]:
    """Set the variables for the service while the block runs."""
    with patch.dict("os.environ", {**service.variables, "HOME": str(home), **others}):
        yield


@contextmanager
def _azurite() -> Iterator[int]:
    """Run Azurite, Microsoft's emulator, in memory; yield its port."""
    program = shutil.which(AZURITE)
    if program is None:
        pytest.skip(f"Azure's protocol needs {AZURITE}: npm install -g azurite")
    # Port 0 is one that is free; the first lines say which.
    words = [program, "--blobPort", "0", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        told = []
        try:
            for line in process.stdout:
                told.append(line)
                if "successfully listens on" in line:
                    yield int(line.rstrip().rpartition(":")[2])
                    return
            raise AssertionError(f"Azurite did not start: {''.join(told)}")
        finally:
            process.kill()  # an end by `terminate` waits for the connections that obstore keeps open


def _make_container(port: int, name: str) -> None:
    """Create a container by a signed request."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    signed = "PUT\n" + "\n" * 11 + "".join(f"{key}:{headers[key]}\n" for key in sorted(headers))
    signed += f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers={**headers, "Content-Length": "0"})
    assert connection.getresponse().status == 201
    connection.close()

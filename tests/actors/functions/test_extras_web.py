"""http_request: its requests and results, and the checks that keep it inside the allowed hosts."""

import asyncio
import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.functions.extras import Grants, extras, no_helper
from everlog.actors.functions.function_text import returned
from everlog.actors.functions.http_function import MAYBE_DONE, WebAccess
from everlog.actors.functions.http_transport import BODY_BYTES_MAX, HEAD_BYTES_MAX
from everlog.events import BadInput, FunctionError
from tests.support.models.raw_web_server import Answer, Names, Server, certificate, moved, ok, serving, web

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def asked(
    answers: dict[str, Answer],
    path: str = "/",
    *,
    method: str = "GET",
    payload: str | None = None,
    names: Names | None = None,
    timeout_s: float = 20,
) -> tuple[dict[str, Any], Server]:
    """Return the result of one request to a server with these answers, and the server."""

    async def run() -> tuple[dict[str, Any], Server]:
        async with serving(answers) as server:
            requesting = web(server, names, timeout_s=timeout_s).http_request
            return await requesting(method, f"http://shop.test:{server.port}{path}", payload), server

    return asyncio.run(run())


def refused(url: str, *allowed: str, names: Names | None = None) -> str:
    """Return why a request is refused before anything is sent, with public addresses allowed."""
    with pytest.raises(FunctionError) as error:
        asyncio.run(WebAccess(allowed, names or Names()).http_request("GET", url))
    return str(error.value)


def test_an_answer_is_status_headers_and_body() -> None:
    """The result has the status, the headers and the body, as in MemGPT."""
    result, server = asked({"/items?page=1": ok("é".encode(), "X-One: 1", "x-one: 2")}, "/items?page=1#top")
    assert result == {"status_code": 200, "headers": {"content-length": "2", "x-one": "1, 2"}, "body": "é"}
    head = server.requests[0].decode()
    assert head.startswith("GET /items?page=1 HTTP/1.1\r\n")
    assert f"Host: shop.test:{server.port}\r\n" in head


def test_a_path_is_sent_as_it_is_written() -> None:
    """The address that was checked is the one that is sent: no part of a path is normalized."""
    path = "/a/../b;c//d?e=<f>'%2e|"
    _, server = asked({path: ok()}, path)
    assert server.requests[0].decode().startswith(f"GET {path} HTTP/1.1\r\n")


def test_a_payload_is_sent_as_json_and_get_sends_none() -> None:
    """POST sends the given JSON unchanged; GET ignores a payload; text that is not JSON is refused before anything is
    sent.
    """
    _, server = asked({"/": ok()}, method="post", payload='{"a": "é"}')
    assert server.requests[0].endswith('\r\n\r\n{"a": "é"}'.encode())
    assert b"Content-Type: application/json\r\n" in server.requests[0]
    _, server = asked({"/": ok()}, payload='{"a": 1}')
    assert server.requests[0].endswith(b"\r\n\r\n")
    assert b"Content-" not in server.requests[0]
    with pytest.raises(FunctionError, match="no JSON"):
        asked({"/": ok()}, method="POST", payload="{")


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", ""])
def test_only_plain_methods(method: str) -> None:
    """Only a few method names are accepted, so a method cannot smuggle further header lines."""
    with pytest.raises(FunctionError, match="method"):
        asked({"/": ok()}, method=method)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", "hello world"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + ok(), "hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (ok(b"\xff"), "\N{REPLACEMENT CHARACTER}"),
        (ok(b"no such thing", status="404 Not Found"), "no such thing"),
    ],
)  # fmt: skip
def test_bodies_come_in_several_ways(answer: bytes, body: str) -> None:
    """Bodies in chunks, with a length, up to the end of the connection, or empty are read; an error status is a result
    too.
    """
    assert asked({"/": answer})[0]["body"] == body


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        CHUNKED + b"-1\r\nx",
        CHUNKED + b"2\r\nhello",
        CHUNKED + b"5\r\nhel",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_a_broken_answer_is_an_error_value(answer: bytes) -> None:
    """Any malformed server response gives the model an `error`, and the turn continues."""
    result, _ = asked({"/": answer})
    assert list(result) == ["error"]
    assert len(result["error"]) > len(MAYBE_DONE)
    assert MAYBE_DONE in result["error"], "the request was sent"


@pytest.mark.parametrize(
    "head", [b"Content-Length: 99999999\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n"]
)
def test_a_body_is_read_up_to_its_limit(head: bytes) -> None:
    """The first 64 KiB of an endless body are returned."""
    result, _ = asked({"/": b"HTTP/1.1 200 OK\r\n" + head + b"x" * (BODY_BYTES_MAX * 4)})
    assert result["body"] == "x" * BODY_BYTES_MAX


def test_a_silent_server_is_given_up() -> None:
    """A server that accepts the request and sends nothing gives an `error` after the time limit."""
    result, _ = asked({}, timeout_s=0.05)
    assert result == {"error": f"there was no whole answer within 0.05 seconds. {MAYBE_DONE}"}


def test_a_connection_closed_after_the_request_is_reported_as_possibly_done() -> None:
    """A server that closes the connection after the request may have acted on it; the error says so."""

    async def run(abort: bool) -> dict[str, Any]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"{}")
            if abort:
                linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            server = Server({})
            server.port = listening.sockets[0].getsockname()[1]
            return await web(server).http_request("POST", f"http://shop.test:{server.port}/", "{}")

    assert "ended the connection" in asyncio.run(run(False))["error"]
    assert "Reset" in asyncio.run(run(True))["error"]
    for abort in (False, True):
        assert asyncio.run(run(abort))["error"].endswith(MAYBE_DONE)


def test_a_server_that_is_not_there_is_an_error_value() -> None:
    """A refused connection and a host name without an address are reported as network failures."""

    async def run() -> list[dict[str, Any]]:
        async with serving({}) as server:
            gone = server.port
        names = Names(shop_test=[["127.0.0.1"]], none_test=[[]])
        requesting = web(server, names, "none.test")
        return [await requesting.http_request("GET", url) for url in (f"http://shop.test:{gone}/", "http://none.test/")]

    unreachable, unknown = asyncio.run(run())
    assert list(unreachable) == list(unknown) == ["error"]
    assert "none.test has no address" in unknown["error"]
    assert MAYBE_DONE not in unreachable["error"] + unknown["error"], "nothing was sent"


def test_redirects_are_followed_and_get_has_no_payload() -> None:
    """A relative redirect after POST is followed with GET and without the payload; 307 keeps both."""
    result, server = asked({"/a/b": moved("../c"), "/c": ok(b"there")}, "/a/b", method="POST", payload="{}")
    assert result["body"] == "there"
    assert server.requests[1].startswith(b"GET /c ")
    assert b"Content-" not in server.requests[1]
    _, server = asked({"/": moved("/c", "307 Kept"), "/c": ok()}, method="POST", payload="{}")
    assert server.requests[1].startswith(b"POST /c ")
    assert server.requests[1].endswith(b"{}")


def test_five_redirects_are_followed_and_no_more() -> None:
    """The fifth redirect is followed, a sixth is not, so loops end."""
    chain: dict[str, Answer] = {f"/{n}": moved(f"/{n + 1}") for n in range(1, 6)}
    result, server = asked({**chain, "/6": ok(b"end")}, "/1")
    assert (result["body"], len(server.requests)) == ("end", 6)
    result, server = asked({"/": moved("/")})
    assert ("redirects" in result["error"], len(server.requests)) == (True, 6)


@pytest.mark.parametrize(
    "to",
    [
        "http://evil.test/", "//evil.test/", "http://127.0.0.1/", "http://[::1]/", "http://2130706433/",
        "file:///etc/passwd",
        "http://shop.test:1/", "https://shop.test/", "http://user:pw@shop.test/", "ftp://shop.test/", "http://a b/",
        "javascript:1", "http://[", "http://shop.test.evil.test/", "http://\N{LATIN SMALL LETTER E WITH ACUTE}.test/",
    ],
)  # fmt: skip
def test_a_redirect_is_held_to_the_same_rules(to: str) -> None:
    """A redirect to a host, port, scheme or spelling that is not allowed is not followed, and the error says so."""
    result, server = asked({"/": moved(to)})
    assert "redirect" in result["error"] or "Invalid" in result["error"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Kept", "308 Kept"])
def test_a_redirect_does_not_leave_https(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: str) -> None:
    """A redirect from https to http of the same host is not followed; from http to https it is."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))

    async def run(scheme: str, to: str) -> tuple[dict[str, Any], int]:
        there: dict[str, Answer] = {"/there": ok(b"there")}
        async with serving(there) as plain, serving(there, certificate(tmp_path)) as secured:
            servers = {"http": plain, "https": secured}
            servers[scheme].answers["/"] = moved(f"{to}://shop.test:{servers[to].port}/there", status)
            url = f"{scheme}://shop.test:{servers[scheme].port}/"
            result = await web(plain, None, f"shop.test:{secured.port}").http_request("POST", url, "{}")
            return result, len(plain.requests) + len(secured.requests)

    result, requests = asyncio.run(run("https", "http"))
    assert "from https to http" in result["error"]
    assert MAYBE_DONE in result["error"]
    assert requests == 1
    for way in (("https", "https"), ("http", "https"), ("http", "http")):
        assert asyncio.run(run(*way))[0]["body"] == "there"


def test_an_allowed_host_that_a_redirect_names_is_looked_up_and_checked() -> None:
    """A redirect to an allowed host at a private address is not followed."""

    async def run() -> tuple[dict[str, Any], int]:
        names = Names(shop_test=[["127.0.0.1"]], inner_test=[["10.0.0.1"]])
        async with serving({"/": moved("http://inner.test/")}) as server:
            requesting = web(server, names, "inner.test")
            return await requesting.http_request("GET", f"http://shop.test:{server.port}/"), len(server.requests)

    result, requests = asyncio.run(run())
    assert "10.0.0.1" in result["error"]
    assert requests == 1


def test_a_name_is_looked_up_once_a_hop() -> None:
    """The connection goes to the address that was checked; the name is not resolved a second time."""
    names = Names(shop_test=[["127.0.0.1"], ["10.0.0.1"]])
    result, _ = asked({"/": ok()}, names=names)
    assert (result["status_code"], names.asked) == (200, ["shop.test"])
    names = Names(shop_test=[["127.0.0.1"], ["10.0.0.1"]])
    result, server = asked({"/": moved("/again"), "/again": ok()}, names=names)
    assert ("10.0.0.1" in result["error"], len(names.asked), len(server.requests)) == (True, 2, 1)


def test_one_private_address_makes_a_name_unusable() -> None:
    """If a name has a public and a private address, in either order, neither is used."""
    for addresses in (["93.184.216.34", "127.0.0.1"], ["127.0.0.1", "93.184.216.34"]):
        names = Names(mixed_test=[addresses])
        assert "127.0.0.1" in refused("http://mixed.test/", "mixed.test", names=names)


def test_without_an_opening_this_machine_is_refused() -> None:
    """By default an allowed host at a local address is refused, by name or by address, and nothing is sent."""
    names = Names(shop_test=[["127.0.0.1"]])
    assert "127.0.0.1" in refused("http://shop.test/", "shop.test", names=names)
    assert "127.0.0.1" in refused("http://127.0.0.1/", "127.0.0.1")
    assert "::1" in refused("http://[::1]/", "[::1]")
    assert "::ffff:" in refused("http://[::ffff:127.0.0.1]/", "[::ffff:127.0.0.1]")


def test_the_real_resolver_asks_the_machine() -> None:
    """Without an injected resolver the system's resolver is used; the local address that it returns is refused."""
    tools = {tool.name: tool.function for tool in extras(Grants(hosts=("localhost",)), no_helper)}
    with pytest.raises(FunctionError, match="not an address of the public network"):
        asyncio.run(tools["http_request"]("GET", "http://localhost/"))


def test_proxies_and_cookies_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment is not used, and a cookie that a redirect sets is not sent back."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    hop = ok(b"", "Location: /c", "Set-Cookie: a=b", status="302 Found")
    result, server = asked({"/": hop, "/c": ok()})
    assert result["status_code"] == 200
    assert b"cookie" not in b"".join(server.requests).lower()


def test_tls_checks_the_name_and_the_issuer() -> None:
    """Over https the server gets the host's name, not the address; a server without TLS gives an error."""

    async def run() -> tuple[dict[str, Any], bytes]:
        hello: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello.append(await reader.read(4096))
            writer.close()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            server = Server({})
            server.port = port
            return await web(server).http_request("GET", f"https://shop.test:{port}/"), hello[0]

    result, hello = asyncio.run(run())
    assert list(result) == ["error"]
    assert b"shop.test" in hello
    assert b"127.0.0.1" not in hello


def test_certificates_are_checked() -> None:
    """The TLS context requires a certificate and checks it against the host's name."""
    import ssl

    from everlog.actors.functions.allowed_hosts import RequestTarget
    from everlog.actors.functions.http_transport import _secured

    context = _secured(RequestTarget("https", "shop.test", 443, "/"))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_certificate_is_for_the_name_and_from_a_trusted_issuer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A trusted certificate is accepted for its own name only, and a certificate of an unknown issuer for none."""

    async def run(host: str) -> tuple[dict[str, Any], int]:
        async with serving({"/": ok()}, certificate(tmp_path)) as server:
            names = Names(shop_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
            requesting = web(server, names, f"other.test:{server.port}", f"127.0.0.1:{server.port}")
            return await requesting.http_request("GET", f"https://{host}:{server.port}/"), len(server.requests)

    assert "self-signed" in asyncio.run(run("shop.test"))[0]["error"]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    assert asyncio.run(run("shop.test"))[0]["body"] == "hello"
    for host in ("other.test", "127.0.0.1"):
        result, requests = asyncio.run(run(host))
        assert "certificate is not valid for" in result["error"]
        assert MAYBE_DONE not in result["error"]
        assert requests == 0


def test_without_hosts_the_function_says_which_flag_allows_them() -> None:
    """Without allowed hosts the error names the flag; an invalid host in the list is the caller's error."""
    assert "--allow-host" in refused("http://shop.test/")
    with pytest.raises(BadInput, match="HOST:PORT"):
        extras(Grants(hosts=("http://shop.test/",)), no_helper)


def test_a_result_is_json() -> None:
    """The result is a JSON object with the three keys."""
    result, _ = asked({"/": ok(b'{"a": 1}')})
    assert json.loads(returned(result, whole=False)) == result

"""`everlog load` of web addresses, within the hosts that the user allows."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from everlog.actors.functions.http_function import WebAccess
from tests.interfaces.documents.test_document_commands import held
from tests.support.cli.command_line import Line
from tests.support.models.raw_web_server import Answer, Names, Server, here, moved, ok, serving

PAGE = b"<html><head><title>Fog</title></head><body><p>Fog came.</p></body></html>"


@contextmanager
def web(cli: Line, answers: dict[str, Answer]) -> Iterator[Server]:
    """Serve in another thread, and let the command reach `shop.test`, which stands for a public host."""
    started, over, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    found: list[Server] = []

    async def main() -> None:
        async with serving(answers) as server:
            found.append(server)
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    started.wait(30)
    cli.web = lambda hosts: WebAccess(hosts, Names(shop_test=[["127.0.0.1"]] * 9), here)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()


def test_a_page_is_a_document_named_by_its_address(cli: Line) -> None:
    """HTML becomes text with its title; the fragment of an address is no part of the name; again changes nothing."""
    with web(cli, {"/fog": ok(PAGE, "Content-Type: text/html; charset=utf-8")}) as server:
        address = f"http://shop.test:{server.port}/fog"
        argv = ["load", "sam", f"{address}#top", "--allow-host", f"shop.test:{server.port}"]
        assert cli.json(*argv)["new"] == 1
        assert held(cli, "sam") == {address: "Fog came."}
        assert cli.json("sources", "--source", "sam")[0]["title"] == "Fog"
        assert cli.json(*argv)["unchanged"] == 1


def test_the_ending_of_an_address_tells_the_type_of_plain_text(cli: Line) -> None:
    """A Markdown file that is served as plain text is read as Markdown."""
    with web(cli, {"/a.md": ok(b"# Fog\n\nFog came.", "Content-Type: text/plain")}) as server:
        cli.ok("load", "sam", f"http://shop.test:{server.port}/a.md", "--allow-host", f"shop.test:{server.port}")
    assert cli.json("sources", "--source", "sam")[0]["media_type"] == "text/markdown"


def test_only_allowed_hosts_are_asked(cli: Line) -> None:
    """Without --allow-host, or with a redirect to another host, nothing is read from there, and stderr says why."""
    answers: dict[str, Answer] = {"/": ok(PAGE), "/away": moved("http://else.test/")}
    with web(cli, answers) as server:
        address = f"http://shop.test:{server.port}/"
        code, _, err = cli("load", "sam", address)
        assert code == 1 and "no host is allowed" in err and not server.requests
        code, _, err = cli("load", "sam", f"{address}away", "--allow-host", f"shop.test:{server.port}")
        assert code == 1 and "was not followed" in err
    assert held(cli, "sam") == {}


def test_a_page_that_is_none_is_reported_and_the_others_are_loaded(cli: Line) -> None:
    """A missing page and a picture are reported; the page beside them is loaded."""
    answers: dict[str, Answer] = {
        "/fog": ok(PAGE, "Content-Type: text/html"),
        "/gone": ok(b"", status="404 Not Found"),
        "/a.png": ok(b"x", "Content-Type: image/png"),
    }
    with web(cli, answers) as server:
        addresses = [f"http://shop.test:{server.port}{path}" for path in answers]
        code, _, err = cli("load", "sam", *addresses, "--allow-host", f"shop.test:{server.port}")
    assert code == 1 and "answered with status 404" in err and "image/png, is not supported" in err
    assert list(held(cli, "sam")) == [addresses[0]]

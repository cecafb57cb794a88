"""The page that shows the API: complete without a script, and nothing on it comes from elsewhere or from a text."""

import asyncio
import re
from pathlib import Path

from everlog.interfaces.http.core.openapi import openapi
from everlog.interfaces.http.pages.docs_page import rendered
from everlog.interfaces.http.server import full_table
from tests.support.http.served_store import served


def test_the_page_lists_every_route_without_a_script(tmp_path: Path) -> None:
    """Every operation of the document, and every type, is in the page as the server renders it; it needs no key."""

    async def main() -> None:
        async with served(tmp_path) as server:
            server.key()
            page = await server.client.get("/docs")
            document = (await server.client.get("/openapi.json")).json()
            assert page.status_code == 200
            for path, methods in document["paths"].items():
                for method in methods:
                    heading = rf'<b class="{method}">{method.upper()}</b> <code>{re.escape(path)}</code>'
                    assert re.search(heading, page.text), (method, path)
            for name in document["components"]["schemas"]:
                assert f'id="schema-{name}"' in page.text

    asyncio.run(main())


def test_the_page_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """A strict policy forbids scripts and styles within the page and from other origins; the page has none, and what it
    names is served.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            page = await server.client.get("/docs")
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert not re.search(r"<style|style=|<script(?! src)|\son\w+=|https?://", page.text)
            for kind, path in (("text/css", "/docs.css"), ("text/javascript", "/docs.js")):
                assert f'"{path}"' in page.text
                loaded = await server.client.get(path)
                assert loaded.headers["content-type"].startswith(kind)
                assert not re.search(r"https?://|innerHTML|eval\(|@import", loaded.text)

    asyncio.run(main())


def test_texts_are_escaped() -> None:
    """Markup in a description is text on the page."""
    document = openapi(full_table("1"), "<script>alert(1)</script>")
    assert "<script>alert" not in rendered(document)


def test_every_link_of_the_page_leads_somewhere() -> None:
    """Every link to a place of the page has that place."""
    page = rendered(openapi(full_table("1"), "1"))
    places = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= places
    assert len(re.findall(r'id="([^"]+)"', page)) == len(places)

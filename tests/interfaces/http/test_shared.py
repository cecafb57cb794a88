"""Shared blocks and sources over HTTP: made, edited with a base, attached, uploaded, and never seen by others."""

import asyncio
from pathlib import Path

import docx

from tests.support.http.served_store import Served, served


async def put(server: Served, path: str, body: bytes, media: str, status: int, **headers: str) -> dict:
    """Upload a document and return the decoded answer."""
    answer = await server.client.put(f"/api/v1{path}", content=body, headers={"Content-Type": media, **headers})
    assert answer.status_code == status, (answer.status_code, answer.text)
    return answer.json()


def test_a_shared_block_is_edited_from_a_version_and_has_a_history(tmp_path: Path) -> None:
    """An edit from the version that is there is made; one from an older version changes nothing and gets both texts;
    every version can be read.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            made = await server.call("POST", "/blocks", {"block": "team", "value": "One."}, status=201)
            assert (made["block"], made["version"], made["author"]) == ("team", 1, None)
            await server.call("POST", "/blocks", {"block": "team"}, status=400)
            two = await server.call("PATCH", "/blocks/team", {"value": "Two.", "base": 1}, status=200)
            problem = await server.call("PATCH", "/blocks/team", {"value": "Three.", "base": 1}, status=412)
            assert (problem["code"], problem["details"]) == (
                "edit-conflict", {"seq": two["version"], "current": "Two.", "wanted": "Three."},
            )  # fmt: skip
            await server.call("PATCH", "/blocks/team", {"description": "Of all."}, status=200)
            key = {"Idempotency-Key": "line"}
            line = await server.call("POST", "/blocks/team/append", {"text": "And a line."}, headers=key, status=200)
            again = await server.call("POST", "/blocks/team/append", {"text": "And a line."}, headers=key, status=200)
            assert line == again
            assert (line["value"], line["description"]) == ("Two.\nAnd a line.", "Of all.")
            assert (await server.call("GET", "/blocks/team?as_of=1", status=200)) == made
            history = await server.call("GET", "/blocks/team/history", status=200)
            assert [one["value"] for one in history["versions"]] == ["One.", "Two.", "Two.", line["value"]]
            assert (await server.call("DELETE", "/blocks/team", status=200))["deleted"]
            await server.call("GET", "/blocks/crew", status=404)
            for body in ({}, {"base": 1}, {"value": "x", "limit": 5}):
                await server.call("PATCH", "/blocks/team", body, status=400)

    asyncio.run(main())


def test_an_attached_block_is_in_core_memory_until_it_is_detached(tmp_path: Path) -> None:
    """An attached block is a memory block of the agent, and the block names the agent; a detached one is gone."""

    async def main() -> None:
        async with served(tmp_path) as server:
            acme = server.key(tenant="acme")
            await server.call("POST", "/agents", {"name": "sam"}, headers=acme, status=201)
            await server.call("POST", "/blocks", {"block": "team", "value": "We sail."}, headers=acme, status=201)
            path = "/agents/sam/shared/team"
            assert await server.call("PUT", path, {}, headers=acme, status=200) == {"changed": True}
            block = await server.call("GET", "/agents/sam/blocks/team", headers=acme, status=200)
            assert (block["value"], block["origin"]) == ("We sail.", "team")
            listed = await server.call("GET", "/blocks", headers=acme, status=200)
            assert [row["followers"] for row in listed["blocks"]] == [[{"agent": "sam", "label": "team"}]]
            assert await server.call("DELETE", path, headers=acme, status=200) == {"changed": True}
            await server.call("GET", "/agents/sam/blocks/team", headers=acme, status=404)
            await server.call("PUT", "/agents/sam/shared/crew", {}, headers=acme, status=404)

    asyncio.run(main())


def test_documents_of_each_type_are_uploaded_and_found(tmp_path: Path) -> None:
    """The text of an uploaded document is read by its type, and an agent with the source finds it."""
    file = tmp_path / "a.docx"
    word = docx.Document()
    word.add_paragraph("Barometers fall before storms.")
    word.save(str(file))

    async def main() -> None:
        async with served(tmp_path / "store") as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            page = b"<html><title>Knots</title><body><p>A bowline never slips.</p></body></html>"
            uploads = {
                "knots.html": (page, "text/html; charset=utf-8"),
                "a/b.md": (b"# Stars\n\nPolaris stands in the north.", "text/markdown"),
                "log.txt": (b"We left the harbour.", "text/plain"),
                "storms.docx": (file.read_bytes(), SUFFIX_WORD),
            }
            for name, (body, media) in uploads.items():
                path = f"/sources/books/documents/{name.replace('/', '%2F')}"
                assert (await put(server, path, body, media, 201))["status"] == "new"
                assert (await put(server, path, body, media, 200))["status"] == "unchanged"
            listed = await server.call("GET", "/sources/books/documents", status=200)
            assert [row["document"] for row in listed["documents"]] == list(uploads)
            await server.call("PUT", "/agents/sam/sources/books", status=200)
            (source,) = (await server.call("GET", "/sources", status=200))["sources"]
            assert (source["documents"], source["agents"]) == (4, ["sam"])
            assert await server.call("PUT", "/agents/sam/sources/later", status=200) == {"changed": True}
            await server.call("GET", "/sources/none/documents", status=404)
            assert await server.call("DELETE", "/agents/sam/sources/books", status=200) == {"changed": True}

    asyncio.run(main())


SUFFIX_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def test_a_bad_upload_is_refused_and_loads_nothing(tmp_path: Path) -> None:
    """A body without text, of another type, or that is no document of its type is refused, and no source is made."""

    async def main() -> None:
        async with served(tmp_path) as server:
            for body, media, status in (
                (b"", "text/plain", 400), (b"  ", "text/plain", 400), (b"no pdf", "application/pdf", 400),
                (b"x", "image/png", 415), (b"x", "application/x-www-form-urlencoded", 415),
                (b"no zip", SUFFIX_WORD, 400),
            ):  # fmt: skip
                await put(server, "/sources/books/documents/x", body, media, status)
            assert await server.call("GET", "/sources", status=200) == {"sources": []}

    asyncio.run(main())


def test_texts_are_loaded_and_removed_together(tmp_path: Path) -> None:
    """One request loads documents with what is known of their files, tells those that it cannot load, and removes
    others.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            path = "/sources/books/documents"
            fog = {"document": "fog", "text": "Fog came.", "title": "Fog", "media_type": "text/csv", "bytes": 90,
                   "origin": "/notes"}  # fmt: skip
            told = await server.call(
                "POST", path, {"documents": [fog, {"document": "sun", "text": "Sun."}, {"document": "x", "text": " "}]}
            )
            assert (told["new"], told["failed"]) == (["fog", "sun"], [{"document": "x", "reason": "it has no text"}])
            again = {"documents": [fog, {"document": "new", "text": "It is new."}], "remove": ["sun", "none", "fog"]}
            told = await server.call("POST", path, again)
            assert (told["new"], told["unchanged"], told["removed"]) == (["new"], ["fog"], ["sun"])
            listed = (await server.call("GET", path))["documents"]
            assert [row["document"] for row in listed] == ["fog", "new"]
            assert {name: listed[0][name] for name in ("title", "media_type", "bytes", "origin")} == {
                name: fog[name] for name in ("title", "media_type", "bytes", "origin")
            }

    asyncio.run(main())


def test_blocks_and_sources_of_a_tenant_are_its_own(tmp_path: Path) -> None:
    """Blocks and sources of another tenant are in no list, and are unknown, also to an agent that would attach them."""

    async def main() -> None:
        async with served(tmp_path) as server:
            acme, beta = (server.key(tenant=tenant) for tenant in ("acme", "beta"))
            await server.call("POST", "/blocks", {"block": "team", "value": "secret"}, headers=acme, status=201)
            await put(server, "/sources/books/documents/x", b"secret", "text/plain", 201, **acme)
            await server.call("POST", "/agents", {"name": "bob"}, headers=beta, status=201)
            assert (await server.call("GET", "/blocks", headers=beta, status=200))["blocks"] == []
            assert (await server.call("GET", "/sources", headers=beta, status=200))["sources"] == []
            for method, path, body in (
                ("GET", "/blocks/team", None), ("GET", "/blocks/team/history", None), ("DELETE", "/blocks/team", None),
                ("PATCH", "/blocks/team", {"value": "x"}), ("POST", "/blocks/team/append", {"text": "x"}),
                ("PUT", "/agents/bob/shared/team", {}), ("GET", "/sources/books/documents", None),
                ("GET", "/blocks/acme~team", None),
            ):  # fmt: skip
                problem = await server.call(method, path, body, headers=beta, status=404)
                assert "acme" not in problem["message"].replace("acme~team", "")
            # The name means a source of beta, which may be loaded later: that of acme is not found through it.
            await server.call("PUT", "/agents/bob/sources/books", headers=beta, status=200)
            found = await server.call("GET", "/agents/bob/search?query=secret", headers=beta, status=200)
            assert found["total"] == 0
            kept = await server.call("GET", "/blocks/team", headers=acme, status=200)
            assert (kept["value"], kept["version"]) == ("secret", 1)

    asyncio.run(main())

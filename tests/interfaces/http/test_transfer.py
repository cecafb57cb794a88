"""Exports, restores, imports, data sets and differences over HTTP."""

import asyncio
from pathlib import Path

import msgspec

from everlog.interfaces.http.native.transfer import EXPORT
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Headers, Served, served


async def exported(server: Served, path: str, headers: Headers | None = None, status: int = 200) -> bytes:
    """Return the bytes of an answer."""
    answer = await server.client.get(f"/api/v1{path}", headers=headers)
    assert answer.status_code == status, answer.text
    return answer.content


async def restored(server: Served, body: bytes, status: int, headers: Headers | None = None) -> dict:
    """Restore an export and return the decoded answer."""
    sent = {"Content-Type": EXPORT, **(headers or {})}
    answer = await server.client.post("/api/v1/restores", content=body, headers=sent)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_an_export_is_restored_in_another_store_record_for_record(tmp_path: Path) -> None:
    """An agent that was exported from one server has the same records after it was restored by another; a second
    restore writes nothing; a damaged file is refused.
    """

    async def main() -> None:
        async with served(tmp_path / "a", Script([says("Ahoy")])) as one, served(tmp_path / "b") as two:
            await one.call("POST", "/agents", {"name": "sam"}, status=201)
            await one.call("POST", "/agents/sam/messages", {"text": "Hello"}, status=200)
            file = await exported(one, "/agents/sam/export")
            done = await restored(two, file, 201)
            records = await one.call("GET", "/agents/sam/records", status=200)
            assert done["streams"][0]["restored"] == len(records["records"])
            same = await two.call("GET", "/agents/sam/records", status=200)
            assert [r["event_id"] for r in same["records"]] == [r["event_id"] for r in records["records"]]
            assert (await restored(two, file, 201))["streams"][0]["restored"] == 0
            broken = file[: len(file) // 2] + b"?" + file[len(file) // 2 + 1 :]
            problem = await restored(two, broken, 400)
            assert "everlog-upload" not in problem["message"]
            await restored(two, b"nothing", 400)
            await restored(two, b"", 400)

    asyncio.run(main())


def test_a_tenant_restores_only_what_is_its_own(tmp_path: Path) -> None:
    """A tenant's export can be restored by that tenant; by another, or with a source of another, it is refused."""

    async def main() -> None:
        async with served(tmp_path / "a") as one, served(tmp_path / "b") as two:
            key = one.key(tenant="acme")
            await one.call("POST", "/agents", {"name": "sam"}, headers=key, status=201)
            file = await exported(one, "/agents/sam/export", key)
            acme, beta = two.key(tenant="acme"), two.key(tenant="beta")
            await restored(two, file, 403, beta)
            done = await restored(two, file, 201, acme)
            assert (done["agent"], done["streams"][0]["stream"]) == ("sam", "sam")
            await two.call("GET", "/agents/sam", headers=acme, status=200)
            await two.call("GET", "/agents/sam", headers=beta, status=404)
            # Its operator has attached a source of another tenant: no tenant can send such a file.
            operator = one.key()
            body = {"content": b"x", "headers": {"Content-Type": "text/plain", **operator}}
            await one.client.put("/api/v1/sources/beta~books/documents/x", **body)
            await one.call("POST", "/agents", {"name": "spy"}, headers=key, status=201)
            await one.call("PUT", "/agents/acme~spy/sources/beta~books", headers=operator, status=200)
            await restored(two, await exported(one, "/agents/spy/export", key), 403, acme)
            await two.call("GET", "/agents/spy", headers=acme, status=404)

    asyncio.run(main())


def test_a_past_conversation_is_imported_once_and_written_as_a_data_set(tmp_path: Path) -> None:
    """Messages of a past conversation are in recall memory with their times; the data set has what was said."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            messages = [
                {"role": "user", "content": "Where is Polaris?", "time": "2024-01-31T12:00:00Z", "name": "Chad"},
                {"role": "assistant", "content": "In the north.", "time": "2024-01-31T12:00:10Z"},
            ]
            key = {"Idempotency-Key": "past"}
            done = await server.call("POST", "/agents/sam/imports", {"messages": messages}, headers=key, status=201)
            assert (done["messages"], done["delayed"]) == (2, None)
            await server.call("POST", "/agents/sam/imports", {"messages": messages}, headers=key, status=201)
            lines = (await exported(server, "/agents/sam/dataset")).splitlines()
            (line,) = map(msgspec.json.decode, lines)
            assert [one["content"] for one in line["messages"]] == ["Where is Polaris?", "In the north."]
            for bad in ([], [{"role": "user", "content": " ", "time": "2024-01-31"}], [{"role": "x"}]):
                await server.call("POST", "/agents/sam/imports", {"messages": bad}, status=400)

    asyncio.run(main())


def test_two_moments_of_an_agent_are_compared(tmp_path: Path) -> None:
    """The differences between two moments have the edit of a block with both texts and its cause."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            blocks = await server.call("GET", "/agents/sam/blocks", status=200)
            label, before = blocks["blocks"][0]["label"], blocks["as_of"]
            await server.call("PATCH", f"/agents/sam/blocks/{label}", {"value": "New words."}, status=200)
            diff = await server.call("GET", f"/agents/sam/diff?before={before}", status=200)
            (change,) = diff["difference"]["memory"]
            assert (diff["same"], change["name"], change["after"]) == (False, label, "New words.")
            same = await server.call("GET", f"/agents/sam/diff?before={before}&after={before}", status=200)
            assert same["same"]
            await server.call("GET", "/agents/sam/diff?before=999", status=400)

    asyncio.run(main())


def test_the_answer_to_an_import_counts_its_summaries(tmp_path: Path) -> None:
    """A conversation beyond the window is summarized at once, and the answer says how often."""

    async def main() -> None:
        async with served(tmp_path, Script([])) as server:
            await server.call("POST", "/agents", {"name": "sam", "settings": {"window": 4096}}, status=201)
            words = "the sea was wide and the wind was kind to us " * 12
            said = [{"role": "user", "content": words, "time": f"2023-05-{day:02}T10:00:00Z"} for day in range(1, 30)]
            shape = await server.call("POST", "/agents/sam/imports", {"messages": said}, status=201)
            summaries = (await server.call("GET", "/agents/sam/records?type=summary", status=200))["records"]
            assert shape["summaries"] == len(summaries) >= 1

    asyncio.run(main())

"""Keys: shown once, stored as a digest, revoked at once; and what each role may do."""

import asyncio
import errno
import os
import stat
from pathlib import Path

import pytest

from everlog.events import BadInput, StoreError
from everlog.interfaces.http.core.keys import PREFIX, KeyRing
from everlog.interfaces.http.core.rate_limit import RateLimits
from everlog.interfaces.http.core.service import HttpLimits, HttpOptions
from tests.support.cli.command_line import Line
from tests.support.http.served_store import served

NOW = 1_800_000_000_000_000
KEY = f"{PREFIX}a-secret"


def _ring(root: Path) -> KeyRing:
    return KeyRing(root)


def test_the_file_of_keys_has_no_key_and_is_private(tmp_path: Path) -> None:
    """A file that only the owner may read has the digest of each key, and no key."""
    _ring(tmp_path).create("phone", "talk", key=KEY, key_id="k1", now=NOW)
    file = tmp_path / "keys.json"
    assert KEY.encode() not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_counts_until_it_is_revoked_or_expires(tmp_path: Path) -> None:
    """A key counts from its creation until its time or its revocation, for every reader of the file."""
    ring, other = _ring(tmp_path), _ring(tmp_path)
    entry = ring.create("phone", "talk", key=KEY, key_id="k1", now=NOW, expires_at=NOW + 10)
    assert other.find(KEY, NOW) == entry
    assert other.find(KEY, NOW + 10) is None
    assert other.find(f"{KEY}x", NOW) is None
    ring.revoke("k", NOW + 1)
    assert other.find(KEY, NOW + 2) is None


@pytest.mark.parametrize(
    ("name", "role", "tenant"),
    [("", "talk", ""), ("n" * 101, "talk", ""), ("n", "root", ""), ("n", "talk", "A"), ("n", "talk", "a~b"),
     ("n", "talk", "-a"), ("n", "talk", "a" * 33)],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused(tmp_path: Path, name: str, role: str, tenant: str) -> None:
    """A key with an impossible name, role or tenant is not created."""
    ring = _ring(tmp_path)
    with pytest.raises(BadInput):
        ring.create(name, role, key=KEY, key_id="k1", now=NOW, tenant=tenant)  # type: ignore[arg-type]
    assert ring.all() == []


def test_a_key_is_revoked_by_an_id_that_only_it_has(tmp_path: Path) -> None:
    """The beginning of an id revokes a key only if no other key begins with it."""
    ring = _ring(tmp_path)
    for number in (1, 2):
        ring.create("n", "read", key=f"{KEY}{number}", key_id=f"k{number}", now=NOW)
    for wrong in ("", "k", "x"):
        with pytest.raises(BadInput):
            ring.revoke(wrong, NOW)
    assert ring.revoke("k2", NOW).id == "k2"
    assert [entry.revoked_at for entry in ring.all()] == [None, NOW]


def test_a_full_disk_changes_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that cannot be written is one clear error, and the keys that there are stay as they are."""
    ring = _ring(tmp_path)
    first = ring.create("phone", "talk", key=KEY, key_id="k1", now=NOW)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for change in (
        lambda: ring.create("tablet", "talk", key=f"{KEY}2", key_id="k2", now=NOW),
        lambda: ring.revoke("k1", NOW),
    ):
        with pytest.raises(StoreError, match="No space left"):
            change()
    assert ring.all() == _ring(tmp_path).all() == [first]


def test_the_command_shows_a_key_once(cli: Line) -> None:
    """`keys create` prints the key, and no other command does."""
    made = cli.json("keys", "create", "phone", "--role", "read", "--tenant", "acme")
    assert made["key"].startswith(PREFIX)
    listed = cli.ok("keys", "list")
    assert made["key"] not in listed
    assert "tenant acme" in listed
    cli.ok("keys", "revoke", made["id"])
    assert "revoked" in cli.ok("keys", "list")


def test_each_role_may_do_what_it_says(tmp_path: Path) -> None:
    """`read` reads, `talk` also sends, `admin` also creates; without a key nothing is answered once there is one."""

    async def main() -> None:
        async with served(tmp_path) as server:
            admin, talk, read = (server.key(role) for role in ("admin", "talk", "read"))
            await server.call("POST", "/agents", {"name": "sam"}, headers=admin, status=201)
            for headers, statuses in ((admin, (200, 200, 200)), (talk, (200, 200, 403)), (read, (200, 403, 403))):
                asked = [
                    await server.client.get("/api/v1/agents/sam/blocks", headers=headers),
                    await server.client.post("/api/v1/agents/sam/messages", json={"text": "Hi"}, headers=headers),
                    await server.client.post("/api/v1/agents", json={"name": "sam"}, headers=headers),
                ]
                assert tuple(answer.status_code for answer in asked) == statuses
            for headers in ({}, {"Authorization": "Bearer evl_wrong"}, {"Authorization": "Basic evl_wrong"}):
                answer = await server.client.get("/api/v1/agents", headers=headers)
                assert (answer.status_code, answer.headers["www-authenticate"][:6]) == (401, "Bearer")
            assert (await server.client.get("/livez")).status_code == 200

    asyncio.run(main())


def test_a_record_names_the_key_that_asked_for_it(tmp_path: Path) -> None:
    """The records that a request leaves name its key: the creation, the message, an edit; what follows names none."""

    async def main() -> None:
        async with served(tmp_path) as server:
            admin = server.key("admin")
            key_id = server.service.keys.all()[0].id
            await server.call("POST", "/agents", {"name": "sam"}, headers=admin, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Hi"}, headers=admin, status=200)
            await server.call("POST", "/agents/sam/blocks", {"label": "notes"}, headers=admin, status=201)
            page = await server.call("GET", "/agents/sam/records?limit=100", headers=admin, status=200)
            signed = [one["type"] for one in page["records"] if one["payload"].get("by") == key_id]
            assert signed == ["agent_created", "user_message", "memory_edited"]

    asyncio.run(main())


def test_forks_shared_blocks_and_documents_name_the_key(tmp_path: Path) -> None:
    """The first record of a fork, each edit of a shared block and an uploaded document name the key too; and a tenant
    reads its own names in records and in rows.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            acme = server.key("admin", tenant="acme")
            key_id = server.service.keys.all()[0].id
            await server.call("POST", "/agents", {"name": "sam"}, headers=acme, status=201)
            await server.call("POST", "/agents/sam/forks", {"name": "tom"}, headers=acme, status=201)
            for method, path, body in (
                ("POST", "/blocks", {"block": "team", "value": "One."}),
                ("PATCH", "/blocks/team", {"value": "Two."}),
                ("PATCH", "/blocks/team", {"description": "Of all."}),
                ("POST", "/blocks/team/append", {"text": "Three."}),
                ("PUT", "/agents/tom/shared/team", {}),
                ("PUT", "/agents/tom/sources/docs", None),
                ("DELETE", "/blocks/team", None),
            ):
                await server.call(method, path, body, headers=acme)
            answer = await server.client.put(
                "/api/v1/sources/docs/documents/a.txt", content=b"Tea", headers={**acme, "Content-Type": "text/plain"}
            )
            assert answer.status_code == 201
            for stream, kinds in (
                ("acme~tom", ["agent_forked", "memory_edited", "source_attached"]),
                ("block:acme~team", ["memory_edited"] * 4 + ["block_removed"]),
                ("source:acme~docs", ["document_loaded"]),
            ):
                signed = [
                    record for record in server.system.store.reader(stream).read(stream) if key_id in record.payload
                ]
                own = [record.type for record in signed if record.agent_id == stream]
                assert own == kinds, stream
            page = await server.call("GET", "/agents/tom/records?limit=100", headers=acme, status=200)
            assert [one for one in page["records"] if "acme~" in str(one)] == []
            forked = next(one for one in page["records"] if one["type"] == "agent_forked")
            assert (forked["payload"]["parent"], forked["payload"]["by"]) == ("sam", key_id)
            for projection in ("core_memory", "memory_history", "sources"):
                rows = await server.call("GET", f"/agents/tom/projections/{projection}", headers=acme, status=200)
                assert rows["rows"] and "acme~" not in str(rows), projection

    asyncio.run(main())


def test_a_key_that_asks_too_often_waits(tmp_path: Path) -> None:
    """A key gets twice its rate at once, then 429 with the time to wait; time fills the bucket again."""

    class Clock:
        at = NOW

        def now(self) -> int:
            return self.at

    clock = Clock()
    limits = RateLimits(2, clock)
    assert [limits.wait_s("a") for _ in range(4)] == [0] * 4
    assert 0 < limits.wait_s("a") <= 0.5
    assert limits.wait_s("b") == 0
    clock.at += 500_000
    assert limits.wait_s("a") == 0

    async def main() -> None:
        options = HttpOptions(limits=HttpLimits(requests_per_s=0.5))
        async with served(tmp_path, options=options) as server:
            key = server.key("read")
            assert (await server.client.get("/api/v1/agents", headers=key)).status_code == 200
            late = await server.client.get("/api/v1/agents", headers=key)
            assert (late.status_code, int(late.headers["retry-after"]) >= 1) == (429, True)

    asyncio.run(main())

"""Approvals over HTTP: listed for the tenant, decided once, by a key that may, and by a client in Python."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.events import AlreadyDecided, uuid7
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.served_store import Served, served

RULES = {"approvals": [{"function": "core_memory_*"}]}
SAILS = completion(("core_memory_append", {"name": "human", "content": "Sails."}))


async def asked(server: Served, headers: dict[str, str]) -> dict[str, Any]:
    """Let sam make a call that waits, and return it as it is listed."""
    created = {"name": "sam", "settings": {"model": "script", **RULES}}
    await server.call("POST", "/agents", created, headers=headers, status=201)
    sent = await server.call("POST", "/agents/sam/messages", {"text": "I sail"}, headers=headers, status=200)
    assert (sent["text"], [one["name"] for one in sent["calls"]]) == ("", ["core_memory_append"])
    (waiting,) = (await server.call("GET", "/approvals", headers=headers, status=200))["approvals"]
    return dict(waiting)


def test_a_call_is_decided_once_and_by_a_key_that_may(tmp_path: Path) -> None:
    """`read` lists the calls of its tenant alone, `talk` decides, `always` needs `admin`; a repeat of the request
    answers the same, and another decision is refused with 409.
    """

    async def main() -> None:
        async with served(tmp_path, Script([SAILS, says("Noted.")])) as server:
            admin = server.key(tenant="acme")
            waiting = await asked(server, admin)
            assert (waiting["agent"], waiting["function"], waiting["decision"]) == (
                "sam", "core_memory_append", "waiting",
            )  # fmt: skip
            reader, talker = server.key("read", "acme"), server.key("talk", "acme")
            path = f"/agents/sam/approvals/{waiting['seq']}"
            approve = {"decision": "approve", "reason": "Yes."}
            assert (await server.call("GET", "/approvals", headers=server.key(tenant="beta")))["approvals"] == []
            await server.call("POST", path, approve, headers=reader, status=403)
            await server.call("POST", path, {**approve, "always": True}, headers=talker, status=403)
            await server.call("POST", path, {"decision": "refuse", "arguments": {}}, headers=talker, status=400)
            await server.call("POST", "/agents/sam/approvals/1", approve, headers=talker, status=400)
            await server.call("POST", "/agents/sam/approvals/x", approve, headers=talker, status=404)
            key = {**talker, "Idempotency-Key": uuid7(server.service.ports.clock.now(), 5)}
            first = await server.call("POST", path, approve, headers=key, status=200)
            assert first["text"] == "Noted."
            assert await server.call("POST", path, approve, headers=key, status=200) == first
            refused = await server.call("POST", path, {"decision": "refuse"}, headers=talker, status=409)
            assert refused["code"] == "already-decided"
            (done,) = (await server.call("GET", "/approvals?decided=true&agent=sam", headers=reader))["approvals"]
            assert (done["decision"], done["reason"]) == ("approved", "Yes.")
            await server.call("GET", "/approvals?agent=ann", headers=reader, status=404)
            await server.call("GET", "/approvals?agent=sam", headers=server.key(tenant="beta"), status=404)
            assert done["decided_by"]

    asyncio.run(main())


def test_a_program_decides_through_a_server(tmp_path: Path) -> None:
    """The client has the same methods as agents of this process, and raises the same errors."""

    async def main() -> None:
        async with served(tmp_path, Script([SAILS, says("Noted.")])) as server:
            waiting = await asked(server, {})
            async with everlog.connect_system(server.address) as system:
                sam = await system.agent("sam", create=False)
                done = await sam.approve(waiting["seq"], arguments={"name": "human", "content": "Rows."})
                assert [record.type for record in done][:3] == ["approval_decided", "memory_edited", "function_result"]
                with pytest.raises(AlreadyDecided, match="was approved at"):
                    await sam.refuse(waiting["seq"])

    asyncio.run(main())

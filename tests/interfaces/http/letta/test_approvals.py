"""Approvals by Letta's published client: asked for with a flag, listed as messages, decided by one."""

import asyncio
from pathlib import Path

import letta_client
import pytest
from letta_client import Letta

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import created, kinds, letta, texts

SAILS = completion(("core_memory_append", {"name": "human", "content": "Sails."}))


def approval(call_id: str, *, approve: bool = True, reason: str | None = None) -> dict:
    """Return the message of a decision."""
    one = {"type": "approval", "approve": approve, "tool_call_id": call_id, "reason": reason}
    return {"type": "approval", "approvals": [one]}


def test_a_call_waits_and_is_approved_by_a_message(tmp_path: Path) -> None:
    """The flag lets the function wait; the run ends with its request; the approval runs the call, and a repeat of the
    same decision is a conflict that names what holds.
    """

    def work(client: Letta) -> None:
        agent = created(client)
        client.agents.tools.update_approval(
            "core_memory_append", agent_id=agent, body_requires_approval=True, query_requires_approval=True
        )
        asked = client.agents.messages.create(agent, input="I sail")
        assert asked.stop_reason.stop_reason == "requires_approval"
        (request,) = [one for one in asked.messages if one.message_type == "approval_request_message"]
        assert request.tool_call.name == "core_memory_append"
        call_id = request.tool_call.tool_call_id
        pending = client.agents.retrieve(agent).pending_approval
        assert (pending.id, pending.tool_call, pending.date) == (request.id, request.tool_call, request.date)
        assert texts(client.agents.messages.create(agent, input="Well?").messages) == ["It waits."]
        done = client.agents.messages.create(agent, messages=[approval(call_id, reason="Yes.")])
        assert kinds(done.messages)[0] == "tool_return_message"
        assert client.agents.retrieve(agent).pending_approval is None
        assert (done.stop_reason.stop_reason, texts(done.messages)) == ("end_turn", ["Noted."])
        assert "Sails." in client.agents.blocks.retrieve("human", agent_id=agent).value
        with pytest.raises(letta_client.ConflictError, match="was approved at"):
            client.agents.messages.create(agent, messages=[approval(call_id, approve=False)])
        history = client.agents.messages.list(agent, order="asc", limit=50)
        (decided,) = [one for one in history if one.message_type == "approval_response_message"]
        assert (decided.approve, decided.reason) == (True, "Yes.")
        assert decided.approvals[0].tool_call_id == call_id

    async def main() -> None:
        script = Script([SAILS, says("It waits."), says("Noted.")])
        async with letta(tmp_path, script) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_repeated_decision_is_carried_out_once(tmp_path: Path) -> None:
    """The same message with the same `otid` answers what the first one did; an unknown call is refused in words."""

    def work(client: Letta) -> None:
        agent = created(client)
        client.agents.tools.update_approval(
            "core_memory_append", agent_id=agent, body_requires_approval=True, query_requires_approval=True
        )
        asked = client.agents.messages.create(agent, input="I sail")
        call_id = next(m.tool_call.tool_call_id for m in asked.messages if m.message_type == "approval_request_message")
        with pytest.raises(letta_client.UnprocessableEntityError, match="waits for an approval"):
            client.agents.messages.create(agent, messages=[approval("call_x")])
        message = {**approval(call_id, approve=False, reason="No."), "otid": "o-1"}
        answers = [client.agents.messages.create(agent, messages=[message]) for _ in range(2)]
        assert [texts(answer.messages) for answer in answers] == [["Then not."]] * 2
        client.agents.tools.update_approval(
            "core_memory_append", agent_id=agent, body_requires_approval=False, query_requires_approval=False
        )
        client.agents.messages.create(agent, input="I row")
        assert "Sails." in client.agents.blocks.retrieve("human", agent_id=agent).value

    async def main() -> None:
        async with letta(tmp_path, Script([SAILS, says("Then not."), SAILS, says("Yes.")])) as server:
            await server.run(work)

    asyncio.run(main())

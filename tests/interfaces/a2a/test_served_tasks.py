"""Tasks of agents, as the published A2A client sees them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.served_store import Served, served

pytest.importorskip("a2a", reason="the extra a2a is not installed")

import httpx
from a2a.client import A2ACardResolver
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest, TaskState
from a2a.utils import errors
from a2a.utils.proto_utils import validate_proto_required_fields

from tests.support.a2a.sdk_client import answered, said, sdk_client, task_of, words

SAILS = completion(("core_memory_append", {"name": "human", "content": "Sails."}))
WAITING = {"approvals": [{"function": "core_memory_*"}]}


async def created(server: Served, headers: dict[str, str] | None = None, **settings: Any) -> None:
    body = {"name": "sam", "settings": {"model": "script", **settings}}
    await server.call("POST", "/agents", body, headers=headers, status=201)


def test_cards_have_all_that_the_protocol_requires(tmp_path: Path) -> None:
    """The cards of an agent and of the server are whole by the types of the published SDK; the server's card names no
    agent, and the extended one lists those of the key's tenant alone.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            acme, beta = server.key(tenant="acme"), server.key(tenant="beta")
            await created(server, acme)
            async with httpx.AsyncClient(trust_env=False) as open_http:
                whole = await A2ACardResolver(open_http, server.address).get_agent_card()
            validate_proto_required_fields(whole)
            assert "sam" not in str(whole)
            for key, expected in ((acme, ["talk", "sam"]), (beta, ["talk"])):
                async with httpx.AsyncClient(headers=key, trust_env=False) as http:
                    call = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}
                    more = await http.post(f"{server.address}/a2a", json=call, headers={"A2A-Version": "1.0"})
                assert [one["id"] for one in more.json()["result"]["skills"]] == expected
            async with httpx.AsyncClient(headers=acme, trust_env=False) as http:
                card = await A2ACardResolver(http, f"{server.address}/a2a/sam").get_agent_card()
            validate_proto_required_fields(card)
            assert (card.name, card.supported_interfaces[0].url) == ("sam", f"{server.address}/a2a/sam")

    asyncio.run(main())


def test_a_message_is_a_task_and_its_repeat_the_same_one(tmp_path: Path) -> None:
    """A message begins a task whose id is the run's, and whose answer is what the agent said; the same messageId gives
    the same task, and with other words it is refused.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy"), says("Again")])) as server:
            await created(server)
            async with sdk_client(server.address, "sam") as client:
                task = await task_of(client, said("Hello", "m-1"))
                assert (task.status.state, words(task), task.context_id) == (
                    TaskState.TASK_STATE_COMPLETED, ["Ahoy"], "sam",
                )  # fmt: skip
                assert [part.text for one in task.history for part in one.parts] == ["Hello"]
                run = await server.call("GET", f"/agents/sam/runs/{task.id}", status=200)
                assert run["text"] == "Ahoy"
                assert await task_of(client, said("Hello", "m-1")) == task
                with pytest.raises(errors.InvalidParamsError, match="other"):
                    await task_of(client, said("Other", "m-1"))
                assert await client.get_task(GetTaskRequest(id=task.id)) == task
                shown = await client.get_task(GetTaskRequest(id=task.id, history_length=0))
                assert (list(shown.history), words(shown)) == ([], ["Ahoy"])
                other = await task_of(client, said("Hello", "m-2", context="ctx-9"))
                assert (other.context_id, other.id != task.id, words(other)) == ("ctx-9", True, ["Again"])

    asyncio.run(main())


class Held(Script):
    """A model that answers when the test lets it."""

    def __init__(self, answers: list[Any]) -> None:
        super().__init__(answers)
        self.held, self.go = asyncio.Event(), asyncio.Event()

    async def ask(self, request: bytes, **more: object) -> Any:
        self.held.set()
        await self.go.wait()
        return await super().ask(request, **more)


def state_of(item: Any) -> Any:
    """Return the state of a task that an item of a stream says."""
    return item.status_update.status.state if item.HasField("status_update") else item.task.status.state


def test_a_stream_has_each_message_once_and_ends(tmp_path: Path) -> None:
    """A stream begins with the task, adds each message of the agent to the answer once, and ends with its state; the
    same message sent again streams the task as it ended.
    """

    async def main() -> None:
        two = completion(("send_message", {"message": "One"}), ("send_message", {"message": "Two"}))
        model = Held([two])
        async with served(tmp_path, model) as server:
            await created(server)
            async with sdk_client(server.address, "sam", streaming=True) as client:
                stream = client.send_message(said("Hello", "m-1"))
                first = await anext(stream)
                assert (first.WhichOneof("payload"), words(first.task)) == ("task", [])
                await model.held.wait()
                model.go.set()
                items = [one async for one in stream]
                parts = [part.text for one in items for part in one.artifact_update.artifact.parts]
                assert parts == ["One", "Two"]
                assert state_of(items[-1]) == TaskState.TASK_STATE_COMPLETED
                (again,) = await answered(client, said("Hello", "m-1"))
                assert (words(again.task), state_of(again)) == (["One", "Two"], TaskState.TASK_STATE_COMPLETED)
                with pytest.raises(errors.UnsupportedOperationError):
                    [one async for one in client.subscribe(SubscribeToTaskRequest(id=again.task.id))]

    asyncio.run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_call_that_waits_makes_a_task_input_required(tmp_path: Path, *, streaming: bool) -> None:
    """A call that waits for a person makes its task input-required and names the call; a message with the task's id
    decides it once, and the task ends with what the agent says then.
    """

    async def main() -> None:
        async with served(tmp_path, Script([SAILS, says("Noted.")])) as server:
            await created(server, **WAITING)
            async with sdk_client(server.address, "sam", streaming=streaming) as client:
                items = await answered(client, said("I sail", "m-1"))
                task = await client.get_task(GetTaskRequest(id=items[0].task.id))
                assert state_of(items[-1]) == task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
                (call,) = task.status.message.parts[1].data.struct_value["approvals"]
                assert call["function"] == "core_memory_append"
                with pytest.raises(errors.InvalidParamsError, match="approve"):
                    await answered(client, said("Perhaps", "m-2", task=task.id))
                with pytest.raises(errors.TaskNotCancelableError, match="Refuse the call"):
                    await client.cancel_task(CancelTaskRequest(id=task.id))
                for _ in range(2):
                    await answered(client, said("Approve: why not", "m-3", task=task.id))
                    ended = await client.get_task(GetTaskRequest(id=task.id))
                    assert (ended.status.state, words(ended)) == (TaskState.TASK_STATE_COMPLETED, ["Noted."])
                with pytest.raises(errors.UnsupportedOperationError, match="takes no message"):
                    await answered(client, said("refuse", "m-4", task=task.id))
            blocks = await server.call("GET", "/agents/sam/blocks", status=200)
            assert str(blocks).count("Sails.") == 1

    asyncio.run(main())


def test_a_decision_is_also_data(tmp_path: Path) -> None:
    """A data part decides, with other arguments than the model's; one that is no decision is refused, and decides
    nothing.
    """

    async def main() -> None:
        async with served(tmp_path, Script([SAILS, says("Noted.")])) as server:
            await created(server, **WAITING)
            async with sdk_client(server.address, "sam") as client:
                task = await task_of(client, said("I sail", "m-1"))
                for wrong in ({"decision": "perhaps"}, {"decision": "approve", "call": 3}):
                    with pytest.raises(errors.InvalidParamsError, match="Nothing was decided"):
                        await task_of(client, said("", "m-2", task=task.id, data=wrong))
                edited = {"decision": "approve", "arguments": {"name": "human", "content": "Rows."}}
                ended = await task_of(client, said("", "m-3", task=task.id, data=edited))
                assert words(ended) == ["Noted."]
            assert "Rows." in str(await server.call("GET", "/agents/sam/blocks", status=200))

    asyncio.run(main())


def test_a_task_is_subscribed_to_and_cancelled(tmp_path: Path) -> None:
    """A task whose client does not wait is at work; a reader that comes later gets its end, and a cancelled one ends
    as cancelled, once.
    """

    async def main() -> None:
        model = Held([])
        async with served(tmp_path, model) as server:
            await created(server)
            async with sdk_client(server.address, "sam", streaming=True) as client:
                request = said("Hello", "m-1")
                request.configuration.return_immediately = True
                async with sdk_client(server.address, "sam") as impatient:
                    task = await task_of(impatient, request)
                await model.held.wait()
                reading = client.subscribe(SubscribeToTaskRequest(id=task.id))
                first = await anext(reading)
                assert first.task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
                gone = await client.cancel_task(CancelTaskRequest(id=task.id))
                assert gone.status.state == TaskState.TASK_STATE_CANCELED
                rest = [one async for one in reading]
                assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED
                with pytest.raises(errors.TaskNotCancelableError):
                    await client.cancel_task(CancelTaskRequest(id=task.id))

    asyncio.run(main())


def test_an_erased_task_is_still_a_task(tmp_path: Path) -> None:
    """A task whose words were erased is found by its id, with its state and without the words."""

    async def main() -> None:
        async with served(tmp_path, Script([says("A pin, yes")])) as server:
            await created(server)
            async with sdk_client(server.address, "sam") as client:
                task = await task_of(client, said("A pin", "m-1", context="ctx-9"))
                await server.call("POST", "/agents/sam/erasures", {"match": ["pin"]}, status=202)
                while server.service.tasks:
                    await asyncio.wait(set(server.service.tasks))
                left = await client.get_task(GetTaskRequest(id=task.id))
                assert "pin" not in str(left)
            assert (left.status.state, left.id) == (TaskState.TASK_STATE_COMPLETED, task.id)

    asyncio.run(main())

"""Lists of tasks, as the published A2A client sees them."""

import asyncio
from pathlib import Path

import pytest

from tests.interfaces.a2a.test_served_tasks import SAILS, WAITING, created
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import served

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from a2a.types.a2a_pb2 import GetTaskRequest, ListTasksRequest, TaskState
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.a2a.sdk_client import said, sdk_client, task_of, words


def test_tasks_are_listed_by_page_the_newest_first(tmp_path: Path) -> None:
    """Each task is on one page, as `GetTask` shows it, without its answer unless that is asked for."""

    async def main() -> None:
        async with served(tmp_path, Script([says(f"Answer {number}") for number in range(5)])) as server:
            await created(server)
            async with sdk_client(server.address, "sam") as client:
                made = [await task_of(client, said(f"Question {number}", f"m-{number}")) for number in range(5)]
                found, token = [], ""
                while True:
                    asked = ListTasksRequest(page_size=2, page_token=token, include_artifacts=True)
                    page = await client.list_tasks(asked)
                    assert (page.page_size, page.total_size) == (2, 5)
                    found += page.tasks
                    token = page.next_page_token
                    if not token:
                        break
                assert found == made[::-1]
                plain = await client.list_tasks(ListTasksRequest(history_length=0))
                assert [one.id for one in plain.tasks] == [one.id for one in found]
                assert [(list(one.history), words(one)) for one in plain.tasks] == [([], [])] * 5

    asyncio.run(main())


def test_tasks_are_listed_by_state_context_and_time(tmp_path: Path) -> None:
    """A filter leaves out the others, also of the count; a task that was decided is the newest one."""

    async def main() -> None:
        async with served(tmp_path, Script([SAILS, says("Later"), says("Noted.")])) as server:
            await created(server, **WAITING)
            async with sdk_client(server.address, "sam") as client:

                async def ids(**wanted: object) -> list[str]:
                    page = await client.list_tasks(ListTasksRequest(**wanted))
                    assert (page.total_size, page.next_page_token) == (len(page.tasks), "")
                    return [one.id for one in page.tasks]

                first = await task_of(client, said("I sail", "m-1"))
                second = await task_of(client, said("Hello", "m-2", context="ctx-9"))
                assert await ids() == [second.id, first.id]
                assert await ids(status=TaskState.TASK_STATE_INPUT_REQUIRED) == [first.id]
                assert await ids(context_id="ctx-9") == [second.id]
                assert await ids(context_id="sam") == [first.id]
                await task_of(client, said("approve", "m-3", task=first.id))
                assert await ids() == [first.id, second.id]
                assert await ids(status=TaskState.TASK_STATE_INPUT_REQUIRED) == []
                ended = await client.get_task(GetTaskRequest(id=first.id))
                assert await ids(status_timestamp_after=ended.status.timestamp) == [first.id]
                later = Timestamp(seconds=ended.status.timestamp.seconds + 60)
                assert await ids(status_timestamp_after=later) == []

    asyncio.run(main())


def test_tasks_of_a_deleted_agent_are_listed_no_more(tmp_path: Path) -> None:
    """An agent that is created again has only the tasks since then."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One"), says("Two")])) as server:
            await created(server)
            async with sdk_client(server.address, "sam") as client:
                await task_of(client, said("Hello", "m-1"))
                await server.call("DELETE", "/agents/sam", status=200)
                await created(server)
                assert (await client.list_tasks(ListTasksRequest())).total_size == 0
                two = await task_of(client, said("Hello", "m-2"))
                (only,) = (await client.list_tasks(ListTasksRequest(include_artifacts=True))).tasks
                assert only == two

    asyncio.run(main())

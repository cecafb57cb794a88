"""Tasks of a real `everlog serve`, which is killed between a task and what is asked of it later."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.killable_server import KillableServer

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from a2a.types.a2a_pb2 import GetTaskRequest, TaskState

from tests.support.a2a.sdk_client import said, sdk_client, task_of, words


def test_a_task_outlives_its_server(tmp_path: Path) -> None:
    """After a kill the same message is the same task, and a task that waited for a person before still waits, and is
    decided.
    """
    server = KillableServer(tmp_path)

    async def before() -> tuple[Any, Any]:
        settings = {"model": "offline", "approvals": [{"function": "core_memory_*"}]}
        async with httpx2.AsyncClient(base_url=server.address, timeout=60, trust_env=False) as http:
            made = await http.post("/api/v1/agents", json={"name": "sam", "settings": settings})
            assert made.status_code == 201, made.text
        async with sdk_client(server.address, "sam") as client:
            done = await task_of(client, said("Hello", "m-1"))
            return done, await task_of(client, said("My name is Chad", "m-2"))

    async def after(done: Any, waiting: Any) -> Any:
        async with sdk_client(server.address, "sam") as client:
            assert await task_of(client, said("Hello", "m-1")) == done
            assert await client.get_task(GetTaskRequest(id=waiting.id)) == waiting
            return await task_of(client, said("approve", "m-3", task=waiting.id))

    server.start()
    try:
        done, waiting = asyncio.run(before())
        assert (done.status.state, len(words(done))) == (TaskState.TASK_STATE_COMPLETED, 1)
        assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        server.kill()
        server.start()
        ended = asyncio.run(after(done, waiting))
        assert (ended.status.state, ended.id) == (TaskState.TASK_STATE_COMPLETED, waiting.id)
    finally:
        if server.process is not None:
            server.kill()

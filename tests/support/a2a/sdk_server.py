"""Agents of another program, served by the published A2A SDK in a thread of their own; and servers that misbehave."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import Queue
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role, Task
from starlette.applications import Starlette
from starlette.routing import Route

from everlog.interfaces.http.stoppable_server import StoppableServer


class Clerk(AgentExecutor):
    """An agent that answers by the first word that it is told: `ask` needs an answer, `fail` fails, `chat` makes no
    task; anything else is done.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        """Ids and words of the messages that came, in order."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, message = context.get_user_input(), context.message
        assert message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        self.heard.append((message.message_id, text))
        if text.startswith("chat"):
            said = Message(message_id="s", role=Role.ROLE_AGENT, parts=[Part(text="Hello")], context_id="c-1")
            await event_queue.enqueue_event(said)
            return
        updates = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            task = Task(id=context.task_id, context_id=context.context_id, history=[message])
            task.status.state = 1
            await event_queue.enqueue_event(task)
        await updates.start_work()
        if text.startswith("ask"):
            await updates.requires_input(updates.new_agent_message([Part(text="Which colour?")]))
        elif text.startswith("fail"):
            await updates.failed(updates.new_agent_message([Part(text="The press is broken.")]))
        else:
            await updates.add_artifact([Part(text=f"Done: {text}")], name="answer")
            await updates.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def card_of(address: str, *, binding: str = "JSONRPC", version: str = "1.0") -> AgentCard:
    """Return the card of the clerk."""
    return AgentCard(
        name="Clerk",
        description="Does what clerks do.",
        version="1",
        supported_interfaces=[AgentInterface(url=f"{address}/rpc", protocol_binding=binding, protocol_version=version)],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="print", name="Print", description="Prints posters.", tags=["print"])],
    )


@contextmanager
def sdk_server(clerk: Clerk, **card: str) -> Iterator[str]:
    """Serve an agent by the published SDK while the block runs, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    described = card_of(address, **card)
    handler = DefaultRequestHandler(clerk, InMemoryTaskStore(), described)
    routes = [*create_agent_card_routes(described), *create_jsonrpc_routes(handler, "/rpc")]
    routes += create_rest_routes(handler, path_prefix="/rpc")
    with served_app(Starlette(routes=routes), int(address.rpartition(":")[2])) as at:
        yield at


@contextmanager
def served_app(app: Any, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread while the block runs, and yield its address."""
    listener = socket.create_server(("127.0.0.1", port))
    ready: Queue[Callable[[], object]] = Queue()

    async def serve() -> None:
        server = StoppableServer(uvicorn.Config(app, log_config=None, lifespan="off"))
        server.force_exit = True  # what a test leaves open does not hold it up
        work = asyncio.ensure_future(server.serve([listener]))
        await server.begun.wait()
        ready.put(partial(asyncio.get_running_loop().call_soon_threadsafe, server.stop))
        await work

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    stop = ready.get(timeout=20)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop()
        thread.join(20)
        listener.close()


def raw_app(answers: Sequence[tuple[str, Callable[..., Any]]]) -> Starlette:
    """Return an application that answers each path by a function."""
    return Starlette(routes=[Route(path, function, methods=["GET", "POST"]) for path, function in answers])

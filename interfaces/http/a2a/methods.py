"""Answer the methods of A2A at the address of an agent, or at the one of all agents, where `tenant` names one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from everlog.events import EverlogError, UnknownAgent
from everlog.interfaces.http.a2a.cards import server_card_of
from everlog.interfaces.http.a2a.message_input import check_wishes
from everlog.interfaces.http.a2a.shapes import (
    ListParams,
    RpcCall,
    RpcResult,
    SendParams,
    TaskItem,
    TaskParams,
    TenantParams,
)
from everlog.interfaces.http.a2a.surface import VERSION, A2aFault, RpcFailure, failure
from everlog.interfaces.http.a2a.task_pages import task_page
from everlog.interfaces.http.a2a.task_runs import TaskRun, begun_task, found_task, listed_tasks, no_task
from everlog.interfaces.http.a2a.task_shapes import task_shape
from everlog.interfaces.http.core.event_streams import EventStreamResponse, StreamStyle
from everlog.interfaces.http.core.keys import ROLES, Role
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, encode, not_found
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.runs.run_items import drained

STYLE = StreamStyle(retry=False, stop=b"")
"""Streams of A2A's clients, which come back by `SubscribeToTask`."""
_ENDED = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED")

RpcId = str | int | None


async def answer_rpc(call: HttpCall) -> Response:
    """Answer one call of a method: by a result, an error, or a stream of results."""
    rpc: RpcCall = call.body
    try:
        _check_version(call)
        method = METHODS.get(rpc.method)
        if method is None:
            raise A2aFault(
                "METHOD_NOT_FOUND",
                f"There is no method {rpc.method[:80]!r}: everlog speaks A2A {VERSION}, and has {', '.join(METHODS)}.",
            )  # fmt: skip
        _check_role(call, rpc.method, method.role)
        params = _params(rpc, method.params)
        if method.of_agent:
            await _check_agent(call, params.tenant)
        answered = await method.answer(call, params)
    except A2aFault as fault:
        return JsonResponse(failure(fault.reason, str(fault), rpc.id))
    except EverlogError as error:
        return _failed(call, error, rpc.id)
    if isinstance(answered, TaskRun):
        return EventStreamResponse(call.service, call.caller, _events(call, rpc.id, answered), style=STYLE)
    return JsonResponse(RpcResult(result=answered, id=rpc.id))


def _check_version(call: HttpCall) -> None:
    """Raise A2aFault for a client of another version. One that names none is of version 0.3, as the protocol says."""
    given = call.request.headers.get("a2a-version", "").strip()
    if given.partition(".")[0] != VERSION.partition(".")[0]:
        raise A2aFault(
            "VERSION_NOT_SUPPORTED",
            f"everlog speaks A2A {VERSION}, and the client says {given[:20]!r} in the header A2A-Version. Nothing was "
            "done.",
        )  # fmt: skip


def _check_role(call: HttpCall, name: str, role: Role) -> None:
    if ROLES.index(call.caller.role) < ROLES.index(role):
        raise Refusal(
            403, "forbidden", f"The key has the role {call.caller.role!r}, and {name} needs {role!r}. Nothing was done."
        )


def _params(rpc: RpcCall, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(rpc.params, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise A2aFault("INVALID_PARAMS", f"The parameters are not what they should be: {error}.") from error


async def _check_agent(call: HttpCall, tenant: str) -> None:
    """Raise the refusal of a call about an agent that there is not. At the address of all, `tenant` is its name."""
    if "agent" not in call.params:
        if not tenant:
            raise A2aFault(
                "INVALID_PARAMS",
                "This address is for all agents: name one as `tenant`, or use its own card, at "
                "/a2a/NAME/.well-known/agent-card.json. Nothing was done.",
            )  # fmt: skip
        call.params = {**call.params, "agent": tenant}
    try:
        await call.service.ports.aside(call.opened, call.stream)
    except UnknownAgent as error:
        raise not_found(f"agent {call.params['agent'][:80]!r}") from error


def _failed(call: HttpCall, error: EverlogError, rpc_id: RpcId) -> Response:
    """Return the answer for an error: with its HTTP status if the request may succeed later, or the server failed."""
    problem = problem_for(error, call.names)
    if problem.status >= 500 or problem.status == 429:
        headers = {"Retry-After": str(max(1, round(problem.retry_after_s)))} if problem.retry_after_s else {}
        return JsonResponse(failure("INTERNAL_ERROR", problem.message, rpc_id), problem.status, headers)
    return JsonResponse(failure("INVALID_PARAMS", problem.message, rpc_id))


async def _events(call: HttpCall, rpc_id: RpcId, run: TaskRun) -> AsyncIterator[bytes]:
    """Yield the events of a task, each as the answer to the call."""
    try:
        async for item in run.events():
            yield _event(RpcResult(result=item, id=rpc_id))
    except A2aFault as fault:  # the task was erased while it was read
        yield _event(failure(fault.reason, str(fault), rpc_id))
    except EverlogError as error:
        yield _event(failure("INTERNAL_ERROR", problem_for(error, call.names).message, rpc_id))


def _event(answer: RpcResult | RpcFailure) -> bytes:
    return b"data: %s\n\n" % encode(answer)


async def _send(call: HttpCall, asked: SendParams) -> Any:
    """Send a message, and answer when the task has ended or needs a person; at once if the client wants that."""
    check_wishes(asked.configuration)
    run = await begun_task(call, asked.message)
    if asked.configuration.return_immediately:
        found = await run.now()
        if run.items is not None:
            call.service.detach(drained(run.items))
    else:
        found = await run.ended()
    return TaskItem(task=task_shape(found, run.place(found), asked.configuration.history_length))


async def _stream(call: HttpCall, asked: SendParams) -> TaskRun:
    """Send a message, and stream what follows."""
    check_wishes(asked.configuration)
    return await begun_task(call, asked.message)


async def _subscribe(call: HttpCall, asked: TaskParams) -> TaskRun:
    """Stream a task that has not ended: as it is, then what changes."""
    found = await found_task(call, asked.id)
    if found is None:
        raise no_task(call, asked.id)
    if found.state in _ENDED:
        raise A2aFault("UNSUPPORTED_OPERATION", f"The task has ended ({found.state}): read it by GetTask.")
    return TaskRun(call, asked.id)


async def _show(call: HttpCall, asked: TaskParams) -> Any:
    """Return a task as it is now."""
    run = TaskRun(call, asked.id)
    found = await run.now()
    return task_shape(found, run.place(found), asked.history_length)


async def _cancel(call: HttpCall, asked: TaskParams) -> Any:
    """Cancel what a task runs. What it has committed stays."""
    run = TaskRun(call, asked.id)
    found = await run.now()
    if found.running is None:
        waits = " Refuse the call that waits." if found.waiting else ""
        raise A2aFault("TASK_NOT_CANCELABLE", f"Nothing of the task is at work ({found.state}).{waits}")
    handle = call.service.system.handle(call.stream, by=call.caller.key_id)
    await handle.cancel(turn=found.running.turn)
    found = await run.now()
    return task_shape(found, run.place(found))


async def _no_push(_: HttpCall, _asked: TenantParams) -> Any:
    raise A2aFault(
        "PUSH_NOTIFICATION_NOT_SUPPORTED", "Tasks are not pushed. The operator can set up webhooks for new records."
    )


async def _list(call: HttpCall, asked: ListParams) -> Any:
    """Return one page of the agent's tasks."""
    return task_page(await listed_tasks(call), asked, call.params["agent"])


async def _extended_card(call: HttpCall, _: TenantParams) -> Any:
    """Return the card of the server, with the agents that the key sees."""
    return await server_card_of(call)


class RpcMethod(NamedTuple):
    """One method of the protocol."""

    params: type[Any]
    answer: Callable[[HttpCall, Any], Awaitable[Any]]
    role: Role = "read"
    of_agent: bool = True
    """True if it concerns one agent."""


METHODS: Mapping[str, RpcMethod] = {
    "SendMessage": RpcMethod(SendParams, _send, "talk"),
    "SendStreamingMessage": RpcMethod(SendParams, _stream, "talk"),
    "GetTask": RpcMethod(TaskParams, _show),
    "CancelTask": RpcMethod(TaskParams, _cancel, "talk"),
    "SubscribeToTask": RpcMethod(TaskParams, _subscribe),
    "ListTasks": RpcMethod(ListParams, _list),
    "CreateTaskPushNotificationConfig": RpcMethod(TenantParams, _no_push),
    "GetTaskPushNotificationConfig": RpcMethod(TenantParams, _no_push),
    "ListTaskPushNotificationConfigs": RpcMethod(TenantParams, _no_push),
    "DeleteTaskPushNotificationConfig": RpcMethod(TenantParams, _no_push),
    "GetExtendedAgentCard": RpcMethod(TenantParams, _extended_card, of_agent=False),
}
"""Methods by name. Those that are refused say why."""

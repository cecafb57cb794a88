"""Begin, decide and follow tasks: the runs behind them are joined as every other surface joins runs."""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from everlog.actors.agent_ref import AgentRef
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.runtime import Run
from everlog.events import UserMessage
from everlog.interfaces.http.a2a.message_input import SentDecision, arguments_of, decision_of, words_of
from everlog.interfaces.http.a2a.shapes import A2aMessage, TaskItem
from everlog.interfaces.http.a2a.surface import A2aFault
from everlog.interfaces.http.a2a.task_lookup import TaskRecords, find_task, list_tasks
from everlog.interfaces.http.a2a.task_shapes import (
    TaskPlace,
    answer_parts,
    answer_update,
    context_of,
    status_update,
    task_shape,
)
from everlog.interfaces.http.core.idempotency import CommandIds, ids_of_key
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.runs.run_items import RunEnded, RunItem, RunLeft, begun_items, joined_items


class TaskRun:
    """A task of the agent that a call names, and what its run that is at work brings."""

    def __init__(self, call: HttpCall, task: str, items: AsyncIterator[RunItem] | None = None) -> None:
        """`items`: of the run that this request began; None: it began none."""
        self.task = task
        self.items = items
        self._call = call

    async def now(self) -> TaskRecords:
        """Return the task as its log has it now. Raises A2aFault for a task that there is not."""
        found = await found_task(self._call, self.task)
        if found is None:
            raise no_task(self._call, self.task)
        return found

    def place(self, found: TaskRecords) -> TaskPlace:
        """Return the names of the task for the client."""
        return TaskPlace(self.task, context_of(found, self._call.params["agent"]))

    async def next_items(self, found: TaskRecords) -> AsyncIterator[RunItem] | None:
        """Return what the run that is at work brings; None if none is."""
        items, self.items = self.items, None
        if items is not None or found.running is None:
            return items
        service, stream, run = self._call.service, self._call.stream, found.running.event_id
        records = await service.run_of(stream, run)
        assert records is not None, "the input of a turn is the input of a run"
        return joined_items(service, stream, run, records)

    async def ended(self) -> TaskRecords:
        """Wait until the task has ended, or needs a person, and return it. Raises the error of a run that continues
        elsewhere.
        """
        found = await self.now()
        while (items := await self.next_items(found)) is not None:
            async for item in items:
                if isinstance(item, RunLeft):
                    raise item.error
            found = await self.now()
        return found

    async def events(self) -> AsyncIterator[TaskItem]:
        """Yield the task, then what changes, until it has ended or needs a person. Raises as `ended` does."""
        found = await self.now()
        place, last = self.place(found), found.records[-1].seq
        yield TaskItem(task=task_shape(found, place))
        shown, said = found.state, bool(answer_parts(found.records))
        while (items := await self.next_items(found)) is not None:
            async for item in items:
                if isinstance(item, RunLeft):
                    raise item.error
                if isinstance(item, RunEnded | Preview) or not item:
                    continue
                found = await self.now()
                for update in _changes(found, place, last, said=said, state=shown):
                    said = said or update.artifact_update is not None
                    yield update
                shown, last = found.state, found.records[-1].seq
            found = await self.now()
            for update in _changes(found, place, last, said=said, state=shown):
                said = said or update.artifact_update is not None
                yield update
            shown, last = found.state, found.records[-1].seq


def _changes(found: TaskRecords, place: TaskPlace, last: int, *, said: bool, state: str) -> list[TaskItem]:
    """Return what changed in a task since a seq. `said`, `state`: what the reader knows of it."""
    fresh = answer_parts([record for record in found.records if record.seq > last])
    changes = [TaskItem(artifact_update=answer_update(fresh, place, append=said))] if fresh else []
    return [*changes, *([TaskItem(status_update=status_update(found, place))] if found.state != state else [])]


async def found_task(call: HttpCall, task: str) -> TaskRecords | None:
    """Return a task of the agent of a call; None if there is none."""
    reader = await call.service.ports.aside(call.service.system.store.reader, call.stream)
    found: TaskRecords | None = await call.service.ports.aside(partial(find_task, reader, call.stream, task))
    return found


async def listed_tasks(call: HttpCall) -> Sequence[TaskRecords]:
    """Return all tasks of the agent of a call, the one with the newest record first."""
    reader = await call.service.ports.aside(call.service.system.store.reader, call.stream)
    found: Sequence[TaskRecords] = await call.service.ports.aside(partial(list_tasks, reader, call.stream))
    return found


def no_task(call: HttpCall, task: str) -> A2aFault:
    """Return the refusal of a task that there is not."""
    return A2aFault("TASK_NOT_FOUND", f"The agent {call.params['agent']!r} has no task {task[:80]!r}.")


async def begun_task(call: HttpCall, message: A2aMessage) -> TaskRun:
    """Send the message of a client: it begins a task, or decides what one waits for. A message that was sent before
    joins its task. Raises A2aFault, and the errors of agents.
    """
    ids = await _ids_of(call, message.message_id)
    if message.task_id:
        return await _decided(call, message, ids)
    agent = call.params["agent"]
    conversation = "" if message.context_id in ("", agent) else message.context_id
    run = _handle(call, ids).send(UserMessage(text=words_of(message), conversation=conversation))
    return await _begun(call, ids.id, run)


async def _decided(call: HttpCall, message: A2aMessage, ids: CommandIds) -> TaskRun:
    """Decide what a task waits for."""
    found = await found_task(call, message.task_id)
    if found is None:
        raise no_task(call, message.task_id)
    repeated = found.decision([ids.id])
    if repeated is None and found.state != "TASK_STATE_INPUT_REQUIRED":
        raise A2aFault(
            "UNSUPPORTED_OPERATION",
            f"The task is in the state {found.state}, and takes no message. Send the message without a taskId: it "
            "begins a task of its own, and the agent remembers this one. Nothing was sent.",
        )  # fmt: skip
    sent = decision_of(message)
    seq = sent.call or (repeated.request if repeated else found.waiting[0].seq)
    if repeated is None and seq not in [record.seq for record in found.waiting]:
        raise A2aFault("INVALID_PARAMS", f"The task has no call {seq} that waits. Nothing was decided.")
    run = _decision_run(_handle(call, ids), sent, seq, found)
    return await _begun(call, message.task_id, run)


def _decision_run(handle: AgentRef, sent: SentDecision, seq: int, found: TaskRecords) -> Run:
    if sent.decision == "refuse":
        return handle.refuse(seq, sent.reason)
    return handle.approve(seq, arguments=arguments_of(sent, seq, found.records), reason=sent.reason)


def _handle(call: HttpCall, ids: CommandIds) -> AgentRef:
    return call.service.system.handle(call.stream, by=call.caller.key_id, first_id=ids.id)


async def _begun(call: HttpCall, task: str, run: Run) -> TaskRun:
    items = await begun_items(run)
    call.service.tails.nudge(call.stream)
    return TaskRun(call, task, items)


async def _ids_of(call: HttpCall, message_id: str) -> CommandIds:
    """Return the id under which a message is written: that of an earlier try, if there was one."""
    ids = ids_of_key(message_id, call.stream, call.service.ports.clock.now())
    if ids.earlier and await call.service.is_known(call.stream, ids.earlier):
        return CommandIds(ids.earlier)
    return ids

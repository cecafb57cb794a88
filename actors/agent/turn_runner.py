"""Run a turn in steps, from its input until the agent is idle.

A step fits the context, calls the model, runs the functions, and commits the reply and all results at once. Only a call
with an effect outside the log needs an earlier commit, before the effect starts. After a crash an unfinished turn is
resumed from the log alone. Used by `Agent`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent.decide import ReplyExecution
from everlog.actors.agent.model_step import AcceptedReply, ModelCaller, StepAgent
from everlog.actors.agent.undo import interrupted_result
from everlog.actors.derivation import plan_rules
from everlog.actors.functions.external_call import ExternalCall
from everlog.actors.functions.function_text import failure
from everlog.actors.functions.run_function import run_function
from everlog.actors.functions.tools import Tool
from everlog.actors.memory import block_sync
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.ports.effects import Searcher
from everlog.actors.ports.function_call import ProgressListener
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt.context import Context
from everlog.events import (
    INPUTS,
    ApprovalDecided,
    Call,
    FunctionResult,
    FunctionStarted,
    ModelReply,
    Question,
    TurnAbandoned,
    UserMessage,
)


class TurnRunner:
    """Runs the turns of one agent."""

    __slots__ = ("_agent", "_clock", "_model_caller", "_run_function", "_searcher", "_tools")

    def __init__(
        self,
        agent: StepAgent,
        model_caller: ModelCaller,
        *,
        tools: Mapping[str, Tool],
        searcher: Callable[[Context | None, int], Searcher],
        ports: Ports,
    ) -> None:
        self._agent = agent
        self._model_caller = model_caller
        self._tools = tools
        self._searcher = searcher
        self._clock = ports.clock
        self._run_function = partial(run_function, runner=ports.functions, note=ports.note, agent_id=agent.agent_id)

    async def run(self, turn: int, cause: str) -> None:
        """Run the turn that the event `cause` opened. An empty `cause` resumes the turn where the log ends.

        A ModelError is recorded and ends the turn before it is raised; messages of the turn stay in the context.
        """
        step = 1
        if not cause:
            cause, step, continues = await self._resume_point(turn)
            if not continues:
                return
            steps_max = (await self._model_caller.context(turn)).config.steps_max
            if step > steps_max:
                await self._abandon(turn, step - 1, steps_max)
                return
        while True:
            thought = await self._model_caller.think(turn, step, cause)
            if thought is None:
                return
            cause, continues = await self._act(thought, turn, step)
            if not continues:
                return
            if step >= thought.context.config.steps_max:
                await self._abandon(turn, step, thought.context.config.steps_max)
                return
            step += 1

    async def _act(self, thought: AcceptedReply, turn: int, step: int) -> tuple[str, bool]:
        """Run the functions of a reply and commit everything. Return the last event's id, True if a step follows."""
        now = self._clock.now()
        work = self._step(thought.context, thought.reply, turn, step, now)
        return await self._work_off(work, turn, step, thought.cause, at=now)

    def _step(
        self,
        context: Context,
        reply: ModelReply,
        turn: int,
        step: int,
        now: int,
        results: Mapping[str, FunctionResult] | None = None,
        approval: int = 0,
    ) -> ReplyExecution:
        desk = FunctionMemory(context.blocks, now=now, zone=context.config.zone, searcher=self._searcher(context, turn))
        said = [message.seq for message in context.messages if isinstance(message.event, UserMessage)]
        desk.said_seq, desk.turn = max(said, default=0), turn
        return ReplyExecution(
            context, reply, self._tools, desk, f"{turn}/{step}", results, defers=True, approval=approval
        )

    async def _work_off(
        self,
        work: ReplyExecution,
        turn: int,
        step: int,
        cause: str | None,
        *,
        at: int | None = None,
        started: frozenset[str] = frozenset(),
    ) -> tuple[str, bool]:
        """Run the remaining calls of a step and commit the results. Return the same as `_act`.

        `at`: time at which the reply arrived, microseconds UTC. `started`: ids of calls whose intent was durable before
        a crash, and that may be run again.
        """
        while (outside := work.outside()) is not None:
            if outside.edits:
                self._announce(work, outside, turn, step)
                memory = work.memory_copy(outside)
                listener = self._progress(turn, step)
                result = await self._run_function(outside.tool, outside.arguments, on_progress=listener, desk=[memory])
                outside = work.edited(outside, memory, result)
                if outside is None:
                    continue
            # The intent is on disk before the effect starts. After a crash the log then says that the effect may have
            # happened; without the intent, a retry could repeat the effect unnoticed.
            if outside.intended and outside.call.id not in started:
                work.started(outside)
                events = await self._agent.with_budgets(work.taken())
                records = await self._agent.commit(plan_rules.placed(events), turn=turn, step=step, cause=cause, at=at)
                cause, at = records[0].event_id, None
            if outside.tried is None:
                await self._run_outside(work, outside, turn, step)
            else:
                pending_edits, desk = outside.tried.pending_edits, work.memory_for(outside)
                work.shared(
                    outside,
                    await block_sync.apply_edits(
                        pending_edits, self._agent.blocks, author=self._agent.agent_id, key=outside.key, at=desk.now
                    ),
                )
        continues = work.finish()
        events = await self._agent.with_budgets(work.taken())
        if not events:
            return cause or "", continues
        records = await self._agent.commit(plan_rules.placed(events), turn=turn, step=step, cause=cause, at=at)
        return records[-1].event_id, continues

    def _announce(self, work: ReplyExecution, outside: ExternalCall, turn: int, step: int) -> None:
        """Notify subscribers that a user's function is about to run. Its reply may be committed only after it."""
        self._agent.previews.on_call(turn, step, outside.call, work.uncommitted_thought())

    def _progress(self, turn: int, step: int) -> ProgressListener:
        return partial(self._agent.previews.on_progress, turn, step)

    async def _run_outside(self, work: ReplyExecution, outside: ExternalCall, turn: int, step: int) -> None:
        """Run a function that reaches outside the log, or waits for a search of it, and record its result."""
        arguments = dict(outside.arguments)
        if outside.tool.takes_key:
            arguments["idempotency_key"] = outside.key
        if outside.tool.lent:
            self._announce(work, outside, turn, step)
            listener = self._progress(turn, step)
            result = await self._run_function(
                outside.tool, arguments, on_progress=listener, continuation=outside.continuation
            )
            self._end(work, outside, result)
        else:
            await self._run_here(work, outside, arguments)

    async def _run_here(self, work: ReplyExecution, outside: ExternalCall, arguments: Mapping[str, Any]) -> None:
        """Await a coroutine of everlog's own in this task. Its FunctionError becomes the call's result, and so does a
        CancelledError that the coroutine itself raised; one that cancels this task is raised on.
        """
        desk = [work.memory_for(outside)] if outside.tool.searches else []
        try:
            result = await outside.tool.function(*desk, **arguments)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            work.ended(outside, error=failure(outside.call.name, error))
        except GeneratorExit:
            raise
        except outside.tool.faults as error:
            work.ended(outside, error=failure(outside.call.name, error))
        else:
            self._end(work, outside, result)

    @staticmethod
    def _end(work: ReplyExecution, outside: ExternalCall, result: Any) -> None:
        """Record a function's result. A FunctionResult, which a rerun returns, is recorded with the id of this call; a
        question of the function waits for a person.
        """
        if isinstance(result, Question):
            work.asked(outside, result)
        elif isinstance(result, FunctionResult):
            call = outside.call
            work.given(msgspec.structs.replace(result, call_id=call.id, name=call.name, approval=work.approval))
        else:
            work.ended(outside, result)

    async def _resume_point(self, turn: int) -> tuple[str, int, bool]:
        """Find where an unfinished turn resumes after a crash. Return the cause, the next step, True if it runs."""
        records = [row for row in await self._agent.rows("turn_records") if row["turn"] == turn]
        if not records:
            return "", 0, False
        replies = [row for row in records if row["type"] == "model_reply"]
        last = replies[-1] if replies else None
        inputs = [row for row in records if row["type"] in INPUTS]
        if last is not None and last["seq"] > inputs[-1]["seq"]:
            cause, continues = await self._finish_calls(last, records)
            return cause, last["step"] + 1, continues
        if inputs[-1]["type"] == ApprovalDecided.kind:
            return await self._run_approved(inputs[-1], records)
        return str(inputs[-1]["event_id"]), (last["step"] + 1 if last else 1), True

    async def _finish_calls(self, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
        """Finish the calls of a reply that was interrupted between intent and result. Return the same as `_act`."""
        reply = msgspec.json.decode(row["payload"], type=ModelReply)
        results, begun = _calls_of([r for r in records if r["step"] == row["step"] and r["seq"] > row["seq"]])
        asked = await self._model_caller.context(row["turn"], row["seq"] - 1)
        now = await self._model_caller.context(row["turn"])  # memory blocks after the calls that have run
        context = msgspec.structs.replace(asked, blocks=now.blocks, as_of=now.as_of)
        work = self._step(context, reply, row["turn"], row["step"], row["recorded_at"], results)
        started = _interrupted(work, begun, results)
        return await self._work_off(work, row["turn"], row["step"], str(row["event_id"]), started=started)

    async def _run_approved(
        self, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> tuple[str, int, bool]:
        """Run the call of a decided approval, if it was approved and has no result yet. Return the same as
        `_resume_point`.

        The call is step 1 of its turn; the model answers in step 2.
        """
        decided = msgspec.json.decode(row["payload"], type=ApprovalDecided)
        if decided.decision != "approved":
            return str(row["event_id"]), 1, True
        turn = row["turn"]
        results, begun = _calls_of(records)
        if not results:
            call = Call(decided.call_id, decided.name, decided.arguments)
            reply = ModelReply(calls=[call], context_sha256=f"approval {decided.request}")
            context = await self._model_caller.context(turn)
            work = self._step(context, reply, turn, 1, row["recorded_at"], {}, approval=decided.request)
            work.state = decided.state
            started = _interrupted(work, begun, results)
            cause, _ = await self._work_off(work, turn, 1, str(row["event_id"]), started=started)
            return cause, 2, True
        return next(str(r["event_id"]) for r in records if r["type"] == FunctionResult.kind), 2, True

    async def _abandon(self, turn: int, step: int, steps_max: int) -> None:
        text = f"The turn was stopped after {steps_max} model calls, the most that one turn may make."
        await self._agent.commit([TurnAbandoned(text=text, reason="steps_max")], turn=turn, step=step)


def _calls_of(records: Sequence[Mapping[str, Any]]) -> tuple[dict[str, FunctionResult], list[FunctionStarted]]:
    """Return the results among records, by the id of their call, and the intents."""
    ended = (msgspec.json.decode(r["payload"], type=FunctionResult) for r in records if r["type"] == "function_result")
    begun = (
        msgspec.json.decode(r["payload"], type=FunctionStarted) for r in records if r["type"] == "function_started"
    )
    return {result.call_id: result for result in ended}, list(begun)


def _interrupted(
    work: ReplyExecution, begun: Sequence[FunctionStarted], results: Mapping[str, FunctionResult]
) -> frozenset[str]:
    """Give calls that a crash interrupted their results. Return the ids of all calls whose intent is durable.

    An effect that may have happened, and that is not safe to repeat, gets the result "interrupted": it is never run
    again, and the model decides.
    """
    for intent in begun:
        if intent.call_id not in results and not work.repeats(intent):
            work.given(interrupted_result(intent))
    return frozenset(intent.call_id for intent in begun)

"""Decide what follows a reply: the functions that run, the events they leave, and True if the turn continues. Pure.

The order of records in a turn follows the table in `turn_transitions.py`. Used by `turn_runner.py` and `model_step.py`,
and by `replay/reexecute.py`, which runs the code again over recorded replies: if the same reply leaves other events, or
the same events in another order, `verify` reports a mismatch in older logs.
"""

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.formats import parse_reply
from everlog.actors.functions.external_call import ExternalCall, TentativeResult, idempotency_key
from everlog.actors.functions.function_text import THREAD_FAULTS, failure, returned, unusable
from everlog.actors.functions.memgpt_functions import ALIASES, meant
from everlog.actors.functions.tools import HEARTBEAT, Tool
from everlog.actors.memory.block_sync import AppliedEdits
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.ports.function_call import Continuation
from everlog.actors.prompt.context import Context
from everlog.actors.prompt.message_format import PRESSURE_WARNING
from everlog.actors.rules import approval_rules
from everlog.actors.rules.turn_rules import TurnRules
from everlog.events import (
    ApprovalRequested,
    Call,
    Event,
    FunctionError,
    FunctionResult,
    FunctionStarted,
    Heartbeat,
    MemoryEdited,
    ModelReply,
    Question,
    SystemAlert,
)


class ReplyExecution:
    """Execution of one reply: `outside()` runs pure calls and stops at each other call; `taken()` returns the events.

    With `defers` it also stops at pure calls of users' functions, which the caller runs (`memory_copy`, `edited`): a
    user's code may take any time. Without it, as in a replay, these calls run at once; the events are the same.

    Only functions in the context's configuration can be called, even if `tools` has more. A call that needs a person's
    approval is not run: it leaves an `approval_requested`, and a result that says so. `approval`: seq of the request
    whose calls these are, approved by now; 0: they are the model's own. `finish()` comes last and decides what
    follows. The same reply, context and results always give the same events.
    """

    def __init__(
        self,
        context: Context,
        reply: ModelReply,
        tools: Mapping[str, Tool],
        desk: FunctionMemory,
        place: str,
        results: Mapping[str, FunctionResult] | None = None,
        *,
        defers: bool = False,
        approval: int = 0,
    ) -> None:
        self._defers = defers
        self.approval = approval
        self.state: str | None = None
        """State of the question that the approved call continues from; None: it asked nothing."""
        self._waits_for_person = False
        """True after a call that waits for an approval. Of the later calls of the reply only messages to the user run:
        no effect overtakes one that waits, and the results of all these calls are in one commit.
        """
        self._context = context
        self._reply = reply
        self._tools = tools
        self._function_memory = desk
        self._place = place
        self._rules = TurnRules(context.config, context.rules)
        self._waiting = list(reply.calls)
        self._failed: list[str] = []
        self._requested: list[str] = []
        self._events: list[Event] = [reply]
        if results is not None:
            self._resume(results)

    def outside(self) -> ExternalCall | None:
        """Run calls in order up to one that reaches outside, and return that call; None when all are done."""
        while self._waiting:
            outside = self._run(self._waiting[0])
            if outside is not None:
                return outside
            self._waiting.pop(0)
        return None

    def started(self, outside: ExternalCall) -> None:
        """Record the intent of an outside call. The caller must commit the intent before the effect starts."""
        effect = outside.effect
        if effect == "pure":
            raise AssertionError("a pure function has no intent")
        self._events.append(
            FunctionStarted(
                call_id=outside.call.id,
                name=outside.call.name,
                arguments=outside.call.arguments,
                effect=effect,
                key=outside.key,
                approval=self.approval,
            )
        )

    def memory_for(self, outside: ExternalCall) -> FunctionMemory:
        """Return the function memory for a call that searches."""
        self._function_memory.call_id = outside.call.id
        return self._function_memory

    def uncommitted_thought(self) -> str:
        """Return the reply's thought until `taken` has returned the reply; empty afterwards."""
        return (self._reply.text or "") if self._reply in self._events[:1] else ""

    def memory_copy(self, outside: ExternalCall) -> FunctionMemory:
        """Return the memory as it is now, for a call that edits it elsewhere. `edited` takes over the changes."""
        memory = self._function_memory
        copy = FunctionMemory(memory.blocks(), now=memory.now, zone=memory.zone)
        copy.call_id = outside.call.id
        return copy

    def edited(self, outside: ExternalCall, memory: FunctionMemory, result: Any) -> ExternalCall | None:
        """Record the result of a call that edited a copy of the memory; a FunctionResult says that the call failed.

        If it edited shared blocks, record nothing and return the call with its pending edits.
        """
        call, tool = outside.call, outside.tool
        if isinstance(result, FunctionResult):
            self._waiting.pop(0)
            self._fail_call(call, result.text)
            return None
        events, pending_edits = memory.taken(), memory.take_pending_edits()
        if pending_edits:
            return msgspec.structs.replace(outside, tried=TentativeResult(pending_edits, events, result))
        self._waiting.pop(0)
        self._function_memory.restore(memory.blocks())
        self._events.extend(events)
        self._succeeded(call, tool, result)
        return None

    def ended(
        self, outside: ExternalCall, result: Any = None, *, error: str | None = None, unknown: bool = False
    ) -> None:
        """Record the result of the outside call, or its error; `unknown`: the outcome is not known."""
        self._waiting.pop(0)
        left = self._function_memory.taken() if outside.tool.searches else []
        if error is None:
            self._events.extend(left)
            self._succeeded(outside.call, outside.tool, result)
        else:
            self._fail_call(outside.call, error, unknown=unknown)

    def asked(self, outside: ExternalCall, question: Question) -> None:
        """Record that the outside call asks a person: it ends here, and the decision of a person continues it."""
        from everlog.actors.rules import questions  # few functions ask anything

        request = approval_rules.request(
            outside.call, outside.tool.name, self._context.config, self._function_memory.now
        )
        result = self._result(outside.call, questions.waiting_text(outside.tool.name, question))
        self.given(result, [questions.asking(request, outside.arguments, question)])

    def given(self, result: FunctionResult, left: Sequence[Event] = ()) -> None:
        """Use a result and its events as given, without running the next call: they are in the log already, or known
        otherwise.
        """
        call = self._waiting.pop(0)
        self._events.extend(left)
        for event in left:
            if isinstance(event, MemoryEdited):
                self._function_memory.adopt(event)
        if any(isinstance(event, ApprovalRequested) for event in left):
            self._wait_for_person(call)
            self._events.append(result)  # the call has not ended, so the rules do not count its result
            return
        if not result.ok:
            self._forget(result.call_id)
        self._add(result)

    def shared(self, outside: ExternalCall, carried: AppliedEdits) -> None:
        """Record the outcome of a call that edits shared blocks."""
        call, tried = outside.call, outside.tried
        assert tried is not None, "the call has no pending edits"
        if carried.error:
            result = self._result(call, carried.error, ok=False, unknown=carried.unknown)
            self.given(result, carried.copies)
            return
        text = returned(tried.result, whole=outside.tool.whole)
        if carried.merged and tried.result is None:
            labels = ", ".join(map(repr, carried.merged))
            text = f"Done. Others had changed {labels} meanwhile: your edit was made to what it says now."
        result = self._result(call, text)
        self.given(result, [*tried.events, *carried.copies])

    def repeats(self, intent: FunctionStarted) -> bool:
        """Return True if a call that has an intent and no result may be run again.

        False if the function was at most once then or is now, if the agent no longer has it, or if the arguments no
        longer fit.
        """
        tool = self._tool(intent.name)
        if tool is None or "at_most_once" in (intent.effect, tool.effect):
            return False
        # A pure function has an intent only if it edits shared blocks, which is safe to repeat.
        if tool.effect == "pure" and not (tool.takes_memory and intent.effect == "idempotent"):
            return False
        arguments = parse_reply.arguments(intent.arguments)
        arguments.pop(HEARTBEAT, None)
        try:
            meant(tool, intent.name, arguments).bind(arguments)
        except FunctionError:
            return False
        return True

    def taken(self) -> list[Event]:
        """Return the events since the last call of this method, in order."""
        events, self._events = self._events, []
        return events

    def finish(self) -> bool:
        """Record what follows all calls: token warning, failure, heartbeat. Return True if a step follows.

        The model always answers the outcome of a call that was approved.
        """
        follow: list[Event] = []
        if self.approval or self._rules.ended:
            self._events.extend(self._rules.applied() if self.approval else [])
            return bool(self.approval)
        if self._reply.usage.total > self._context.threshold and not self._context.warned:
            follow.append(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"))
        if self._failed:
            # At most one heartbeat for each reason, however many calls failed or requested one. The order is fixed,
            # because a replay compares the events.
            follow.append(Heartbeat(reason="function_failed"))
        if self._requested:
            follow.append(Heartbeat(reason="requested"))
        if not follow and not self._waits_for_person and (reason := self._rules.reason_to_continue()):
            follow.append(Heartbeat(reason="rules", text=reason))
        self._events.extend([*self._rules.applied(), *follow] if follow else [])
        return bool(follow)

    def _resume(self, results: Mapping[str, FunctionResult]) -> None:
        """Restore the state after a crash: the reply and these results are in the log already."""
        self._events = []
        self._waiting = [call for call in self._reply.calls if call.id not in results]
        for call in self._reply.calls:
            if call.id in results and self._tool(call.name) is not None and self._rules.fault(call.name) is None:
                self._rules.called(results[call.id])
            if call.id in results and not results[call.id].ok:
                self._failed.append(call.id)
            elif call.id in results and self._asks(call):
                self._requested.append(call.id)

    def _tool(self, name: str) -> Tool | None:
        """Return the function of that name if the agent has it."""
        name = ALIASES.get(name, name)
        has = any(function.name == name for function in self._context.config.functions)
        return self._tools.get(name) if has else None

    def _run(self, call: Call) -> ExternalCall | None:
        """Run a pure call. Return any other call without running it."""
        tool = self._tool(call.name)
        if tool is None:
            self._refuse_call(call, f"No function named {call.name}")
            return None
        fixed: Mapping[str, Any] = {}
        if not self.approval:
            if (fault := self._rules.fault(call.name)) is not None:
                self._refuse_call(call, fault)
                return None
            fixed = self._rules.arguments_of(call.name)
        try:
            arguments = {**parse_reply.arguments(call.arguments), **fixed}
        except (ValueError, TypeError) as error:
            self._fail_call(call, f"Error parsing JSON for function '{call.name}' arguments: {error}")
            return None
        if fixed:
            call = msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())
        tool = meant(tool, call.name, arguments)
        continuation = self._continuation(arguments)
        if arguments.pop(HEARTBEAT, None) is True and tool.heartbeat:
            self._requested.append(call.id)
        try:
            bound = tool.bind(arguments)
        except FunctionError as error:
            self._fail_call(call, f"Error calling function {call.name}: {error}")
            return None
        if not self.approval and self._held_back(call, tool, bound):
            return None
        if tool.effect != "pure" or tool.searches or (self._defers and tool.lent):
            return ExternalCall(call, tool, bound, self._key(call), continuation=continuation)
        return self._run_pure(call, tool, bound)

    def _continuation(self, arguments: dict[str, Any]) -> Continuation | None:
        """Take the answers of a person out of the arguments of an approved call that had asked for them."""
        if self.state is None:
            return None
        from everlog.actors.rules.questions import take_answers

        return Continuation(take_answers(arguments), self.state)

    def _held_back(self, call: Call, tool: Tool, bound: Mapping[str, Any]) -> bool:
        """Return True for a call that does not run now, after recording its result: the rules refuse it, it waits for
        an approval, or it would overtake a call that waits.
        """
        action = approval_rules.action_for(self._context.config, tool.name, bound)
        if action == "refuse":
            self._fail_call(call, approval_rules.REFUSED)
            return True
        if action == "allow" and not (self._waits_for_person and call.name != SEND_MESSAGE):
            return False
        if action == "allow":
            self._requested = [other for other in self._requested if other != call.id]
            self._events.append(self._result(call, approval_rules.NOT_RUN, ok=False))
            return True
        self._wait_for_person(call)
        self._events.append(approval_rules.request(call, tool.name, self._context.config, self._function_memory.now))
        self._events.append(self._result(call, approval_rules.waiting_text(tool.name)))
        return True

    def _wait_for_person(self, call: Call) -> None:
        # The outcome comes as an input of its own, so the heartbeat that the call requested is not needed.
        self._requested = [other for other in self._requested if other != call.id]
        self._waits_for_person = True
        if not self.approval:
            self._rules.waits(call.name)

    def _result(self, call: Call, text: str, *, ok: bool = True, unknown: bool = False) -> FunctionResult:
        return FunctionResult(
            text=text, call_id=call.id, name=call.name, ok=ok, unknown=unknown, approval=self.approval
        )

    def _key(self, call: Call) -> str:
        asked = f"{self._reply.context_sha256} {self._function_memory.now}"
        return idempotency_key(f"{self._context.agent_id}/{self._place}/{call.id}", asked)

    def _run_pure(self, call: Call, tool: Tool, bound: Mapping[str, Any]) -> ExternalCall | None:
        """Run a pure call. If it edits shared blocks, undo its changes and return the call."""
        before = self._function_memory.blocks()
        # Nothing is awaited here, so a CancelledError comes from the function and does not cancel this task. A user's
        # function runs in a thread elsewhere: its failures are the same here.
        own: tuple[type[BaseException], ...] = THREAD_FAULTS if tool.lent else (CancelledError,)
        faults: tuple[type[BaseException], ...] = (*tool.faults, *own)
        self._function_memory.call_id = call.id
        try:
            result = tool.function(self._function_memory, **bound)
        except faults as error:
            self._function_memory.restore(before)
            self._fail_call(call, failure(call.name, error))
            return None
        if (fault := unusable(result)) is not None:
            self._function_memory.restore(before)
            self._fail_call(call, failure(call.name, fault))
            return None
        events, pending_edits = self._function_memory.taken(), self._function_memory.take_pending_edits()
        if pending_edits:
            self._function_memory.restore(before)
            return ExternalCall(call, tool, bound, self._key(call), TentativeResult(pending_edits, events, result))
        self._events.extend(events)
        self._succeeded(call, tool, result)
        return None

    def _succeeded(self, call: Call, tool: Tool, result: Any) -> None:
        text = returned(result, whole=tool.whole)
        if call.name == SEND_MESSAGE:
            text = ""
        self._add(self._result(call, text))

    def _fail_call(self, call: Call, error: str, *, unknown: bool = False) -> None:
        self._forget(call.id)
        self._add(self._result(call, error, ok=False, unknown=unknown))

    def _refuse_call(self, call: Call, fault: str) -> None:
        """Record that a call was not made: the agent lacks the function, or its rules do not allow it here."""
        self._forget(call.id)
        self._events.append(self._result(call, fault, ok=False))

    def _add(self, result: FunctionResult) -> None:
        """Record the result of a call that was made."""
        self._events.append(result)
        self._rules.called(result)

    def _forget(self, call_id: str) -> None:
        """Count a call as failed, and drop the heartbeat that it requested."""
        self._failed.append(call_id)
        self._requested = [other for other in self._requested if other != call_id]

    def _asks(self, call: Call) -> bool:
        """Return True if a call that succeeded had requested a heartbeat."""
        tool = self._tool(call.name)
        if tool is not None and not tool.heartbeat:
            return False
        return parse_reply.arguments(call.arguments).get(HEARTBEAT) is True

"""Drive a rerun: apply the recorded external inputs to the fork, in order, and run its turns.

Used by `rerun.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings, configuration, same
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.functions.tools import Tool
from everlog.actors.rerun.recorded_past import ExternalInput, RecordedPast, events_in
from everlog.actors.rerun.rerun_effects import DURING_TURN_KINDS, RecordedScript, RerunClock, RerunDiverged
from everlog.events import AgentConfigured, ApprovalDecided, BadInput, ModelError, Record, ReplyRethought, TurnsHidden

SUMMARIES = ("summary", "reply_rejected")
"""Types of the first record of a summary by hand."""

TurnCallback = Callable[[int], None]
"""Called with the number of each turn of the fork that has ended."""


class ConfigurationChange(msgspec.Struct, frozen=True):
    """Changes that apply to each configuration that the fork repeats."""

    settings: Settings
    tools: Mapping[str, Tool]
    """All functions by name."""
    given: Sequence[Tool] = ()
    """Functions that the user passed. If one is new, or differs from the recorded one, the fork gets all functions."""

    def of(self, recorded: AgentConfigured, known: Mapping[str, str]) -> AgentConfigured:
        """Return a recorded configuration with the changes, and with nothing else that is new. Raise BadInput."""
        had = {(function.name, function.sha256) for function in recorded.functions}
        as_they_were = all((tool.name, tool.sha256) in had for tool in self.given)
        if self.settings == Settings() and as_they_were:
            return recorded
        if self.settings.sections is not None:
            raise BadInput("A rerun takes another system prompt as a text, not as sections. No fork was made.")
        made = configuration(self.settings, recorded, self.tools, known)
        # `configuration` takes today's prompt and functions.
        # The recorded ones are put back unless the user changed them.
        if self.settings.system is None:
            made = msgspec.structs.replace(made, text=recorded.text, preset=recorded.preset, sections=recorded.sections)
        if as_they_were:
            new = {sha256: schema for sha256, schema in recorded.schemas.items() if sha256 not in known}
            made = msgspec.structs.replace(made, functions=recorded.functions, schemas=new)
        return made


class RerunDriver:
    """Driver of a rerun: applies the recorded external inputs to the fork."""

    def __init__(self, agent: Agent, past: RecordedPast, change: ConfigurationChange, ended: TurnCallback) -> None:
        self.agent = agent
        self.past = past
        self._change = change
        self._ended = ended
        self.left_out: list[Record] = []
        """First records of inputs that could not be repeated."""

    async def configure(self, recorded: AgentConfigured, *, always: bool) -> None:
        """Configure the fork like its parent, with the changes. `always`: commit even if nothing changed."""
        configured = self._change.of(recorded, self.agent.schemas)
        if not always and same(configured, recorded):
            return
        await self.agent.commit([configured], turn=self.agent.turn, step=0)
        await self.agent.activate(Settings(), create=False, keep_configuration=True)
        await self.agent.models.keep()

    async def do(self, act: ExternalInput) -> None:
        """Apply one external input to the fork."""
        agent, first = self.agent, act.records[0]
        events = events_in(act.records)
        match act.kind:
            case "input" if isinstance(events[0], ApprovalDecided):
                await self._decide(act, events[0])
            case "input":
                await agent.receive(events[0], said_at=first.said_at, then=events[1:])
            case "by_hand":
                said_at = [record.said_at for record in act.records]
                await agent.commit(events, turn=agent.turn, step=0, said_at=said_at)
            case "configured" if isinstance(events[0], AgentConfigured):
                await self.configure(events[0], always=True)
            case "import":
                pairs = zip(events, act.records, strict=True)
                await agent.import_messages([ImportedMessage(event, record.time) for event, record in pairs])
            case _:
                await self._take_back(act, events[0])

    async def _decide(self, act: ExternalInput, event: ApprovalDecided) -> None:
        """Repeat a decision for the fork's own call of the function that waits. Skip it if none waits.

        Arguments of a person stay; those of the model are the ones of the fork's call. `always` has its effect by the
        configuration, which is an input of its own.
        """
        rows = [row for row in await self.agent.rows("approvals") if row["decision"] == "waiting"]
        mine = [row for row in rows if row["name"] == event.name]
        row = next((row for row in mine if row["call_id"] == event.call_id), mine[0] if mine else None)
        if row is None:
            self.left_out.append(act.records[0])
            return
        own = event.decision == "approved" and not event.edited
        again = msgspec.structs.replace(
            event, request=row["seq"], call_id=row["call_id"], arguments=row["arguments"] if own else event.arguments
        )
        await self.agent.receive(again, then=events_in(act.records[1:]))

    async def _take_back(self, act: ExternalInput, event: Any) -> None:
        """Repeat an input that changes earlier turns or the summary. Skip it if the fork has nothing to change."""
        doing: Awaitable[Any]
        match act.kind:
            case "hide" if isinstance(event, TurnsHidden):
                doing = self.agent.hide(len(event.turns))
            case "rethink" if isinstance(event, ReplyRethought):
                doing = self.agent.rethink(event.text)
            case "retry":
                doing = self._retry(act)
            case "summarize":
                doing = self.agent.summarize()
            case _:
                doing = self.agent.expand()
        try:
            done = await doing
        except BadInput:
            done = False
        if done is False:
            self.left_out.append(act.records[0])

    async def _retry(self, act: ExternalInput) -> None:
        """Retry the last message. If it is no longer in view, send its words again without excluding a turn."""
        try:
            await self.agent.retry()
        except BadInput:
            await self.agent.receive(events_in(act.records)[0])

    async def _run(self) -> ModelError | None:
        """Run the oldest waiting turn. Return the model's error if the turn failed."""
        ran = await self.agent.run_next()
        if ran is None:
            return None
        self._ended(ran[0])
        return ran[1]

    async def live(self, time: RerunClock) -> ModelError | None:
        """Apply the inputs one by one, and run each turn to its end. Stop at the model's first error; return it."""
        for act in self.past.acts:
            time.put(act.records[0].recorded_at)
            try:
                await self.do(act)
            except ModelError as error:  # the model failed at a summary by hand, which is no turn
                return error
            while self.agent.waiting:
                error_of_turn = await self._run()
                if error_of_turn is not None:
                    return error_of_turn
        return None

    async def meanwhile(self, script: RecordedScript) -> None:
        """Apply the inputs that were recorded while a call was in flight."""
        while (act := script.act) is not None and act.kind in DURING_TURN_KINDS:
            await self.do(act)

    async def recorded(self, script: RecordedScript) -> RerunDiverged | None:
        """Repeat the recorded past record by record. Stop at the first difference and return it."""
        while (record := script.record) is not None and script.fault is None:
            place = script.place
            # A summary that belongs to no recorded input follows an import or a rejected attempt: the fork, which is
            # idle, makes it only if it is asked to.
            by_hand = not self.agent.waiting and record.type in SUMMARIES
            try:
                if (
                    act := script.act or (ExternalInput("summarize", place, [record]) if by_hand else None)
                ) is not None:
                    await self.do(act)
                elif isinstance(error := await self._run(), RerunDiverged):
                    return error
            except RerunDiverged as error:
                return error
            except ModelError:  # the recorded call failed too; continue
                pass
            # Each round must write a record, or the loop would never end.
            if script.place == place:
                return RerunDiverged(record.seq, f"{record.type} was not written again")
        return script.fault

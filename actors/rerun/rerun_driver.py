"""A rerun under way: what was done to the agent then is done to the fork, in its order, and its turns are run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings, configuration, same
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.functions.tools import Tool
from everlog.actors.rerun.recorded_past import ExternalInput, RecordedPast, events_in
from everlog.actors.rerun.rerun_effects import MEANWHILE, RecordedScript, RerunClock, RerunDiverged
from everlog.events import AgentConfigured, BadInput, ModelError, Record, ReplyRethought, TurnsHidden

SUMMARIES = ("summary", "reply_rejected")
"""What a summary by hand begins with."""

TurnCallback = Callable[[int], None]
"""Is told the number of each turn of the fork that has ended."""


class ConfigurationChange(msgspec.Struct, frozen=True):
    """How the configuration of the fork differs from that of its parent, whenever it was configured."""

    settings: Settings
    tools: Mapping[str, Tool]
    """All that there are."""
    given: Sequence[Tool] = ()
    """Those that the person gave: where one is new, or is not as it was, the agent is set up with all."""

    def of(self, recorded: AgentConfigured, known: Mapping[str, str]) -> AgentConfigured:
        """A recorded configuration with the changes, and nothing else that is new. Raises BadInput."""
        had = {(function.name, function.sha256) for function in recorded.functions}
        as_they_were = all((tool.name, tool.sha256) in had for tool in self.given)
        if self.settings == Settings() and as_they_were:
            return recorded
        if self.settings.sections is not None:
            raise BadInput("A rerun takes another system prompt as a text, not as sections. No fork was made.")
        made = configuration(self.settings, recorded, self.tools, known)
        if self.settings.system is None:
            made = msgspec.structs.replace(made, text=recorded.text, preset=recorded.preset, sections=recorded.sections)
        if as_they_were:
            new = {sha256: schema for sha256, schema in recorded.schemas.items() if sha256 not in known}
            made = msgspec.structs.replace(made, functions=recorded.functions, schemas=new)
        return made


class RerunDriver:
    """Does the acts of then again."""

    def __init__(self, agent: Agent, past: RecordedPast, change: ConfigurationChange, ended: TurnCallback) -> None:
        self.agent = agent
        self.past = past
        self._change = change
        self._ended = ended
        self.left_out: list[Record] = []
        """What was done then and could not be done again."""

    async def configure(self, recorded: AgentConfigured, *, always: bool) -> None:
        """Set the fork up as its parent was, with the changes."""
        configured = self._change.of(recorded, self.agent.schemas)
        if not always and same(configured, recorded):
            return
        await self.agent.commit([configured], turn=self.agent.turn, step=0)
        await self.agent.activate(Settings(), create=False, keep_configuration=True)
        await self.agent.models.keep()

    async def do(self, act: ExternalInput) -> None:
        """Do again what was done."""
        agent, first = self.agent, act.records[0]
        events = events_in(act.records)
        match act.kind:
            case "input":
                await agent.receive(events[0], said_at=first.said_at)
            case "by_hand":
                said_at = [record.said_at for record in act.records]
                await agent.commit(events, turn=agent.turn, step=0, said_at=said_at)
            case "configured" if isinstance(events[0], AgentConfigured):
                await self.configure(events[0], always=True)
            case "import":
                pairs = zip(events, act.records, strict=True)
                await agent.import_messages(
                    [ImportedMessage(e, r.recorded_at if r.said_at is None else r.said_at) for e, r in pairs]
                )
            case _:
                await self._take_back(act, events[0])

    async def _take_back(self, act: ExternalInput, event: Any) -> None:
        """What changes the view of what was; where there is nothing of the kind to change now, it is left out."""
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
        """Say the words again; where those before them are no longer in view, without taking anything back."""
        try:
            await self.agent.retry()
        except BadInput:
            await self.agent.receive(events_in(act.records)[0])

    async def _run(self) -> ModelError | None:
        """Run the oldest turn that waits; how the model failed it, if so."""
        ran = await self.agent.run_next()
        if ran is None:
            return None
        self._ended(ran[0])
        return ran[1]

    async def live(self, time: RerunClock) -> ModelError | None:
        """One act after the other, each turn to its end. Stops where the model fails, and gives its error back."""
        for act in self.past.acts:
            time.put(act.records[0].recorded_at)
            try:
                await self.do(act)
            except ModelError as error:  # nobody answered a summary by hand
                return error
            while self.agent.waiting:
                error_of_turn = await self._run()
                if error_of_turn is not None:
                    return error_of_turn
        return None

    async def meanwhile(self, script: RecordedScript) -> None:
        """What was done while a call was under way."""
        while (act := script.act) is not None and act.kind in MEANWHILE:
            await self.do(act)

    async def recorded(self, script: RecordedScript) -> RerunDiverged | None:
        """Record for record as it was. Stops where it is not any more, and says where that is."""
        while (record := script.record) is not None and script.fault is None:
            place = script.place
            by_hand = not self.agent.waiting and record.type in SUMMARIES  # after an import, which may make some itself
            try:
                if (
                    act := script.act or (ExternalInput("summarize", place, [record]) if by_hand else None)
                ) is not None:
                    await self.do(act)
                elif isinstance(error := await self._run(), RerunDiverged):
                    return error
            except RerunDiverged as error:
                return error
            except ModelError:  # as then
                pass
            if script.place == place:
                return RerunDiverged(record.seq, f"{record.type} was not written again")
        return script.fault

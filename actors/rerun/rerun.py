"""Run a "what if": fork an agent at a moment of its past, and repeat there the inputs that it got from then on.

The fork's clock starts at the recorded time. A live model answers, or the recorded replies do. With recorded replies
the fork's records are those of its parent until a change alters a request: the rerun stops there and reports it. Used
by `AgentSystem` and `everlog rerun`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial

import msgspec

from everlog.actors.agent import orphaned_turns
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings, block_text
from everlog.actors.agent.local_system import AgentServices, AgentView, LocalSystem, ModelLookup
from everlog.actors.functions.extras import NAMES as EXTRAS
from everlog.actors.functions.extras import NO_GRANTS, Grants
from everlog.actors.functions.run_function import run_function
from everlog.actors.functions.tools import Tool
from everlog.actors.memory.shared_block_rules import IsolatedBlocks
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.actors.ports.effects import ArchiveClient, CheckedModel, Clock, Ids
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt.context import Context
from everlog.actors.prompt.setting_limits import check_block
from everlog.actors.rerun.recorded_functions import FunctionReplayer, schema_only_tools
from everlog.actors.rerun.recorded_past import RecordedPast, fork_point_before, last_input, past_of
from everlog.actors.rerun.rerun_comparison import ForkComparer, RerunComparison, TokenPrices, TurnPair, by_turn
from everlog.actors.rerun.rerun_driver import ConfigurationChange, RerunDriver
from everlog.actors.rerun.rerun_effects import (
    RecordedCall,
    RecordedModel,
    RecordedScript,
    RerunClock,
    RerunDiverged,
    rendered,
)
from everlog.events import BadInput, MemoryEdited, ModelError, Record, event_of
from everlog.events.times import microseconds_of
from everlog.store import Store, check_new_name, name_of

TurnPairCallback = Callable[[TurnPair], None]
"""Called with each turn that has ended, paired with the recorded turn."""

COMMAND = "everlog rerun"
"""Name under which a rerun opens the fork's log."""


class RerunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a rerun: which inputs are repeated, and with which changes."""

    agent_id: str
    from_seq: int | datetime
    """First record to repeat, or a time: the first record at or after it. A record in the
    middle of a turn stands for that turn's first record.
    """
    fork: str
    """Name of the new agent, the fork. That of a deleted agent can be used again: see `LocalSystem.fork`."""
    settings: Settings = Settings()
    """Changes: `model`, `window`, `system`; `blocks`: known ones are edited, others created. None: unchanged."""
    turns: int | None = None
    """Maximum number of turns; None: all."""
    recorded: bool = False
    """True to call no model: recorded replies are used, as long as each request is identical to the recorded one."""
    live_tools: bool = False
    """True if functions with outside effects may run for calls that were not recorded."""


class RerunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a rerun. The fork remains, and can be talked to."""

    comparison: RerunComparison
    left_out: Sequence[Record]
    """First records of inputs that were not repeated: erased, of an unsupported type, or without effect on the fork."""
    diverged: RerunDiverged | None = None
    """With recorded replies: the first difference from the record; None if there is none."""
    renumbered: int = 0
    """With recorded replies: number of requests that differ in seqs alone, since a fork counts its own seqs."""
    error: ModelError | None = None
    """Error of a live model. No turn was run after it."""


class RerunEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Store, models and functions that a rerun works with."""

    store: Store
    ports: Ports
    models: ModelLookup
    tools: Sequence[Tool] = ()
    grants: Grants = NO_GRANTS
    archive: ArchiveClient | None = None
    prices: TokenPrices = TokenPrices()

    def system(self, **more: object) -> LocalSystem:
        """Return the agents of the store, with the parts of this environment;
        `more` are other arguments of LocalSystem.
        """
        services = AgentServices(archive=self.archive, blocks=IsolatedBlocks())
        given = {"ports": self.ports, "models": self.models, "services": services, **more}
        return LocalSystem(self.store, tools=self.tools, grants=self.grants, **given)  # type: ignore[arg-type]


async def rerun(what: RerunOptions, stage: RerunEnvironment, notify: TurnPairCallback = lambda _: None) -> RerunOutcome:
    """Fork the agent before a seq of its past, and repeat there the external inputs that it got from then on.

    The parent is only read. Recorded calls get their recorded results. A failure of the model ends the rerun: see
    `RerunOutcome`. Raise BadInput if the seq does not exist, there is no input to repeat, a change is invalid or the
    fork's name is taken; UsageError if a function is needed that is not available; UnknownAgent; ModelError, before the
    fork is made, if a live model cannot be asked.
    """
    system = stage.system()
    check_new_name(stage.store.latest(what.fork), stage.store.partition_of)
    with closing(system.view(name_of(what.agent_id))) as view:
        scene = _RerunPlan(what, stage, system, view)
        await scene.check_model()
        made = system.fork(view.agent_id, what.fork, at=scene.past.cut)
        return await scene.play(made.agent_id, notify)


def compare(agent_id: str, fork: str, stage: RerunEnvironment) -> RerunComparison:
    """Compare an agent with a fork of it, turn by turn from the fork point to the fork's head. Write nothing.

    Raise BadInput if `fork` is not a fork of the agent; UnknownAgent.
    """
    system = stage.system()
    with closing(system.view(agent_id)) as parent, closing(system.view(fork)) as child:
        ancestor = stage.store.parent_of(child.agent_id)
        if ancestor is None or ancestor[0] != parent.agent_id:
            of = "no fork" if ancestor is None else f"a fork of {ancestor[0]!r}"
            raise BadInput(
                f"{child.agent_id!r} is {of}, so it cannot be compared with {parent.agent_id!r}. Name an agent and a "
                "fork of that agent."
            )
        cut = ancestor[1]
        now = list(child.reader.read(child.agent_id, cut + 1))
        records = list(parent.reader.read(parent.agent_id))
        tools = _all_tools(parent, records, system, cut)
        comparer = _comparer(parent, past_of(records, cut), _first_values(now), tools, stage.prices)
        for turn, mine in sorted(by_turn(now).items()):
            comparer.turn(turn, mine)
        return comparer.whole(parent.agent_id, child.agent_id, cut)


class _RerunPlan:
    """Inputs, functions and changes of one rerun, checked before the fork is made: an invalid rerun leaves no fork."""

    def __init__(self, what: RerunOptions, stage: RerunEnvironment, system: LocalSystem, view: AgentView) -> None:
        self._what, self._stage, self._view = what, stage, view
        records = list(view.reader.read(view.agent_id))
        first = _first(view, records, what.from_seq)
        cut = _fork_point(view, records, first)
        self._whole = past_of(records, cut)
        self.past = self._whole.upto(what.turns)
        if not self.past.inputs:
            raise _nothing(view.agent_id, records, first)
        view.request(cut)  # raises if the configuration or a schema was erased
        self._before = view.context(cut)
        self._blocks = _edits(what.settings, self._before)
        self._tools = _all_tools(view, records, system, cut)
        self._change = ConfigurationChange(msgspec.structs.replace(what.settings, blocks=()), self._tools, stage.tools)
        self._change.of(self._before.config, view.schemas())  # raises if the change is invalid, before anything is made

    async def check_model(self) -> None:
        """Raise ModelError if a live model is needed that has no key or no endpoint: the fork is not made then."""
        if self._what.recorded:
            return
        try:
            model = self._stage.models(self._what.settings.model or self._before.config.model)
            if isinstance(model, CheckedModel):
                await model.check()
        except ModelError as error:
            raise ModelError(f"{error} No fork was made.", kind=error.kind, attempts=0) from error

    async def play(self, fork: str, notify: TurnPairCallback) -> RerunOutcome:
        """Run the inputs in the stream `fork`, which exists already."""
        what, stage, past = self._what, self._stage, self.past
        script = RecordedScript(past, stage.ports.clock, stage.ports.ids)
        time = RerunClock(stage.ports.clock, past.records[0].recorded_at)
        driver: RerunDriver | None = None

        async def meanwhile() -> None:
            if driver is not None and what.recorded:
                await driver.meanwhile(script)

        records_by_turn: dict[int, list[Record]] = defaultdict(list)

        def on_commit(records: Sequence[Record]) -> None:
            for record in records:
                records_by_turn[record.turn].append(record)
            if what.recorded:
                script.written(records)

        recorder = FunctionReplayer(
            self._whole.records, self._tools, live=what.live_tools, recorded=what.recorded, meanwhile=meanwhile,
            run=partial(run_function, runner=stage.ports.functions, note=stage.ports.note, agent_id=fork),
        )  # fmt: skip
        model = RecordedModel(script, self._request, meanwhile)
        ids = script if what.recorded else _RealTimeIds(stage.ports.ids, stage.ports.clock)
        system = stage.system(
            ports=msgspec.structs.replace(stage.ports, clock=script if what.recorded else time, ids=ids),
            models=(lambda _: model) if what.recorded else stage.models,
            transform_tools=lambda tools: {
                name: recorder.wrap(tool) for name, tool in {**self._tools, **tools}.items()
            },
        )  # fmt: skip
        changed = {edit.label: edit.text for edit in self._blocks}
        comparer = _comparer(self._view, self._whole, changed, self._tools, stage.prices)
        opened = system.agent(fork, create=False, keep_configuration=True, command=COMMAND, on_commit=on_commit)
        async with opened as agent:
            agent.repeats = next(agent.records(past.cut + 1)).event_id
            driver = RerunDriver(
                agent, past, self._change, lambda turn: notify(comparer.turn(turn, records_by_turn.pop(turn)))
            )
            try:
                # `begin` comes after the changes: from there on each record of the fork is compared with the recorded
                # one, and the changes have no recorded counterpart.
                await self._set_up(agent, driver)
                model.agent = agent
                script.begin(agent)
                failed = await (driver.recorded(script) if what.recorded else driver.live(time))
            finally:
                # A rerun that stops early leaves a turn open. The fork must be idle, so that it can be talked to.
                await orphaned_turns.end(agent, agent.open_turns)
        return RerunOutcome(
            comparison=comparer.whole(self._view.agent_id, agent.agent_id, past.cut),
            left_out=[*past.left_out, *driver.left_out],
            diverged=failed if isinstance(failed, RerunDiverged) else None,
            renumbered=len(script.renumbered),
            error=None if isinstance(failed, RerunDiverged) else failed,
        )

    async def _set_up(self, agent: Agent, driver: RerunDriver) -> None:
        """Commit the changes, before any input is repeated."""
        if self._blocks:
            await agent.commit(self._blocks, turn=agent.turn, step=0)
        await driver.configure(self._before.config, always=False)

    def _request(self, record: Record, event: RecordedCall) -> bytes:
        """Render the request of a recorded call again."""
        context = self._view.context(record.seq - 1, record.turn)
        return rendered(context, self._view.schemas(), event)


class _RealTimeIds:
    """Ids of the real time, although the clock of the rerun shows another."""

    def __init__(self, ids: Ids, clock: Clock) -> None:
        self._ids, self._clock = ids, clock

    def new(self, at: int) -> str:
        """Return a fresh UUIDv7 of the real time."""
        return self._ids.new(self._clock.now())


def _first(view: AgentView, records: Sequence[Record], moment: int | datetime) -> int:
    """Return the seq of a moment: the seq itself, or the first seq that was recorded at or after a time."""
    if isinstance(moment, int):
        return moment
    at = microseconds_of(moment, "from_seq")
    found = next((record.seq for record in records if record.recorded_at >= at), 0)
    if not found:
        raise BadInput(
            f"{view.agent_id!r} cannot be run again from {moment.isoformat()} on: its newest record, seq "
            f"{view.head.seq}, is older."
        )
    return found


def _fork_point(view: AgentView, records: Sequence[Record], seq: int) -> int:
    """Return the fork point of a rerun from `seq` on. Raise BadInput if the agent has no such record."""
    head = view.head.seq
    if not 1 <= seq <= head:
        raise BadInput(f"{view.agent_id!r} cannot be run again from seq {seq}: it has records 1 to {head}, the head.")

    def open_at(at: int) -> list[int]:
        return [row["opened_seq"] for row in view.rows("open_turns", at)]

    return fork_point_before(records, seq, open_at)


def _nothing(agent_id: str, records: Sequence[Record], seq: int) -> BadInput:
    found = last_input(records)
    last = f"the last input is at seq {found}" if found else "the agent has never had an input"
    return BadInput(f"{agent_id!r} has no input to run again from seq {seq} on: {last}. No fork was made.")


def _edits(settings: Settings, before: Context) -> list[MemoryEdited]:
    """Return the edits that set blocks of the fork to other values. Raise BadInput for a value that is too long."""
    had = {block.label: block for block in before.blocks}
    edits = []
    for block in settings.blocks:
        known = had.get(block.label)
        # The default limit means that none was given: the block's own limit remains.
        limit = known.limit if known is not None and block.limit == BLOCK_CHARS else block.limit
        text = block_text(block)
        check_block(block.label, text, limit, block.description)
        edit = MemoryEdited(
            text=text,
            label=block.label,
            operation="set",
            limit=limit,
            description=block.description or (known.description if known is not None else ""),
            read_only=block.read_only or (known is not None and known.read_only),
        )
        edits.append(edit if known is not None else msgspec.structs.replace(edit, operation="created"))
    return edits


def _all_tools(view: AgentView, records: Sequence[Record], system: LocalSystem, cut: int) -> dict[str, Tool]:
    """Return the available functions, and a schema-only one for each other function that the agent had."""
    missing = schema_only_tools(view.agent_id, records, view.schemas(), system.tools, cut)
    own = {name: tool for name, tool in system.tools.items() if name not in EXTRAS}
    return {**own, **missing, **system.tools}


def _first_values(now: Sequence[Record]) -> dict[str, str]:
    """Return the values of blocks, by label, that a fork was given outside of its turns."""
    changed: dict[str, str] = {}
    for record in now:
        event = event_of(record)
        if isinstance(event, MemoryEdited) and not record.step:
            changed[event.label] = event.text
    return changed


def _comparer(
    view: AgentView, past: RecordedPast, changed: Mapping[str, str], tools: Mapping[str, Tool], prices: TokenPrices
) -> ForkComparer:
    blocks = {row["label"]: row["value"] for row in view.rows("core_memory", past.cut)}
    return ForkComparer(past.records, blocks=blocks, changed=changed, tools=tools, prices=prices)

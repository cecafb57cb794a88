"""Turn inputs into events: the agent, whose only state, apart from its log, is its position in the log.

An input is one commit, durable before anything else happens. Then turns run one after the other (`turn_runner.py`).

The same class runs in a terminal, in a test and in a Ray actor: every effect is passed in as an argument. Used by
`local_system.py` and the hosts in `actors/hosting`, and by reruns.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import cast

import msgspec

from everlog.actors.agent import agent_setup, model_pool
from everlog.actors.agent.activation import AgentResources
from everlog.actors.agent.activation_state import NOT_DERIVING, ActivationState, activation_state_of, idle_deriving
from everlog.actors.agent.conversation_import import ImportedMessage, ImportReport, ids_of_import, summaries_in
from everlog.actors.agent.event_writer import CommitListener, EventWriter, ids_of, signed
from everlog.actors.agent.model_step import ModelCaller
from everlog.actors.agent.orphaned_turns import end_orphaned_turns
from everlog.actors.agent.turn_runner import TurnRunner
from everlog.actors.agent.turn_transitions import check_is_input
from everlog.actors.agent.undo import PositionedEvent, commit_of, endings_of, last_reply, last_said, newest_turns
from everlog.actors.formats.reply_preview import NO_PREVIEWS, PreviewListener
from everlog.actors.models import daily_usage
from everlog.actors.models.model_types import ModelDefaults
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import DeltaCallback, ModelResponse
from everlog.actors.ports.journal import Journal
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt import prompt_sections
from everlog.events import (
    AgentConfigured,
    AgentDeleted,
    AgentReplyReceived,
    BadInput,
    DuplicateId,
    EditConflict,
    Event,
    EverlogError,
    ModelError,
    Record,
    ReplyRethought,
    TurnsHidden,
    UnknownAgent,
    UserMessage,
    event_of,
)
from everlog.events.times import microseconds_of
from everlog.store import TornTail, typed


class Agent(EventWriter):
    """One agent, activated. Call `activate` first; then `receive` and `run` in any order."""

    __slots__ = (
        "_known",
        "_model_caller",
        "_running",
        "_turns",
        "archiving",
        "blocks",
        "cut",
        "derivation_lock",
        "deriving",
        "model_name",
        "models",
        "previews",
        "schemas",
        "searcher",
        "tools",
        "unsealed",
        "zone",
    )  # fmt: skip

    def __init__(
        self,
        agent_id: str,
        *,
        journal: Journal,
        head: int,
        resources: AgentResources,
        ports: Ports,
        on_commit: CommitListener | None = None,
    ) -> None:
        super().__init__(agent_id, journal=journal, head=head, ports=ports, on_commit=on_commit)
        self.searcher, self.blocks = resources.searcher, resources.blocks
        self.tools, self._known = resources.tools, resources.known
        self.models = model_pool.ModelPool(
            resources.models, daily_usage.Ledger(ports.clock, partial(daily_usage.logged_usage, self, journal))
        )
        self.previews: PreviewListener = NO_PREVIEWS
        """Gets the chunks of streamed replies, and the calls of users' functions."""
        self.derivation_lock = asyncio.Lock()
        """Held while memories are derived: a second derivation would read the same messages."""
        self._running, self.archiving = asyncio.Lock(), asyncio.Lock()
        """`_running`: held while a turn runs or the context is edited. `archiving`: held from the check that a memory
        exists until the events of that decision are in the log.
        """
        self.model_name = OFFLINE
        """Name of the model in the newest configuration."""
        self.cut: TornTail | None = None
        """Damaged tail that was cut off the log when the log was opened, and saved next to the log; None: no damage."""
        self.unsealed = ""
        """Reason that the log could not be sealed when it was opened or closed, although due; empty: no failure."""
        self.zone = "UTC"
        self.deriving = NOT_DERIVING
        """Derivations, and news for the background agent, while the agent is idle; by the newest configuration."""
        self.schemas: Mapping[str, str] = {}
        """JSON schema text by sha256, from every configuration in the log; shared with agents that are set up alike."""
        self._model_caller = ModelCaller(self)
        self._turns = TurnRunner(self, self._model_caller, tools=self.tools, searcher=self.searcher, ports=ports)

    async def set_up(self, *, unattended: bool) -> None:
        """Configure an agent that was activated with `keep_configuration`. `unattended` as for `activate`."""
        recorded = (await self._woken()).recorded
        if unattended and recorded is not None:
            agent_setup.check_functions_given(self.agent_id, recorded, self.tools)
        await self._set_up(agent_setup.Settings(), recorded)

    async def activate(
        self,
        settings: agent_setup.Settings,
        *,
        create: bool = True,
        unattended: bool = False,
        keep_configuration: bool = False,
        by: str = "",
    ) -> None:
        """Create the agent if it does not exist, record a changed configuration, and find the unfinished turns.

        `create` False: raises UnknownAgent if the agent was deleted. `unattended`: no caller can grant functions;
        raises UsageError if the agent needs some. `keep_configuration`: the agent runs no turn now and is not
        configured again.
        """
        woken = await self._woken()
        self._turn, self._timed, self._mailed, recorded = woken.turn, woken.timed, woken.mailed, woken.recorded
        if woken.exists:
            if unattended and recorded is not None:
                agent_setup.check_functions_given(self.agent_id, recorded, self.tools)
            if keep_configuration and recorded is not None:
                self._follow(recorded)
            else:
                await self._set_up(settings, recorded)
            # A rerun in progress owns its open turns. In any other activation such turns are leftovers of an
            # interrupted rerun, and running them would repeat their calls with real effects.
            if self.repeats is None:
                self._waiting.extend((turn, "") for turn in await end_orphaned_turns(self, woken))
        elif not create:
            raise UnknownAgent(
                f"{self.agent_id!r} was deleted. `everlog create {typed(self.agent_id)}` creates it again."
            )
        else:
            configured = await self._configuration(settings, None)
            await self.commit(signed(agent_setup.birth(self.agent_id, settings, configured), by), turn=0, step=0)
            self.models.ledger.begin()
            self._follow(configured)

    async def _set_up(
        self, settings: agent_setup.Settings, recorded: AgentConfigured | None, event_id: str | None = None
    ) -> None:
        """Apply `settings` over the recorded configuration, and commit the configuration if it changed."""
        configured = await self._configuration(settings, recorded)
        if recorded is None or configured.schemas or not agent_setup.same(recorded, configured):
            head = self.head
            left = await self.commit([configured], turn=self._turn, step=0, ids=ids_of(event_id))
            if left[0].seq <= head:  # redelivered: a newer configuration may hold by now
                return
        self._follow(configured)

    async def _configuration(self, settings: agent_setup.Settings, recorded: AgentConfigured | None) -> AgentConfigured:
        facts = await prompt_sections.template_facts(self, settings.sections, recorded)
        configured = agent_setup.configuration(settings, recorded, self.tools, self.schemas, self._known, facts)
        if configured.members:
            from everlog.actors.groups.membership import with_members  # most agents are no groups

            others = self.searcher(None, self._turn).others
            configured = await with_members(self.agent_id, others, configured, recorded)
        if settings.background:
            name = await self.searcher(None, self._turn).others.background(settings.background)
            configured = msgspec.structs.replace(configured, background=name)
        return configured

    def _follow(self, configured: AgentConfigured) -> None:
        """Apply a configuration to this activation."""
        self._know(configured.schemas)
        self.zone, self.deriving = configured.zone, idle_deriving(configured)
        self.model_name, self.models.window = configured.model, configured.window
        self.models.ledger.limit(configured)

    def _know(self, schemas: Mapping[str, str]) -> None:
        """Remember schemas. The mapping is replaced and never changed: agents with the same setup share it."""
        if not schemas.keys() <= self.schemas.keys():
            self.schemas = {**self.schemas, **schemas} if self.schemas else schemas

    async def close(self) -> None:
        """Close the model clients. Idempotent."""
        await self.models.keep()

    async def receive(
        self,
        event: Event,
        *,
        event_id: str | None = None,
        said_at: int | None = None,
        not_before: int | None = None,
        then: Sequence[Event] = (),
    ) -> Record:
        """Commit an input and return its record, durable; `run` then processes the input. Idempotent by `event_id`.

        `then`: events of the same commit that follow from the input, such as the next time of a timer that fired.
        `not_before`: lower bound of the recorded time, microseconds UTC, inclusive, even if the clock shows less.

        Raises BadInput for an event that is not an input, Busy if INBOX_MAX inputs wait already: the input is not
        stored.
        """
        check_is_input(event)
        at = None if not_before is None else max(not_before, self._clock.now())
        # The input is the first commit, before any turn starts: an acknowledged input survives a crash at any later
        # point.
        said = [said_at, *(None for _ in then)]
        record = (await self.commit([event, *then], turn=None, step=0, ids=ids_of(event_id), said_at=said, at=at))[0]
        for one in then:
            if isinstance(one, AgentReplyReceived):
                self.models.ledger.charge(one.used)
        return record

    async def run(self) -> None:
        """Run all unfinished turns, oldest first, until the agent is idle. Raise the first ModelError that ends a
        turn.
        """
        while (ran := await self.run_next()) is not None:
            if ran[1] is not None:
                raise ran[1]

    async def run_next(self) -> tuple[int, ModelError | None] | None:
        """Run the oldest unfinished turn. Return its number and the ModelError that ended it (or None); None without a
        turn.

        One caller runs a turn at a time; the others wait.
        """
        async with self._running:
            if not self._waiting:
                return None
            turn, cause = self._waiting[0]
            self._waiting[0] = (turn, "")  # cleared first: an interrupted turn resumes from the log
            failed: ModelError | None = None
            try:
                with self._runs.turn(turn):
                    if self.may_work_for_others(turn, resumed=not cause):
                        from everlog.actors.mail.inherited import budgets_of_turn  # most agents never write to others

                        self.models.ledger.inherit(await budgets_of_turn(self, turn))
                    await self._turns.run(turn, cause)
            except ModelError as error:  # recorded in the log; ends this turn only, later ones may succeed
                failed = error
            finally:
                self.models.ledger.inherit(())
            self._closed([turn])
            return turn, failed

    async def ask(self, name: str, request: bytes, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send a request to the named model and return the response. Raise ModelError, also for a missing API key."""
        return await self.models.ask(name, request, on_delta)

    async def with_budgets(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return events of which messages to other agents carry the budgets that this agent works within."""
        return await self.models.ledger.carried(self.agent_id, events)

    def known_of(self, model: str) -> ModelDefaults:
        """Return the defaults of the named model."""
        return self._known(model) if self._known is not None else ModelDefaults()

    async def _woken(self) -> ActivationState:
        """Read the activation state from the log, and remember every schema in the log."""
        woken = activation_state_of(await self.rows("waking"))
        for one in woken.configurations:
            self._know(one.schemas)
        return woken

    async def delete(self) -> None:
        """Delete the agent: its name can be created again, its records stay until they are erased."""
        await self.commit([AgentDeleted()], turn=self._turn, step=0)

    async def hide(self, turns: int = 1, event_id: str | None = None) -> Sequence[int]:
        """Exclude the newest turns (1 or more; all, if fewer are visible) from the context; return their numbers,
        rising.

        Their effects stay, and search still finds their messages. An open turn is ended and not run again; a running
        turn is waited for first. Idempotent by `event_id` (UUIDv7), as are the methods below. Raises BadInput if the
        context shows no turn, DuplicateId if the id belongs to another event.
        """

        async def write() -> Record:
            hidden = newest_turns(await self._model_caller.context(self._turn), turns)
            return await self._take_back([], self._turn, hidden, event_id)

        event = event_of(await self.once(event_id, write, TurnsHidden))
        return event.turns if isinstance(event, TurnsHidden) else []

    async def retry(self, event_id: str | None = None) -> Record:
        """Exclude the last user message and all that follows, and receive the same message again; `run` answers it.

        Returns the record of the new message. Raises BadInput if the context shows no user message.
        """

        async def write() -> Record:
            said, hidden = last_said(await self._model_caller.context(self._turn))
            again = msgspec.structs.replace(said, ref="", by="", imported=False)
            return await self._take_back([again], None, hidden, event_id)

        return await self.once(event_id, write, UserMessage, TurnsHidden)

    async def rethink(self, text: str, event_id: str | None = None) -> Record:
        """Replace the agent's newest thought by `text` in the context. Raise BadInput if `text` is blank, or if there
        is no thought to replace.
        """
        if not text.strip():
            raise BadInput("The new thought is empty. Give the text that replaces the agent's last thought.")

        async def write() -> Record:
            rethought = ReplyRethought(text=text, target_seq=last_reply(await self._model_caller.context(self._turn)))
            return (await self.commit([rethought], turn=self._turn, step=0, ids=ids_of(event_id)))[0]

        return await self.once(event_id, write, ReplyRethought)

    async def configure(self, settings: agent_setup.Settings, event_id: str | None = None) -> AgentConfigured:
        """Apply settings and return the configuration that now holds; a changed configuration is committed.

        A model of another name is created at its next request, so an unknown model fails then. Raises BadInput for
        invalid settings.
        """
        async with self._running:
            try:
                await self._set_up(settings, (await self._woken()).recorded, event_id)
            except DuplicateId:  # redelivered after a newer configuration, or the id of another event
                if not await self.known(event_id, AgentConfigured):
                    raise
            configured = cast("AgentConfigured", (await self._woken()).recorded)
            await self.models.keep(configured.model, configured.summarizer, configured.fallback)
            return configured

    async def _take_back(
        self, events: Sequence[Event], turn: int | None, hidden: Sequence[int], event_id: str | None
    ) -> Record:
        """Commit `events`, the exclusion of turns, and the endings of open ones at once. Return the first record."""
        # Locked from reading the open turns to the append: a `cancel` in between would end the same turn twice.
        async with self._writing:
            ended_now = endings_of(await self.rows("turn_records"), hidden)
            left: list[Event | PositionedEvent] = [*events, TurnsHidden(turns=list(hidden)), *ended_now]
            commit = await self._append(left, turn, 0, ids=ids_of(event_id))
            self._closed(hidden)
        return self._notify(commit)[0]

    async def once(self, event_id: str | None, write: Callable[[], Awaitable[Record]], *kinds: type[Event]) -> Record:
        """Run `write` and return its record. For a command that was carried out before, return its first record."""
        async with self._running:
            try:
                return await write()
            except (BadInput, DuplicateId, EditConflict):
                known = await self.known(event_id, *kinds)
                if not known:
                    raise
                return known[0]

    async def known(self, event_id: str | None, *kinds: type[Event]) -> Sequence[Record]:
        """Return the commit that begins with the event of this id and these kinds; an empty list for another."""
        found = commit_of(self.records(1), event_id) if event_id else []
        same = [record.type for record in found[: len(kinds)]] == [kind.kind for kind in kinds]
        return found if same else []

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now. Return False if there is nothing to summarize."""
        async with self._running:
            return await self._model_caller.summarize_now(self._turn)

    async def expand(self) -> bool:
        """Undo the newest summary. Return False if there is none."""
        async with self._running:
            return await self._model_caller.expand(self._turn)

    async def import_messages(self, said: Sequence[ImportedMessage], event_id: str = "") -> ImportReport:
        """Import a past conversation as one commit without a turn, then make summaries as an overflow would.

        It stays imported if no model can be reached: the next turn then makes the summaries. `event_id`: see
        `ids_of_import`.
        """
        times = [microseconds_of(message.said_at, "said_at") for message in said]
        events, ids = [message.event for message in said], ids_of_import(event_id, len(said))
        records = await self.commit(events, turn=self._turn, step=0, ids=ids, said_at=times)
        try:
            async with self._running:
                if await self._model_caller.fitted(self._turn, 0) is None:
                    raise EverlogError("The context does not fit the window; `everlog context` shows what is in it.")
        except ModelError as error:
            return ImportReport(records, error)
        return ImportReport(records, None, summaries_in(self.records(records[0].seq if records else self.head + 1)))

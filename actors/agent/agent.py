"""The agent: a plain class that turns inputs into events. It has no state beside its log but where it stands in it.

An input is one commit, durable before anything else happens. Then turns are run one after the other (`turns.py`).

The same class runs in a terminal, in a test and in a Ray actor: every effect is an argument.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from everlog.actors.agent import agent_setup, model_pool
from everlog.actors.agent.activation_state import ActivationState, activation_state_of
from everlog.actors.agent.conversation_import import ImportedMessage, ImportReport
from everlog.actors.agent.event_writer import CommitListener, EventWriter, ids_of
from everlog.actors.agent.model_step import ModelCaller
from everlog.actors.agent.orphaned_turns import end_orphaned_turns
from everlog.actors.agent.turn_runner import TurnRunner
from everlog.actors.agent.turn_transitions import check_is_input
from everlog.actors.agent.undo import PositionedEvent, commit_of, endings_of, last_reply, last_said, newest_turns
from everlog.actors.formats.reply_preview import PreviewFactory, no_preview
from everlog.actors.functions.tools import Tool
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.models import daily_usage
from everlog.actors.models.model_types import ModelDefaults
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import DeltaCallback, Model, ModelResponse, Searcher
from everlog.actors.ports.journal import Journal
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt import prompt_sections
from everlog.actors.prompt.context import Context
from everlog.events import (
    AgentConfigured,
    AgentDeleted,
    BadInput,
    DuplicateId,
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
from everlog.store import TornTail


class AgentResources(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent works with beside its log."""

    models: Callable[[str], Model]
    """By name."""
    tools: Mapping[str, Tool]
    """All functions that it may have, by name."""
    searcher: Callable[[Context | None, int], Searcher]
    blocks: BlockClient
    """The memory blocks that it can share."""
    known: agent_setup.ModelDefaultsLookup | None = None
    """What it is set up with for a model; None: nothing is known of any."""


class Agent(EventWriter):
    """One agent, activated. Call `activate` first; then `receive` and `run` in any order."""

    __slots__ = (
        "_known",
        "_running",
        "_thinker",
        "_tools",
        "_turns",
        "archiving",
        "blocks",
        "cut",
        "model_name",
        "models",
        "preview_for",
        "schemas",
        "searcher",
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
        self._tools, self._known = resources.tools, resources.known
        self.models = model_pool.ModelPool(
            resources.models, daily_usage.Ledger(ports.clock, partial(daily_usage.logged_usage, self, journal))
        )
        self.preview_for: PreviewFactory = no_preview
        """Who is told the pieces of a reply as it comes."""
        self._running, self.archiving = asyncio.Lock(), asyncio.Lock()
        """`archiving`: from the look whether a memory is there until what comes of it is in the log."""
        self.model_name = OFFLINE
        """What the newest configuration calls the model."""
        self.cut: TornTail | None = None
        """The damaged tail that was cut off the log when it was opened, and kept beside it; None if there was none."""
        self.unsealed = ""
        """Why the log could not be sealed when it was opened or closed, though much has gathered; empty if it could."""
        self.zone = "UTC"
        self.schemas: Mapping[str, str] = {}
        """JSON schema text by sha256, from every configuration in the log; shared with agents that are set up alike."""
        self._thinker = ModelCaller(self)
        self._turns = TurnRunner(self, self._thinker, tools=self._tools, searcher=self.searcher, clock=ports.clock)

    async def set_up(self, *, unattended: bool) -> None:
        """What `activate` leaves for later where the agent is opened `keep_configuration`."""
        recorded = (await self._woken()).recorded
        if unattended and recorded is not None:
            agent_setup.check_functions_given(self.agent_id, recorded, self._tools)
        await self._set_up(agent_setup.Settings(), recorded)

    async def activate(
        self,
        settings: agent_setup.Settings,
        *,
        create: bool = True,
        unattended: bool = False,
        keep_configuration: bool = False,
    ) -> None:
        """Begin the agent if it does not exist, set it up if something changed, and find its unfinished turns.

        `create` False: raises UnknownAgent where it was deleted. `unattended`: nobody is there who could lend it
        functions; raises UsageError where it needs some. `keep_configuration`: it runs no turn, and is not set up anew.
        """
        woken = await self._woken()
        self._turn, self._timed, recorded = woken.turn, woken.timed, woken.recorded
        if woken.exists:
            if unattended and recorded is not None:
                agent_setup.check_functions_given(self.agent_id, recorded, self._tools)
            if keep_configuration and recorded is not None:
                self._follow(recorded)
            else:
                await self._set_up(settings, recorded)
            if self.repeats is None:
                self._waiting.extend((turn, "") for turn in await end_orphaned_turns(self, woken))
        elif not create:
            raise UnknownAgent(f"{self.agent_id!r} was deleted. `everlog create {self.agent_id}` begins it anew.")
        else:
            facts = await prompt_sections.template_facts(self, settings.sections, None)
            configured = agent_setup.configuration(settings, None, self._tools, self.schemas, self._known, facts)
            await self.commit(agent_setup.birth(settings, configured), turn=0, step=0)
            self.models.ledger.begin()
            self._follow(configured)

    async def _set_up(
        self, settings: agent_setup.Settings, recorded: AgentConfigured | None, event_id: str | None = None
    ) -> None:
        """Go by `settings` over the recorded configuration, and record what they change."""
        facts = await prompt_sections.template_facts(self, settings.sections, recorded)
        configured = agent_setup.configuration(settings, recorded, self._tools, self.schemas, self._known, facts)
        if recorded is None or configured.schemas or not agent_setup.same(recorded, configured):
            head = self.head
            left = await self.commit([configured], turn=self._turn, step=0, ids=ids_of(event_id))
            if left[0].seq <= head:  # it came again, and what was configured since then holds
                return
        self._follow(configured)

    def _follow(self, configured: AgentConfigured) -> None:
        """Go by a configuration."""
        self._know(configured.schemas)
        self.zone = configured.zone
        self.model_name, self.models.window = configured.model, configured.window
        self.models.ledger.limit(configured)

    def _know(self, schemas: Mapping[str, str]) -> None:
        """Remember schemas; a mapping that holds all of them is kept as it is, and never changed."""
        if not schemas.keys() <= self.schemas.keys():
            self.schemas = {**self.schemas, **schemas} if self.schemas else schemas

    async def close(self) -> None:
        """Let go of the models. Idempotent."""
        await self.models.keep()

    async def receive(
        self, event: Event, *, event_id: str | None = None, said_at: int | None = None, not_before: int | None = None
    ) -> Record:
        """Make an input durable and give its record back; `run` then works it off. The same `event_id` counts once.

        `not_before`: the earliest time, microseconds UTC, at which it can have been recorded, whatever the clock says.

        Raises BadInput for what is no input, Busy when INBOX_MAX inputs wait already: the input is not kept.
        """
        check_is_input(event)
        at = None if not_before is None else max(not_before, self._clock.now())
        return (await self.commit([event], turn=None, step=0, ids=ids_of(event_id), said_at=[said_at], at=at))[0]

    async def run(self) -> None:
        """Work off every unfinished turn, in order, until the agent is idle. Raises the ModelError that ends one."""
        while (ran := await self.run_next()) is not None:
            if ran[1] is not None:
                raise ran[1]

    async def run_next(self) -> tuple[int, ModelError | None] | None:
        """Work off the oldest unfinished turn: which it was, and how the model failed it, if so. None if there is none.

        One caller works, the others wait.
        """
        async with self._running:
            if not self._waiting:
                return None
            turn, cause = self._waiting[0]
            self._waiting[0] = (turn, "")  # should it be interrupted, the log says where it goes on
            failed: ModelError | None = None
            try:
                with self._runs.turn(turn):
                    await self._turns.run(turn, cause)
            except ModelError as error:  # it is in the log and ends the turn; the turns after it may have better luck
                failed = error
            self._closed([turn])
            return turn, failed

    async def ask(self, name: str, request: bytes, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send a request to the model of that name. Raises ModelError, for a missing key too."""
        return await self.models.ask(name, request, on_delta)

    def known_of(self, model: str) -> ModelDefaults:
        """What is known of the model of that name."""
        return self._known(model) if self._known is not None else ModelDefaults()

    async def timers(self) -> Sequence[Mapping[str, Any]]:
        """The timers that will still send a heartbeat. Nothing is asked where none was ever set."""
        return await self.rows("timers") if self._timed else ()

    async def _woken(self) -> ActivationState:
        """Where the agent stands; every schema of the log is remembered."""
        woken = activation_state_of(await self.rows("waking"))
        for one in woken.configurations:
            self._know(one.schemas)
        return woken

    async def delete(self) -> None:
        """End the agent: its name can be created again, its records stay until they are erased."""
        await self.commit([AgentDeleted()], turn=self._turn, step=0)

    async def hide(self, turns: int = 1, event_id: str | None = None) -> Sequence[int]:
        """Take the newest turns out of the context, 1 or more (all, where it shows fewer); their numbers, rising.

        What they did stays done, and search still finds what was said. One that is open is ended and not run again; one
        that is running is waited for. The same `event_id` (UUIDv7) counts once, here and in the methods below. Raises
        BadInput where no turn is in view, DuplicateId for the id of something else.
        """

        async def write() -> Record:
            hidden = newest_turns(await self._thinker.context(self._turn), turns)
            return await self._take_back([], self._turn, hidden, event_id)

        event = event_of(await self.once(event_id, write, TurnsHidden))
        return event.turns if isinstance(event, TurnsHidden) else []

    async def retry(self, event_id: str | None = None) -> Record:
        """Hide what a user said last and all that came after it, and receive the same words again; `run` answers them.

        Raises BadInput where no words of a user are in view.
        """

        async def write() -> Record:
            said, hidden = last_said(await self._thinker.context(self._turn))
            return await self._take_back([UserMessage(text=said.text, name=said.name)], None, hidden, event_id)

        return await self.once(event_id, write, UserMessage, TurnsHidden)

    async def rethink(self, text: str, event_id: str | None = None) -> Record:
        """Let the context show `text` as the agent's newest thought. Raises BadInput for blank text, or no thought."""
        if not text.strip():
            raise BadInput("A thought has words; say what the agent is to have thought.")

        async def write() -> Record:
            rethought = ReplyRethought(text=text, target_seq=last_reply(await self._thinker.context(self._turn)))
            return (await self.commit([rethought], turn=self._turn, step=0, ids=ids_of(event_id)))[0]

        return await self.once(event_id, write, ReplyRethought)

    async def configure(self, settings: agent_setup.Settings, event_id: str | None = None) -> AgentConfigured:
        """Set the agent up anew where `settings` ask for something else; the configuration that now holds.

        A model of another name is made when it is next asked: one that does not exist fails then. Raises BadInput for
        settings that cannot be.
        """
        async with self._running:
            try:
                await self._set_up(settings, (await self._woken()).recorded, event_id)
            except DuplicateId:  # it came again after the agent was set up otherwise, or is the id of something else
                if not await self.known(event_id, AgentConfigured):
                    raise
            configured = cast("AgentConfigured", (await self._woken()).recorded)
            await self.models.keep(configured.model, configured.summarizer, configured.fallback)
            return configured

    async def _take_back(
        self, events: Sequence[Event], turn: int | None, hidden: Sequence[int], event_id: str | None
    ) -> Record:
        """Hide turns and end those that are open, after `events`, all in one commit; its first record."""
        async with self._writing:
            ended_now = endings_of(await self.rows("turn_records"), hidden)
            left: list[Event | PositionedEvent] = [*events, TurnsHidden(turns=list(hidden)), *ended_now]
            commit = await self._append(left, turn, 0, ids=ids_of(event_id))
            self._closed(hidden)
        return self._notify(commit)[0]

    async def once(self, event_id: str | None, write: Callable[[], Awaitable[Record]], *kinds: type[Event]) -> Record:
        """What `write` leaves. Where it is refused because the command was carried out before: what that left then."""
        async with self._running:
            try:
                return await write()
            except (BadInput, DuplicateId):
                known = await self.known(event_id, *kinds)
                if not known:
                    raise
                return known[0]

    async def known(self, event_id: str | None, *kinds: type[Event]) -> Sequence[Record]:
        """The commit that begins with the event of that id, if it begins with these kinds; else none."""
        found = commit_of(self.records(1), event_id) if event_id else []
        same = [record.type for record in found[: len(kinds)]] == [kind.kind for kind in kinds]
        return found if same else []

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now; False if there is nothing to summarize."""
        async with self._running:
            return await self._thinker.summarize_now(self._turn)

    async def expand(self) -> bool:
        """Take the newest summary back; False if there is none."""
        async with self._running:
            return await self._thinker.expand(self._turn)

    async def import_messages(self, said: Sequence[ImportedMessage]) -> ImportReport:
        """Import a past conversation: one commit, no turn, then the summaries that a live overflow would have made.

        The conversation is kept even where the model cannot be asked for summaries; the next turn makes them.
        """
        records = await self.commit(
            [message.event for message in said], turn=self._turn, step=0, said_at=[message.said_at for message in said]
        )
        try:
            async with self._running:
                if await self._thinker.fitted(self._turn, 0) is None:
                    raise EverlogError("The context does not fit the window; `everlog context` shows what is in it.")
        except ModelError as error:
            return ImportReport(records, error)
        return ImportReport(records, None)

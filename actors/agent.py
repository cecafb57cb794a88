"""The agent: a plain class that turns inputs into events. It has no state beside its log but where it stands in it.

An input is one commit, durable before anything else happens. Then turns are run one after the other, each in steps:
render the context, ask the model, run the functions, commit all of it at once. A call with an effect outside the log
is the one thing that needs a commit of its own, before the effect leaves.

The same class runs in a terminal, in a test and in a Ray actor: every effect is an argument.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from events import (
    AgentConfigured,
    Event,
    EverlogError,
    FunctionResult,
    FunctionStarted,
    Heartbeat,
    ModelError,
    ModelReply,
    Record,
    TurnAbandoned,
    UsageError,
    draft,
)
from store import Damage

from . import setup
from .constants import INBOX_MAX
from .context import Context
from .decide import Outside, Step
from .effects import Answer, Clock, Ids, Model, Searcher
from .importing import Said
from .journal import Journal
from .memory import Desk
from .think import Thinker, Thought
from .tools import Tool

Listener = Callable[[Sequence[Record]], None]

INPUTS = ("user_message", "user_login", "heartbeat", "system_alert")
INTERRUPTED = "The call was interrupted: its effect may or may not have happened. Find out before you call it again."


class Imported(msgspec.Struct, frozen=True):
    """A past conversation that was taken in."""

    records: Sequence[Record]
    delayed: ModelError | None
    """Why its summaries are still to be made; None if they are made, or none was needed."""


class Agent:
    """One agent, activated. Call `activate` first; then `receive` and `run` in any order."""

    def __init__(
        self,
        agent_id: str,
        *,
        journal: Journal,
        head: int,
        models: Callable[[str], Model],
        tools: Mapping[str, Tool],
        searcher: Callable[[Context, int], Searcher],
        clock: Clock,
        ids: Ids,
        listen: Listener | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.head = head
        """Seq of the last record."""
        self._models = models
        self._journal = journal
        self._tools = tools
        self._searcher = searcher
        self._clock = clock
        self._ids = ids
        self._listen = listen
        self._turn = 0
        self._waiting: deque[tuple[int, str]] = deque()
        self._writing = asyncio.Lock()
        self._running = asyncio.Lock()
        self.model: Model | None = None
        """Made when it is first asked: an agent can be opened, read and deleted without a key."""
        self._model_name = setup.OFFLINE
        self.cut: Damage | None = None
        """The damaged tail that was cut off the log when it was opened, and kept beside it; None if there was none."""
        self.zone = "UTC"
        self.schemas: dict[str, str] = {}
        """JSON schema text by sha256, from every configuration in the log."""
        self._thinker = Thinker(self)

    async def activate(self, settings: setup.Settings) -> None:
        """Begin the agent if it does not exist, set it up if something changed, and find its unfinished turns."""
        state = next(iter(await self.rows("agents")), None)
        exists = state is not None and not state["deleted"]
        self._turn = state["turn"] if state is not None and exists else 0
        recorded = await self._configurations()
        configured = setup.configuration(settings, recorded if exists else None, self._tools, self.schemas)
        if not exists:
            await self.commit(setup.birth(settings, configured), turn=0, step=0)
        elif recorded is None or not setup.same(recorded, configured):
            await self.commit([configured], turn=self._turn, step=0)
        self.schemas.update(configured.schemas)
        self.zone = configured.zone
        self._model_name = configured.model
        if exists:
            for turn in sorted(await self._journal.rows("turns", self.agent_id, self.head), key=lambda t: t["turn"]):
                if turn["status"] == "open":
                    self._waiting.append((turn["turn"], ""))

    async def close(self) -> None:
        """Let go of the model. Idempotent."""
        if self.model is not None:
            await self.model.close()

    @property
    def turn(self) -> int:
        """The last turn that was opened."""
        return self._turn

    @property
    def waiting(self) -> int:
        """Turns that are not finished."""
        return len(self._waiting)

    async def receive(self, event: Event, *, event_id: str | None = None, said_at: int | None = None) -> Record:
        """Make an input durable and give its record back; `run` then works it off. The same `event_id` counts once.

        Raises UsageError when INBOX_MAX inputs wait already: the input is not kept.
        """
        if len(self._waiting) >= INBOX_MAX:
            raise UsageError(
                f"{self.agent_id!r} has {INBOX_MAX} inputs waiting and takes no more now. Try again later."
            )
        commit = await self.commit([event], turn=None, step=0, ids=[event_id] if event_id else None, said_at=[said_at])
        return commit[0]

    async def run(self) -> None:
        """Work off every unfinished turn, in order, until the agent is idle. One caller works, the others wait."""
        async with self._running:
            while self._waiting:
                turn, cause = self._waiting[0]
                self._waiting[0] = (turn, "")  # should it be interrupted, the log says where it goes on
                await self._run_turn(turn, cause)
                self._waiting.popleft()

    async def commit(
        self,
        events: Sequence[Event],
        *,
        turn: int | None,
        step: int,
        cause: str | None = None,
        ids: Sequence[str] | None = None,
        said_at: Sequence[int | None] | None = None,
        at: int | None = None,
    ) -> Sequence[Record]:
        """Append events as one commit; the later ones are caused by the first. `turn` None opens the next turn.

        `ids` and `said_at` belong to the events, one each, where they are given. `at` is the time that a function was
        told, so that `verify` can tell it the same.
        """
        async with self._writing:
            now = self._clock.now() if at is None else at
            names = list(ids) if ids else [self._ids.new(now) for _ in events]
            times = said_at or [None] * len(events)
            drafts = [
                draft(
                    event,
                    event_id=name,
                    recorded_at=now,
                    said_at=times[number],
                    turn=self._turn + 1 if turn is None else turn,
                    step=step,
                    cause=names[0] if number else cause,
                )
                for number, (event, name) in enumerate(zip(events, names, strict=True))
            ]
            commit = await self._journal.commit(self.agent_id, self.head, drafts)
            if not commit.repeated:
                self.head += len(drafts)
                if turn is None:
                    self._turn += 1
                    self._waiting.append((self._turn, names[0]))
        if self._listen is not None and not commit.repeated:
            self._listen(commit.records)
        return commit.records

    async def ask(self, request: bytes) -> Answer:
        """Send a request to the model of the newest configuration. Raises ModelError, for a missing key too."""
        if self.model is None:
            self.model = self._models(self._model_name)
        return await self.model.ask(request)

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Rows of a projection over this agent's log."""
        return await self._journal.rows(name, self.agent_id, self.head if as_of is None else as_of)

    async def _configurations(self) -> AgentConfigured | None:
        """The newest configuration; every schema of the log is remembered by its name."""
        recorded: AgentConfigured | None = None
        for row in sorted(await self.rows("configurations"), key=lambda row: cast("int", row["seq"])):
            recorded = msgspec.json.decode(row["payload"], type=AgentConfigured)
            msgspec.structs.force_setattr(recorded, "text", row["text"] or "")
            self.schemas.update(recorded.schemas)
        return recorded

    async def _run_turn(self, turn: int, cause: str) -> None:
        step = 1
        if not cause:
            cause, step, goes_on = await self._take_up(turn)
            if not goes_on:
                return
            steps_max = (await self._thinker.context(turn)).config.steps_max
            if step > steps_max:
                await self._abandon(turn, step - 1, steps_max)
                return
        while True:
            thought = await self._think(turn, step, cause)
            if thought is None:
                return
            cause, goes_on = await self._act(thought, turn, step)
            if not goes_on:
                return
            if step >= thought.context.config.steps_max:
                await self._abandon(turn, step, thought.context.config.steps_max)
                return
            step += 1

    async def _think(self, turn: int, step: int, cause: str) -> Thought | None:
        """Ask the model. A failure has been recorded and ends the turn; what was said stays in the context."""
        try:
            return await self._thinker.think(turn, step, cause)
        except ModelError:
            self._waiting.popleft()
            raise

    async def _act(self, thought: Thought, turn: int, step: int) -> tuple[str, bool]:
        """Run the functions of a reply and commit everything; the id of the last input, and whether it needs a step."""
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
    ) -> Step:
        desk = Desk(context.blocks, now=now, zone=context.config.zone, searcher=self._searcher(context, turn))
        return Step(context, reply, self._tools, desk, f"{turn}/{step}", results)

    async def _work_off(
        self,
        work: Step,
        turn: int,
        step: int,
        cause: str | None,
        *,
        at: int | None = None,
        started: frozenset[str] = frozenset(),
    ) -> tuple[str, bool]:
        """Run what is left of a step; `at` is when its reply arrived.

        `started`: calls whose intent was durable before a crash, and that may be run again.
        """
        while (outside := work.outside()) is not None:
            if outside.tool.outside and outside.call.id not in started:
                work.started(outside)
                records = await self.commit(work.taken(), turn=turn, step=step, cause=cause, at=at)
                cause, at = records[0].event_id, None
            await self._run_outside(work, outside)
        goes_on = work.finish()
        events = work.taken()
        if not events:
            return cause or "", goes_on
        records = await self.commit(events, turn=turn, step=step, cause=cause, at=at)
        return records[-1].event_id, goes_on

    async def _run_outside(self, work: Step, outside: Outside) -> None:
        """Run a function that reaches outside the log. What a user's function raises is told to the model."""
        arguments = dict(outside.arguments)
        if outside.tool.takes_key:
            arguments["idempotency_key"] = outside.key
        try:
            result = outside.tool.function(**arguments)
            if inspect.isawaitable(result):
                result = await result
        except outside.tool.faults as error:
            work.ended(outside, error=f"Error calling function {outside.call.name}: {error}")
        else:
            work.ended(outside, result)

    async def _take_up(self, turn: int) -> tuple[str, int, bool]:
        """Where an unfinished turn goes on after a crash: the cause, the next step, and whether there is one."""
        records = [row for row in await self.rows("turn_records") if row["turn"] == turn]
        if not records:
            return "", 0, False
        replies = [row for row in records if row["type"] == "model_reply"]
        last = replies[-1] if replies else None
        inputs = [row for row in records if row["type"] in INPUTS]
        if last is not None and last["seq"] > inputs[-1]["seq"]:
            cause, goes_on = await self._finish_calls(last, records)
            return cause, last["step"] + 1, goes_on
        return str(inputs[-1]["event_id"]), (last["step"] + 1 if last else 1), True

    async def _finish_calls(self, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
        """Finish the calls of a reply that was interrupted between an intent and its result."""
        reply = msgspec.json.decode(row["payload"], type=ModelReply)
        mine = [r for r in records if r["step"] == row["step"] and r["seq"] > row["seq"]]
        results = {
            result.call_id: result
            for result in (
                msgspec.json.decode(r["payload"], type=FunctionResult) for r in mine if r["type"] == "function_result"
            )
        }
        begun = [
            msgspec.json.decode(r["payload"], type=FunctionStarted) for r in mine if r["type"] == "function_started"
        ]
        asked = await self._thinker.context(row["turn"], row["seq"] - 1)
        blocks = (await self._thinker.context(row["turn"])).blocks
        context = msgspec.structs.replace(asked, blocks=blocks)
        work = self._step(context, reply, row["turn"], row["step"], row["recorded_at"], results)
        for intent in begun:
            if intent.call_id not in results and (intent.effect == "at_most_once" or not work.knows(intent.name)):
                work.given(
                    FunctionResult(text=INTERRUPTED, call_id=intent.call_id, name=intent.name, ok=False, unknown=True)
                )
        started = frozenset(intent.call_id for intent in begun)
        return await self._work_off(work, row["turn"], row["step"], str(row["event_id"]), started=started)

    async def _abandon(self, turn: int, step: int, steps_max: int) -> None:
        text = f"The turn was stopped after {steps_max} model calls, the most that one turn may make."
        await self.commit([TurnAbandoned(text=text, reason="steps_max")], turn=turn, step=step)

    async def beat(self, text: str = "") -> None:
        """Run the agent once by hand, without a user."""
        await self.receive(Heartbeat(text=text, reason="manual"))
        await self.run()

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now; False if there is nothing to summarize."""
        async with self._running:
            return await self._thinker.summarize_now(self._turn)

    async def expand(self) -> bool:
        """Take the newest summary back; False if there is none."""
        async with self._running:
            return await self._thinker.expand(self._turn)

    async def take_in(self, said: Sequence[Said]) -> Imported:
        """Import a past conversation: one commit, no turn, then the summaries that a live overflow would have made.

        The conversation is kept even where the model cannot be asked for summaries; the next turn makes them.
        """
        records = await self.commit(
            [message.event for message in said],
            turn=self._turn,
            step=0,
            said_at=[message.said_at for message in said],
        )
        try:
            await self.fit()
        except ModelError as error:
            return Imported(records, error)
        return Imported(records, None)

    async def fit(self) -> None:
        """Make the summaries that the next call would make (an import ends so). Raises EverlogError if nothing fits."""
        async with self._running:
            if await self._thinker.fitted(self._turn, 0) is None:
                raise EverlogError("The context does not fit the window; `everlog context` shows what is in it.")

"""Deliver what an agent wrote to others, from its log, and take what others wrote to it. Used by `Host`.

The log is the outbox: a message is due from the commit that holds it until another commit says that it arrived. So a
host may die at any step, and the next one delivers again; the receiver knows the message by the sender's event id, and
keeps it once. An answer is delivered in the same way, when no turn works on the question any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import DeliverLetter
from everlog.actors.mail.letters import (
    TRIED_US,
    WAIT,
    Due,
    Letter,
    MessageRow,
    ReplyLetter,
    background_timers,
    expired,
    letter_id,
    open_question,
    timer_rows,
    to_deliver,
    undeliverable,
    why_undeliverable,
)
from everlog.actors.ports.agent_constants import LATE_US
from everlog.actors.ports.effects import Clock
from everlog.events import (
    AgentMessageSettled,
    Event,
    EverlogError,
    MessageOutcome,
    Record,
    UnknownAgent,
    Usage,
    UserMessage,
)

if TYPE_CHECKING:
    from everlog.actors.postbox.known_letters import KnownLetters
    from everlog.actors.postbox.retries import Retries

LETTERS_AT_ONCE = 20
"""Most letters of one agent that are on the way at the same time."""

LetterSender = Callable[[Sequence[tuple[str, DeliverLetter]]], Awaitable[Sequence[EverlogError | None]]]
"""Has other agents take letters. Returns for each the error that kept it from being taken; None: it is in their log."""

_Failures = list[tuple[Due, EverlogError]]


class Postbox:
    """Messages of one agent to others, and theirs to it."""

    def __init__(self, send: LetterSender | None, clock: Clock, note: Callable[[str], None]) -> None:
        """`send` None: nothing is delivered here; it stays in the log. `note` is told of what is tried again."""
        self._send, self._clock, self._note = send, clock, note
        # Made when an agent first sends or gets a letter, with their modules: most agents never do.
        self._retries: Retries | None = None
        self._known: KnownLetters | None = None
        self._delivering = asyncio.Lock()
        """Held while letters are on their way: two deliveries would record the end of the same letter twice."""
        self.works = False
        """True if a turn works on a question of another agent, so that its end makes an answer ready."""

    def may_be_due(self, agent: Agent) -> bool:
        """Return True if what is due may have changed although no record says so by its kind."""
        return self.works or agent.deriving.watched

    def begin(self) -> None:
        """Begin with an agent that was just opened: another process may have taken letters for it meanwhile."""
        self._retries = self._known = None

    async def timers(self, agent: Agent) -> list[dict[str, Any]]:
        """Return what is due of the agent's messages, as rows of the projection `timers`."""
        rows = await agent.messages()
        self.works = any(row["state"] == "working" for row in rows)
        if self._send is None:
            return []
        delayed = rows if self._retries is None else self._retries.delayed(rows)
        return [*timer_rows(delayed), *background_timers(await _background(agent))]

    async def deliver(self, agent: Agent) -> Record | None:
        """Deliver all that is to be delivered, what the background agent is told as well, and record what arrived.

        Return the input that says what cannot be delivered; None if there is none. What failed for another reason stays
        due: the schedule wakes the agent again.
        """
        if self._send is None:
            return None
        async with self._delivering:
            await _tell(agent, self._clock.now())
            now = self._clock.now()
            lost: _Failures = []
            again: _Failures = []
            retries = self._made_retries()
            rows = await agent.messages()
            dues = retries.ready(to_deliver(agent.agent_id, rows, await _used(agent, rows)), now)
            # A few at a time: what is on the way waits in memory, here and at the receivers, until it is taken.
            for first in range(0, len(dues), LETTERS_AT_ONCE):
                part = dues[first : first + LETTERS_AT_ONCE]
                await self._send_part(agent, part, now, lost, again)
            self._note_retries(agent.agent_id, retries, again)
            record = None
            for due, error in lost:
                row = next(row for row in await agent.messages() if row["seq"] == due.seq)
                record = await _ended(agent, undeliverable(due, error), row)
            return record

    async def _send_part(self, agent: Agent, dues: Sequence[Due], now: int, lost: _Failures, again: _Failures) -> None:
        """Send letters, and commit which of them arrived, or never will. Add the others to `lost` and `again`."""
        assert self._send is not None
        orders = [
            (due.to, DeliverLetter(id=letter_id(agent.agent_id, due, now, LATE_US), letter=due.letter)) for due in dues
        ]
        settled: list[Event] = []
        for due, error in zip(dues, await self._send(orders), strict=True):
            if error is None:
                settled.append(_settled(due, None))
                continue
            if not _is_final(due, error, now):
                again.append((due, error))
                continue
            told = isinstance(due.letter, Letter) and due.letter.to_seq
            # The log says it in words for the agents and their users, so this is where the operator reads the cause.
            what = f"its background agent {due.to!r} cannot be told" if told else f"{due.to!r} cannot be written to"
            self._note(f"{agent.agent_id!r}: {what}: {error}")
            if isinstance(due.letter, Letter) and not told:
                lost.append((due, error))
            else:  # no turn is opened: that the background agent is gone concerns the operator, not the model
                settled.append(_settled(due, error))
        if settled:
            await agent.commit(settled, turn=agent.turn, step=0)

    def _made_retries(self) -> "Retries":
        from everlog.actors.postbox.retries import Retries

        self._retries = self._retries or Retries()
        return self._retries

    def _note_retries(self, agent_id: str, retries: "Retries", again: _Failures) -> None:
        """Plan the next attempts, and note those that an operator may have to do something about."""
        slow = [one for one in again if retries.plan(*one, self._clock.now())]
        if slow:
            due, error = slow[0]
            one = f"a message to {due.to!r} is"
            what = one if len(slow) == 1 else f"{len(slow)} messages, the first to {due.to!r}, are"
            self._note(f"{agent_id!r}: {what} tried again in a minute: {error}")

    def _made_known(self) -> "KnownLetters":
        from everlog.actors.postbox.known_letters import KnownLetters

        self._known = self._known or KnownLetters()
        return self._known

    async def take(self, agent: Agent, command: DeliverLetter, lock: asyncio.Lock) -> Record | None:
        """Append a letter of another agent as an input, and return its record; None if it is known, or waited for no
        more. `lock` is held so that one input is made at a time.
        """
        letter = command.letter
        async with lock:
            if isinstance(letter, Letter):
                known = self._made_known()
                if known.has(agent, letter.sent):
                    return None
                said, received = letter.input()
                record = await agent.receive(said, event_id=command.id, then=[received])
                known.add(letter.sent)
                return record
            row = open_question(await agent.messages(), letter.message)
            return None if row is None else await _ended(agent, letter, row, command.id)


async def _background(agent: Agent) -> Sequence[MessageRow]:
    """Return the row of `background`. Queries nothing if the agent has no background agent."""
    return await agent.rows("background") if agent.deriving.watched else ()


async def _used(agent: Agent, rows: Sequence[MessageRow]) -> dict[int, Mapping[str, Usage]]:
    """Return the tokens that answers took which are ready and whose questions carried budgets, by seq and by model."""
    ready = [row["seq"] for row in rows if row["state"] == "ready" and row["budgets"]]
    if not ready:
        return {}
    from everlog.actors.mail.inherited import used_for  # few agents have a budget

    return {seq: await used_for(agent, seq) for seq in ready}


async def _tell(agent: Agent, now: int) -> None:
    """Commit the messages to the background agent, if they are due at `now`, microseconds UTC."""
    for row in await _background(agent):
        if row["due_us"] is not None and row["due_us"] <= now:
            # Imported here: few agents have one in the background.
            from everlog.actors.mail.background import to_tell

            told = to_tell(agent.agent_id, row, agent.records(row["cursor"] + 1))
            await agent.commit(await agent.with_budgets(told), turn=0, step=0)


async def wait_end(agent: Agent, timer: str) -> tuple[UserMessage, Sequence[Event]] | None:
    """Return the input that ends a wait whose time is over, and the event behind it; None if the wait has ended.

    `timer`: name of the wait's timer.
    """
    row = open_question(await agent.messages(), int(timer.removeprefix(WAIT)))
    if row is None:
        return None
    said, reply = expired(row).input(row)
    return said, (reply,)


async def _ended(agent: Agent, letter: ReplyLetter, row: MessageRow, command_id: str | None = None) -> Record:
    said, reply = letter.input(row)
    return await agent.receive(said, event_id=command_id, then=[reply])


def _is_final(due: Due, error: EverlogError, now: int) -> bool:
    """Return True if a letter never arrives: its receiver does not exist, or it was tried for long enough."""
    return isinstance(error, UnknownAgent) or now - due.since > TRIED_US


def _settled(due: Due, error: EverlogError | None) -> AgentMessageSettled:
    done: MessageOutcome = "delivered" if isinstance(due.letter, Letter) else due.letter.outcome
    if error is None:
        return AgentMessageSettled(message=due.seq, outcome=done)
    return AgentMessageSettled(message=due.seq, outcome="undeliverable", text=why_undeliverable(due, error))

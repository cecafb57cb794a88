"""A rerun beside what it repeats: turn by turn, from the two logs alone. Pure.

Nothing here was noted while the rerun ran: the same report can be made of any agent and a fork of it, at any time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from everlog.actors.functions.tools import Tool
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.rerun.recorded_functions import ResultOrigin, is_refusal
from everlog.actors.rerun.recorded_past import RecordedResults, key_of, results_of
from everlog.actors.rerun.rerun_effects import usage_in
from everlog.events import (
    INPUTS,
    BlockRemoved,
    BudgetExceeded,
    FunctionResult,
    MemoryEdited,
    MessageSent,
    ModelFailed,
    ModelReply,
    Record,
    TurnAbandoned,
    TurnCancelled,
    event_of,
    is_erased,
)

MILLION = 1_000_000

TurnAspect = Literal["answers", "calls", "results", "memory", "end"]
"""What of a turn can differ; `end`: that it failed, or was ended."""


class TokenPrices(msgspec.Struct, frozen=True):
    """Money for a million tokens, of requests and of replies; both 0: not known."""

    sent: float = 0.0
    replied: float = 0.0

    @property
    def known(self) -> bool:
        """Whether there is a price."""
        return bool(self.sent or self.replied)


class FunctionCall(msgspec.Struct, frozen=True):
    """A call of a function, `send_message` excepted."""

    name: str
    arguments: str
    """The model's own JSON text."""
    outcome: Literal["ok", "failed", "unknown", "open"]
    result: str
    answered: ResultOrigin | None = None
    """Of a call in the fork: how it was answered; None then, and while it is open."""


class BlockDifference(msgspec.Struct, frozen=True):
    """A block of core memory that has another value after a turn."""

    label: str
    before: str
    after: str


class CallCosts(msgspec.Struct):
    """What model calls took."""

    steps: int = 0
    calls: int = 0
    """Of functions."""
    prompt: int = 0
    completion: int = 0
    tokens: int = 0
    latency_us: int = 0
    cost: float | None = None
    """Money, where prices are known."""

    def add(self, other: "CallCosts") -> None:
        """Take in what another took."""
        self.steps += other.steps
        self.calls += other.calls
        self.prompt += other.prompt
        self.completion += other.completion
        self.tokens += other.tokens
        self.latency_us += other.latency_us
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost


class TurnTrace(msgspec.Struct, frozen=True):
    """A turn as it went in one of the two."""

    seq: int
    """Of the input that opened it."""
    thoughts: Sequence[str]
    answers: Sequence[str]
    calls: Sequence[FunctionCall]
    memory: Sequence[BlockDifference]
    costs: CallCosts
    ended: str = ""
    """Why it ended before the agent was idle."""


class TurnPair(msgspec.Struct, frozen=True):
    """A turn, then and now; None on the side that does not have it."""

    turn: int
    input: str
    """Kind of the event that opened it."""
    said: str
    at: int
    """When it was opened then, microseconds UTC."""
    then: TurnTrace | None
    now: TurnTrace | None
    differs: Sequence[TurnAspect] = ()


class Divergence(msgspec.Struct, frozen=True):
    """Where the two first differ in what was said and done."""

    turn: int
    then_seq: int
    """Of the input that opened the turn then; 0: there was none."""
    now_seq: int
    parts: Sequence[TurnAspect]


class RerunComparison(msgspec.Struct, frozen=True):
    """An agent and its fork, from the cut on."""

    agent_id: str
    fork: str
    cut: int
    turns: Sequence[TurnPair]
    then: CallCosts
    now: CallCosts
    answered: Mapping[ResultOrigin, int]
    """Calls of the fork, by how they were answered."""
    diverged: Divergence | None


class TurnReader:
    """Reads turns out of the records of one side."""

    def __init__(
        self, blocks: Mapping[str, str], prices: TokenPrices, judged: "AnswerClassifier | None" = None
    ) -> None:
        """`blocks`: core memory at the cut, value by label; `judged`: how calls were answered, for the fork's side."""
        self._blocks = dict(blocks)
        self._prices = prices
        self._judge = judged

    def side(self, records: Sequence[Record]) -> TurnTrace:
        """A turn, of its records and those of step 0 before it."""
        opened = next(record for record in records if _opens(record))
        events = [event_of(record) for record in records]
        calls = self._calls(records)
        return TurnTrace(
            seq=opened.seq,
            thoughts=[e.text for e in events if isinstance(e, ModelReply) and e.text],
            answers=[e.text for e in events if isinstance(e, MessageSent)],
            calls=calls,
            memory=self._edits([e for e in events if isinstance(e, MemoryEdited | BlockRemoved)]),
            costs=self._costs(records, len(calls)),
            ended=next((e.text for e in events if isinstance(e, _ENDINGS)), ""),
        )

    def _calls(self, records: Sequence[Record]) -> list[FunctionCall]:
        made = []
        for _, name, text, result in results_of(records):
            if name == SEND_MESSAGE and (result is None or result.ok):
                continue
            answered = self._judge.answered(name, text, result) if self._judge else None
            made.append(FunctionCall(name, text, _outcome(result), "" if result is None else result.text, answered))
        return made

    def _edits(self, edits: Sequence[MemoryEdited | BlockRemoved]) -> list[BlockDifference]:
        before = dict(self._blocks)
        self._blocks |= {edit.label: edit.text or "" for edit in edits}
        labels = dict.fromkeys(edit.label for edit in edits)
        changed = [BlockDifference(label, before.get(label, ""), self._blocks[label]) for label in labels]
        return [edit for edit in changed if edit.before != edit.after]

    def _costs(self, records: Sequence[Record], calls: int) -> CallCosts:
        costs = CallCosts(calls=calls)
        for record in records:
            prompt, completion, tokens, latency_us = usage_in(record)
            costs.steps += record.type == ModelReply.kind
            costs.prompt += prompt
            costs.completion += completion
            costs.tokens += tokens
            costs.latency_us += latency_us
        if self._prices.known:
            sent = max(costs.tokens - costs.completion, 0)
            costs.cost = (sent * self._prices.sent + costs.completion * self._prices.replied) / MILLION
        return costs


_ENDINGS = ModelFailed | TurnAbandoned | TurnCancelled | BudgetExceeded


class AnswerClassifier:
    """Tells of calls of the fork, in their order, how they were answered."""

    def __init__(self, then: Sequence[Record], tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._results = RecordedResults()
        for _, name, text, result in results_of(then):
            if result is not None:
                self._results.add(key_of(tools.get(name), name, text), result)

    def answered(self, name: str, text: str, result: FunctionResult | None) -> ResultOrigin | None:
        """How this call was answered; None while it has no result."""
        if result is None:
            return None
        tool = self._tools.get(name)
        if tool is None or tool.effect == "pure":
            return "own"
        then = self._results.take(key_of(tool, name, text))
        if is_refusal(result):
            return "refused"
        return "recorded" if then is not None and (then.text, then.ok) == (result.text, result.ok) else "ran"


class ForkComparer:
    """Compares a fork with its parent, turn by turn, in order."""

    def __init__(
        self,
        then: Sequence[Record],
        *,
        blocks: Mapping[str, str],
        changed: Mapping[str, str],
        tools: Mapping[str, Tool],
        prices: TokenPrices,
    ) -> None:
        """`then`: the parent's records after the cut; `blocks`: core memory there, by label.

        `changed`: values of blocks that the fork was given before its first turn. `tools`: all that either of them had.
        """
        self._then = TurnReader(blocks, prices)
        self._now = TurnReader({**blocks, **changed}, prices, AnswerClassifier(then, tools))
        self._turns = iter(by_turn(then).values())
        self.pairs: list[TurnPair] = []

    def turn(self, turn: int, now: Sequence[Record]) -> TurnPair:
        """The next turn of the fork, from its records, beside that of then: the one that came as many turns later."""
        mine, then = by_turn(now)[turn], next(self._turns, None)
        opened = next(record for record in (then or mine) if _opens(record))
        pair = TurnPair(
            turn, opened.type, opened.text or "", opened.recorded_at,
            None if then is None else self._then.side(then), self._now.side(mine),
        )  # fmt: skip
        self.pairs.append(msgspec.structs.replace(pair, differs=_differs(pair)))
        return self.pairs[-1]

    def whole(self, agent_id: str, fork: str, cut: int) -> RerunComparison:
        """All turns that were compared."""
        pairs = self.pairs
        return RerunComparison(
            agent_id, fork, cut, pairs, _sum(p.then for p in pairs), _sum(p.now for p in pairs), _count_origins(pairs),
            next((_diverged(pair) for pair in pairs if pair.differs), None),
        )  # fmt: skip


def by_turn(records: Sequence[Record]) -> dict[int, list[Record]]:
    """The records of each turn that was opened among these, by its number, in order; not where its input was erased."""
    turns: dict[int, list[Record]] = defaultdict(list)
    opened = {record.turn for record in records if _opens(record)}
    for record in records:
        if record.turn in opened and (record.step or _opens(record)):
            turns[record.turn].append(record)
    return dict(sorted(turns.items()))


def _opens(record: Record) -> bool:
    if record.type not in INPUTS or record.step or not record.turn or is_erased(record.payload):
        return False
    return not getattr(event_of(record), "imported", False)


def _outcome(result: FunctionResult | None) -> Literal["ok", "failed", "unknown", "open"]:
    if result is None:
        return "open"
    return "unknown" if result.unknown else "ok" if result.ok else "failed"


def _differs(pair: TurnPair) -> list[TurnAspect]:
    """What of a turn is not as it was."""
    if pair.then is None or pair.now is None:
        return ["answers"]
    then, now = pair.then, pair.now
    same: dict[TurnAspect, bool] = {
        "answers": then.answers == now.answers,
        "calls": [(c.name, c.arguments) for c in then.calls] == [(c.name, c.arguments) for c in now.calls],
        "results": [(c.outcome, c.result) for c in then.calls] == [(c.outcome, c.result) for c in now.calls],
        "memory": [(e.label, e.after) for e in then.memory] == [(e.label, e.after) for e in now.memory],
        "end": then.ended == now.ended,
    }
    return [part for part, equal in same.items() if not equal]


def _diverged(pair: TurnPair) -> Divergence:
    seqs = [0 if side is None else side.seq for side in (pair.then, pair.now)]
    return Divergence(pair.turn, seqs[0], seqs[1], pair.differs)


def _sum(sides: Iterable[TurnTrace | None]) -> CallCosts:
    total = CallCosts()
    for side in sides:
        if side is not None:
            total.add(side.costs)
    return total


def _count_origins(pairs: Sequence[TurnPair]) -> dict[ResultOrigin, int]:
    counts: dict[ResultOrigin, int] = {"own": 0, "recorded": 0, "ran": 0, "refused": 0}
    for pair in pairs:
        for call in pair.now.calls if pair.now is not None else ():
            if call.answered is not None:
                counts[call.answered] += 1
    return counts

"""Compare a rerun with the record, turn by turn, from the two logs alone. Pure.

A rerun notes nothing while it runs: the same report can be made of any agent and a fork of it, at any time. Used by
`rerun.py`, and shown by `everlog rerun`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
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
from everlog.events.times import moment

MILLION = 1_000_000
"""Number of tokens that a price is for."""

TurnAspect = Literal["answers", "calls", "results", "memory", "end"]
"""Part of a turn that can differ. `end`: the turn failed, or was ended early."""


class TokenPrices(msgspec.Struct, frozen=True):
    """Prices of a million tokens of requests and of replies; both 0: unknown."""

    sent: float = 0.0
    replied: float = 0.0

    @property
    def known(self) -> bool:
        """True if there is a price."""
        return bool(self.sent or self.replied)


class FunctionCall(msgspec.Struct, frozen=True):
    """One function call. Successful calls of `send_message` are answers, and not listed as calls."""

    name: str
    arguments: str
    """JSON text as the model wrote it."""
    outcome: Literal["ok", "failed", "unknown", "open"]
    result: str
    answered: ResultOrigin | None = None
    """Origin of the result of a call in the fork; None for the parent, and for a call without a result."""


class BlockDifference(msgspec.Struct, frozen=True):
    """Memory block that has another value after a turn."""

    label: str
    before: str
    after: str


class CallCosts(msgspec.Struct):
    """Tokens, calls and time of one turn or several."""

    steps: int = 0
    calls: int = 0
    """Number of function calls."""
    prompt: int = 0
    completion: int = 0
    tokens: int = 0
    latency_us: int = 0
    cost: float | None = None
    """Amount of money; None if there are no prices."""

    def add(self, other: "CallCosts") -> None:
        """Add the costs of another turn."""
        self.steps += other.steps
        self.calls += other.calls
        self.prompt += other.prompt
        self.completion += other.completion
        self.tokens += other.tokens
        self.latency_us += other.latency_us
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost


class TurnTrace(msgspec.Struct, frozen=True):
    """One turn in the parent or in the fork."""

    seq: int
    """Seq of the input that opened the turn."""
    thoughts: Sequence[str]
    answers: Sequence[str]
    calls: Sequence[FunctionCall]
    memory: Sequence[BlockDifference]
    costs: CallCosts
    ended: str = ""
    """Reason for which the turn ended before the agent was idle; empty if there is none."""


class TurnPair(msgspec.Struct, frozen=True):
    """One turn as recorded in the parent (`baseline`) and in the fork (`variant`); None on the side that lacks it."""

    turn: int
    input: str
    """Type of the event that opened the turn."""
    said: str
    at: int
    """Time at which the turn was opened in the parent, microseconds UTC."""
    baseline: TurnTrace | None
    variant: TurnTrace | None
    differs: Sequence[TurnAspect] = ()

    @property
    def time(self) -> datetime:
        """Time at which the turn was opened in the parent, UTC."""
        return moment(self.at)


class Divergence(msgspec.Struct, frozen=True):
    """First turn that differs in the parent and the fork."""

    turn: int
    baseline_seq: int
    """Seq of the input that opened the turn in the parent; 0: the parent has no such turn."""
    variant_seq: int
    parts: Sequence[TurnAspect]


class RerunComparison(msgspec.Struct, frozen=True):
    """Comparison of an agent with its fork, from the fork point on."""

    agent_id: str
    fork: str
    cut: int
    turns: Sequence[TurnPair]
    baseline: CallCosts
    variant: CallCosts
    answered: Mapping[ResultOrigin, int]
    """Number of the fork's calls, by the origin of their results."""
    diverged: Divergence | None


class TurnReader:
    """Reader of turns from the records of one side. It keeps the memory blocks as of the last turn read."""

    def __init__(
        self, blocks: Mapping[str, str], prices: TokenPrices, judged: "AnswerClassifier | None" = None
    ) -> None:
        """Begin at the fork point. `blocks`: core memory there, value by label. `judged`: finds the origin of results,
        for the fork's side.
        """
        self._blocks = dict(blocks)
        self._prices = prices
        self._judge = judged

    def side(self, records: Sequence[Record]) -> TurnTrace:
        """Return one turn, from its input and the records of its steps."""
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
    """Classifier of the fork's calls by the origin of their results. It must be given the calls in their order."""

    def __init__(self, then: Sequence[Record], tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._results = RecordedResults()
        for _, name, text, result in results_of(then):
            if result is not None:
                self._results.add(key_of(tools.get(name), name, text), result)

    def answered(self, name: str, text: str, result: FunctionResult | None) -> ResultOrigin | None:
        """Return the origin of this call's result; None while there is no result."""
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
    """Comparison of a fork with its parent, turn by turn, in order."""

    def __init__(
        self,
        then: Sequence[Record],
        *,
        blocks: Mapping[str, str],
        changed: Mapping[str, str],
        tools: Mapping[str, Tool],
        prices: TokenPrices,
    ) -> None:
        """Begin at the fork point. `then`: the parent's records after it; `blocks`: core memory there, by label.

        `changed`: values of blocks that the fork was given before its first turn. `tools`: all functions of both sides.
        """
        self._then = TurnReader(blocks, prices)
        self._now = TurnReader({**blocks, **changed}, prices, AnswerClassifier(then, tools))
        self._turns = iter(by_turn(then).values())
        self.pairs: list[TurnPair] = []

    def turn(self, turn: int, now: Sequence[Record]) -> TurnPair:
        """Return the fork's next turn, from the fork's records, paired with the parent's next turn. Turns are paired by
        their order, not by their number.
        """
        mine, then = by_turn(now)[turn], next(self._turns, None)
        opened = next(record for record in (then or mine) if _opens(record))
        pair = TurnPair(
            turn, opened.type, opened.text or "", opened.recorded_at,
            None if then is None else self._then.side(then), self._now.side(mine),
        )  # fmt: skip
        self.pairs.append(msgspec.structs.replace(pair, differs=_differs(pair)))
        return self.pairs[-1]

    def whole(self, agent_id: str, fork: str, cut: int) -> RerunComparison:
        """Return the comparison of all turns that were compared so far."""
        pairs = self.pairs
        return RerunComparison(
            agent_id, fork, cut, pairs, _sum(p.baseline for p in pairs), _sum(p.variant for p in pairs),
            _count_origins(pairs), next((_diverged(pair) for pair in pairs if pair.differs), None),
        )  # fmt: skip


def by_turn(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Group records by the turns that were opened among them, in order. A turn whose input was erased is left out."""
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
    """Return the parts in which the turn differs from the recorded one."""
    if pair.baseline is None or pair.variant is None:
        return ["answers"]
    then, now = pair.baseline, pair.variant
    same: dict[TurnAspect, bool] = {
        "answers": then.answers == now.answers,
        "calls": [(c.name, c.arguments) for c in then.calls] == [(c.name, c.arguments) for c in now.calls],
        "results": [(c.outcome, c.result) for c in then.calls] == [(c.outcome, c.result) for c in now.calls],
        "memory": [(e.label, e.after) for e in then.memory] == [(e.label, e.after) for e in now.memory],
        "end": then.ended == now.ended,
    }
    return [part for part, equal in same.items() if not equal]


def _diverged(pair: TurnPair) -> Divergence:
    seqs = [0 if side is None else side.seq for side in (pair.baseline, pair.variant)]
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
        for call in pair.variant.calls if pair.variant is not None else ():
            if call.answered is not None:
                counts[call.answered] += 1
    return counts

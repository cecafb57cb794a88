"""Time, ids and models of a rerun: the present ones, or those of the record.

The time is that of then in both: an input comes at the moment at which it came, and time goes on from there. What the
model is told of days and hours is what it was told then.
"""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.formats import render_request
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.effects import NOTHING, Clock, DeltaCallback, Ids, ModelResponse, Spent
from everlog.actors.prompt.context import Context, context_of, of_turn
from everlog.actors.prompt.context_fit import transcript_bytes_max
from everlog.actors.rerun.recorded_past import ExternalInput, RecordedPast
from everlog.events import (
    MODEL_CALLS,
    BadReply,
    BudgetExceeded,
    ContextOverflow,
    ContextTrimmed,
    FunctionStarted,
    ModelError,
    ModelFailed,
    ModelReply,
    OverBudget,
    Record,
    ReplyRejected,
    Summary,
    event_of,
    is_erased,
    upcast_record,
)

MEANWHILE = ("input", "by_hand")
"""Kinds of acts that may be done while the agent is at work."""

RecordedCall = ModelReply | ReplyRejected | ModelFailed | Summary

DIFFERENCE_LINES_MAX = 60
"""Lines of a difference between two requests that are kept."""


class RerunDiverged(ModelError):
    """A rerun that goes by recorded replies came to a request that is not the one of then."""

    def __init__(self, seq: int, text: str, difference: Sequence[str] = ()) -> None:
        where = f"diverged at seq {seq}: " if seq else "diverged: "
        super().__init__(f"{where}{text}", kind="diverged", attempts=0)
        self.seq = seq
        self.difference = list(difference)


RecordShape = tuple[str, int, int, int | None, str, Mapping[str, Any]]
"""Type, turn, step, when it was said, words, and the other fields."""

_SEQS = ("covers_from", "covers_to", "kept_from", "summary_seq", "target_seq")


def shape_of(record: Record, then: Callable[[int], int] = int) -> RecordShape:
    """What a record says, and where: all but its ids and times, its number, and keys, which are of one agent.

    `recorded_seq` tells which number a record had that it names.
    """
    payload = msgspec.json.decode(upcast_record(record).payload)
    payload.pop("parts", None)  # of a request, which is known by its sha256
    payload |= {name: then(payload[name]) for name in _SEQS if payload.get(name)}
    if record.type == FunctionStarted.kind:
        payload.pop("key", None)
    words = "" if record.type == ContextTrimmed.kind else record.text or ""  # they name a record, as a field does
    return record.type, record.turn, record.step, record.said_at, words, payload


def _difference_text(then: Record | None, now: Record) -> str:
    if then is None:
        return f"{now.type} was written, and nothing was then"
    if then.type != now.type:
        return f"{now.type} was written, and {then.type} was then"
    return f"{now.type} is another one: {now.text or now.payload!r}, and then {then.text or then.payload!r}"


class RerunAgent(Protocol):
    """What is needed of the agent that runs again."""

    agent_id: str
    head: int
    model_name: str
    schemas: Mapping[str, str]

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...


class RerunClock:
    """The clock of a rerun with a live model: put to the moment of an input, it goes on as the real one does."""

    def __init__(self, real: Clock, start: int) -> None:
        self._real = real
        self._ahead = start - real.now()

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return self._real.now() + self._ahead

    def put(self, at: int) -> None:
        """Go on from `at`, unless it is later than that already."""
        now = self._real.now()
        self._ahead = max(self._ahead, at - now)


class RecordedScript:
    """The record as what the fork is to write: its place in it, and with it the times and ids of then.

    A `Clock` and an `Ids`: record for record, what the fork writes next is written when, and under the id that, it was.
    """

    def __init__(self, past: RecordedPast, clock: Clock, ids: Ids) -> None:
        self.past = past
        self._clock, self._ids = clock, ids
        self._agent: RerunAgent | None = None
        self._base = 0
        """Seq of the fork's last record before it begins."""
        self._given = (0, 0)
        """At which head of the fork ids were given last, and how many."""
        self._acts = {act.index: act for act in past.acts}
        self.renumbered: dict[str, tuple[str, int]] = {}
        """Requests that differ from those of then in the numbers of records alone: by sha256, sha256 and bytes of then.
        """
        self.fault: RerunDiverged | None = None
        """The first record of the fork that is not that of then."""

    def begin(self, agent: RerunAgent) -> None:
        """What the fork writes from now on is what the record holds."""
        self._agent, self._base = agent, agent.head

    @property
    def place(self) -> int:
        """How many records of then have been written again."""
        return 0 if self._agent is None else self._agent.head - self._base

    @property
    def record(self) -> Record | None:
        """The record that comes next; None at the end."""
        return self._at(self.place)

    @property
    def act(self) -> ExternalInput | None:
        """What was done next; None where the next record followed from others."""
        return self._acts.get(self.place)

    @property
    def after_acts(self) -> Record | None:
        """The next record that is not of an act which may be done while a call is under way."""
        place = self.place
        while place in self._acts and self._acts[place].kind in MEANWHILE:
            place += len(self._acts[place].records)
        return self._at(place)

    def _at(self, place: int) -> Record | None:
        return self.past.records[place] if place < len(self.past.records) else None

    def now(self) -> int:
        """When the next record was written."""
        records = self.past.records
        return records[min(self.place, len(records) - 1)].recorded_at

    def new(self, at: int) -> str:
        """The id of the next record; a fresh one before the beginning and after the end."""
        head = 0 if self._agent is None else self._agent.head
        given = self._given[1] if self._given[0] == head else 0
        self._given = (head, given + 1)
        record = None if self._agent is None else self._at(self.place + given)
        return self._ids.new(self._clock.now()) if record is None else record.event_id

    def written(self, records: Sequence[Record]) -> None:
        """Compare what the fork wrote with what was written then. The first that differs is the fault."""
        for record in records if self._agent is not None and self.fault is None else ():
            then = self._at(record.seq - self._base - 1)
            if then is None or self.shape(record) != shape_of(then):
                self.fault = RerunDiverged(0 if then is None else then.seq, _difference_text(then, record))
                return

    def shape(self, record: Record) -> RecordShape:
        """What a record of the fork says, with the seqs that its records had then."""
        shape = shape_of(record, self.recorded_seq)
        known = self.renumbered.get(shape[-1].get("context_sha256", ""))
        if known is None:
            return shape
        return (*shape[:-1], {**shape[-1], "context_sha256": known[0], "context_bytes": known[1]})

    def recorded_seq(self, seq: int) -> int:
        """Which seq a record of the fork had then."""
        record = self._at(seq - self._base - 1) if seq > self._base else None
        return seq if record is None else record.seq


class RecordedModel:
    """The model of a rerun by recorded replies: it says what was said then to the same request, and nothing else."""

    name = "recorded"

    def __init__(
        self,
        script: RecordedScript,
        request_of: Callable[[Record, RecordedCall], bytes],
        meanwhile: Callable[[], Awaitable[None]],
    ) -> None:
        """`request_of` renders the request of a recorded call again; `meanwhile` does what was done while it ran."""
        self._script = script
        self._request_of = request_of
        self._meanwhile = meanwhile
        self.agent: RerunAgent | None = None

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """The recorded reply to exactly this request. Raises Diverged, and the ModelError that it ended with then."""
        if self._script.fault is not None:
            raise self._script.fault
        record = self._script.after_acts
        event = None if record is None else event_of(record)
        if record is None or not isinstance(event, (*MODEL_CALLS, BudgetExceeded)):
            gone = record is not None and is_erased(record.payload)
            said = "what came of the request was erased" if gone else "no request was sent there then"
            raise RerunDiverged(0 if record is None else record.seq, said)
        if not isinstance(event, BudgetExceeded) and not await self._is_same(request, record, event):
            then = self._request_of(record, event)
            raise RerunDiverged(record.seq, "the request is another one", difference(then, request))
        await self._meanwhile()
        return answer_of(event)

    async def close(self) -> None:
        """Nothing is held."""

    async def _is_same(self, request: bytes, record: Record, event: RecordedCall) -> bool:
        """Whether the request is that of then, or would be if the records had the numbers that they had then."""
        if render_request.sha256(request) == event.context_sha256:
            return True
        assert self.agent is not None
        rows = await self.agent.rows("context_window")
        context = renumbered(
            of_turn(context_of(self.agent.agent_id, self.agent.head, rows), record.turn), self._script.recorded_seq
        )
        if render_request.sha256(rendered(context, self.agent.schemas, event)) != event.context_sha256:
            return False
        self._script.renumbered[render_request.sha256(request)] = event.context_sha256, event.context_bytes
        return True


def rendered(context: Context, schemas: Mapping[str, str], event: RecordedCall) -> bytes:
    """The request of a call in this context: for a reply, or for a summary."""
    if isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary"):
        return render_request.summary_request(context, event.covers_to, event.words, transcript_bytes_max(context))
    return render_request.request(context, schemas)


def renumbered(context: Context, then: Callable[[int], int]) -> Context:
    """The context with the seqs that its records had then."""
    replace = msgspec.structs.replace
    return replace(
        context,
        blocks=[replace(block, seq=then(block.seq)) for block in context.blocks],
        messages=[replace(message, seq=then(message.seq)) for message in context.messages],
        summary=None if context.summary is None else replace(context.summary, seq=then(context.summary.seq)),
        trims={then(key) if isinstance(key, int) else key: trim for key, trim in context.trims.items()},
    )


def answer_of(event: RecordedCall | BudgetExceeded) -> ModelResponse:
    """What came back then. Raises the ModelError that came instead."""
    match event:
        case BudgetExceeded():
            raise OverBudget(event.text, budget=event.budget, limit=event.limit, spent=event.spent)
        case ModelFailed() if event.raw:
            raise BadReply(event.text, event.raw, kind=event.failure)
        case ModelFailed():
            raise ModelError(event.text, kind=event.failure, attempts=event.attempts)
        case ReplyRejected() if not event.raw:
            raise ContextOverflow(event.text)
        case _:
            return ModelResponse(event.raw, event.latency_us)


def difference(then: bytes, now: bytes) -> list[str]:
    """Where two requests differ, as lines of a diff: `-` of then, `+` of now."""
    lines = difflib.unified_diff(_lines(then), _lines(now), "then", "now", lineterm="", n=1)
    found = [line for line in lines if not line.startswith(("---", "+++"))]
    more = len(found) - DIFFERENCE_LINES_MAX
    return [*found[:DIFFERENCE_LINES_MAX], f"... and {more} more lines"] if more > 0 else found


def _lines(request: bytes) -> list[str]:
    """A request, one fact in a line."""
    shape = msgspec.json.decode(request)
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in shape.items() if key not in _PARTS]
    for tool in shape.get("tools", ()):
        lines.append(f"function {msgspec.json.encode(tool).decode()}")
    for message in shape.get("messages", ()):
        said = message.get("content") or ""
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        lines += [f"{message['role']}: {line}" for line in str(said).split("\n")]
        lines += [f"{message['role']}: {msgspec.json.encode(rest).decode()}"] if rest else []
    return lines


_PARTS = ("messages", "tools")


def usage_in(record: Record) -> tuple[int, int, int, int]:
    """Tokens of request and reply, all tokens, and microseconds, that a record of a model call says it took."""
    event = event_of(record)
    if not isinstance(event, ModelReply | ReplyRejected | Summary):
        return 0, 0, 0, 0
    usage = event.usage
    if isinstance(event, ReplyRejected) and not usage.total and event.raw:
        usage = usage_of(event.raw)
    return usage.prompt, usage.completion, usage.total, event.latency_us

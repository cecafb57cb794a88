"""Supply time, ids and model of a rerun: either the live ones or the recorded ones.

The clock shows recorded time in both cases: an input arrives at its recorded moment, and time advances from there. So
the model reads the same dates and times as it did originally. Used by `rerun.py` and `rerun_driver.py`. Ids are given
in the order in which the agent asks: one more or one fewer id for a commit shifts all that follow in it.
"""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.formats import render_request
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.effects import NOTHING, Clock, DeltaCallback, Ids, ModelResponse, Spent
from everlog.actors.prompt.context import Context, context_of
from everlog.actors.prompt.context_fit import transcript_bytes_max
from everlog.actors.rerun.recorded_past import ExternalInput, RecordedPast
from everlog.events import (
    MODEL_CALLS,
    AgentMessageSent,
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

DURING_TURN_KINDS = ("input", "by_hand")
"""Kinds of external inputs that may arrive while the agent runs a turn."""

RecordedCall = ModelReply | ReplyRejected | ModelFailed | Summary
"""Event that a call of a model left in the log."""

DIFFERENCE_LINES_MAX = 60
"""Maximum lines kept of the difference between two requests."""


class RerunDiverged(ModelError):
    """Divergence of a rerun with recorded replies: a request or a record differs from the recorded one."""

    def __init__(self, seq: int, text: str, difference: Sequence[str] = ()) -> None:
        where = f"diverged at seq {seq}: " if seq else "diverged: "
        super().__init__(f"{where}{text}", kind="diverged", attempts=0)
        self.seq = seq
        self.difference = list(difference)


RecordShape = tuple[str, int, int, int | None, str, Mapping[str, Any]]
"""Type, turn, step, time at which it was said, text, and the other fields of a record."""

_SEQS = ("covers_from", "covers_to", "kept_from", "summary_seq", "target_seq", "request", "approval", "task")
"""Fields of events that name a record by its seq."""


def shape_of(record: Record, then: Callable[[int], int] = int) -> RecordShape:
    """Return the content and position of a record, for comparing. Left out are its ids, times, seq and keys, which
    differ between agents.

    `then` maps the seq of a record that is named in the content to its recorded seq.
    """
    payload = msgspec.json.decode(upcast_record(record).payload)
    payload.pop("parts", None)  # the fingerprints of a request: its sha256 identifies it
    if record.type == AgentMessageSent.kind:
        # The names end with the agent's own, which is the fork's, and a fork has used nothing of its budget yet.
        for name in ("hops", "waiting", "budgets"):
            payload.pop(name, None)
    payload |= {name: then(payload[name]) for name in _SEQS if payload.get(name)}
    if record.type == FunctionStarted.kind:
        payload.pop("key", None)
    words = "" if record.type == ContextTrimmed.kind else record.text or ""  # its text names a seq
    return record.type, record.turn, record.step, record.said_at, words, payload


def _difference_text(then: Record | None, now: Record) -> str:
    if then is None:
        return f"{now.type} was written, and nothing was then"
    if then.type != now.type:
        return f"{now.type} was written, and {then.type} was then"
    return f"{now.type} is another one: {now.text or now.payload!r}, and then {then.text or then.payload!r}"


class RerunAgent(Protocol):
    """Attributes and methods that a rerun needs of the fork."""

    agent_id: str
    head: int
    model_name: str
    schemas: Mapping[str, str]

    async def rows(
        self, name: str, as_of: int | None = None, turn: int | None = None
    ) -> Sequence[Mapping[str, Any]]: ...


class RerunClock:
    """Clock of a rerun with a live model: set to the recorded time of each input, it advances with the real clock."""

    def __init__(self, real: Clock, start: int) -> None:
        self._real = real
        self._ahead = start - real.now()

    def now(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        return self._real.now() + self._ahead

    def put(self, at: int) -> None:
        """Set the clock to `at`, unless it is later than that already: time never goes back."""
        now = self._real.now()
        self._ahead = max(self._ahead, at - now)


class RecordedScript:
    """Recorded events as the expected output of the fork: tracks the position, supplies recorded times and ids.

    As a `Clock` and an `Ids` it gives each record that the fork writes the time and the id of its recorded counterpart.
    """

    def __init__(self, past: RecordedPast, clock: Clock, ids: Ids) -> None:
        self.past = past
        self._clock, self._ids = clock, ids
        self._agent: RerunAgent | None = None
        self._base = 0
        """Seq of the fork's last record before the first one that is compared."""
        self._given = (0, 0)
        """Head of the fork when ids were last given, and the number of ids given since."""
        self._acts = {act.index: act for act in past.acts}
        self.renumbered: dict[str, tuple[str, int]] = {}
        """Requests that differ from the recorded ones in seqs alone:
        from their sha256 to the recorded sha256 and bytes.
        """
        self.fault: RerunDiverged | None = None
        """First difference of a record of the fork from its recorded counterpart."""

    def begin(self, agent: RerunAgent) -> None:
        """Compare the agent's records with the recorded ones from now on."""
        self._agent, self._base = agent, agent.head

    @property
    def place(self) -> int:
        """Number of recorded records that the fork has written again."""
        return 0 if self._agent is None else self._agent.head - self._base

    @property
    def record(self) -> Record | None:
        """Next recorded record; None at the end."""
        return self._at(self.place)

    @property
    def act(self) -> ExternalInput | None:
        """Next recorded input; None if the next record followed from others."""
        return self._acts.get(self.place)

    @property
    def after_inputs(self) -> Record | None:
        """Next record after the inputs that may be recorded while a call is in flight."""
        place = self.place
        while place in self._acts and self._acts[place].kind in DURING_TURN_KINDS:
            place += len(self._acts[place].records)
        return self._at(place)

    def _at(self, place: int) -> Record | None:
        return self.past.records[place] if place < len(self.past.records) else None

    def now(self) -> int:
        """Return the time at which the next record was recorded."""
        records = self.past.records
        return records[min(self.place, len(records) - 1)].recorded_at

    def new(self, at: int) -> str:
        """Return the recorded id of the next record; before the beginning and after the end, a fresh id."""
        head = 0 if self._agent is None else self._agent.head
        # A commit takes several ids before the head moves: the count since the last move selects the record.
        given = self._given[1] if self._given[0] == head else 0
        self._given = (head, given + 1)
        record = None if self._agent is None else self._at(self.place + given)
        return self._ids.new(self._clock.now()) if record is None else record.event_id

    def written(self, records: Sequence[Record]) -> None:
        """Compare records of the fork with their recorded counterparts. The first difference becomes `fault`."""
        for record in records if self._agent is not None and self.fault is None else ():
            then = self._at(record.seq - self._base - 1)
            if then is None or self.shape(record) != shape_of(then):
                self.fault = RerunDiverged(0 if then is None else then.seq, _difference_text(then, record))
                return

    def shape(self, record: Record) -> RecordShape:
        """Return the content of a record of the fork, with recorded seqs in place of the fork's own."""
        shape = shape_of(record, self.recorded_seq)
        known = self.renumbered.get(shape[-1].get("context_sha256", ""))
        if known is None:
            return shape
        return (*shape[:-1], {**shape[-1], "context_sha256": known[0], "context_bytes": known[1]})

    def recorded_seq(self, seq: int) -> int:
        """Return the recorded seq of a record of the fork."""
        record = self._at(seq - self._base - 1) if seq > self._base else None
        return seq if record is None else record.seq


class RecordedModel:
    """Model of a rerun with recorded replies:
    it returns the recorded reply to an identical request, and nothing else.
    """

    name = "recorded"

    def __init__(
        self,
        script: RecordedScript,
        request_of: Callable[[Record, RecordedCall], bytes],
        meanwhile: Callable[[], Awaitable[None]],
    ) -> None:
        """Replay `script`. `request_of` renders the request of a recorded call again; `meanwhile` applies the inputs
        that were recorded during the call.
        """
        self._script = script
        self._request_of = request_of
        self._meanwhile = meanwhile
        self.agent: RerunAgent | None = None

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Return the recorded reply to exactly this request.

        Raise RerunDiverged if the request is not the recorded one,
        or the ModelError with which the recorded call ended.
        """
        if self._script.fault is not None:
            raise self._script.fault
        record = self._script.after_inputs
        event = None if record is None else event_of(record)
        if record is None or not isinstance(event, (*MODEL_CALLS, BudgetExceeded)):
            gone = record is not None and is_erased(record.payload)
            said = "what came of the request was erased" if gone else "no request was sent there then"
            raise RerunDiverged(0 if record is None else record.seq, said)
        # A refusal for the budget records no request, so there is nothing to compare.
        if not isinstance(event, BudgetExceeded) and not await self._is_same(request, record, event):
            then = self._request_of(record, event)
            raise RerunDiverged(record.seq, "the request is another one", difference(then, request))
        await self._meanwhile()
        return answer_of(event)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    async def _is_same(self, request: bytes, record: Record, event: RecordedCall) -> bool:
        """Return True if the request is the recorded one, or would be with recorded seqs in place of the fork's own."""
        if render_request.sha256(request) == event.context_sha256:
            return True
        assert self.agent is not None
        rows = await self.agent.rows("context_window", turn=record.turn)
        context = renumbered(
            context_of(self.agent.agent_id, self.agent.head, rows, record.turn), self._script.recorded_seq
        )
        if render_request.sha256(rendered(context, self.agent.schemas, event)) != event.context_sha256:
            return False
        self._script.renumbered[render_request.sha256(request)] = event.context_sha256, event.context_bytes
        return True


def rendered(context: Context, schemas: Mapping[str, str], event: RecordedCall) -> bytes:
    """Render the request of a call in this context: for a reply or for a summary."""
    if isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary"):
        return render_request.summary_request(context, event.covers_to, event.words, transcript_bytes_max(context))
    return render_request.request(context, schemas)


def renumbered(context: Context, then: Callable[[int], int]) -> Context:
    """Return the context with recorded seqs in place of the fork's own."""
    replace = msgspec.structs.replace
    return replace(
        context,
        blocks=[replace(block, seq=then(block.seq)) for block in context.blocks],
        messages=[replace(message, seq=then(message.seq)) for message in context.messages],
        summary=None if context.summary is None else replace(context.summary, seq=then(context.summary.seq)),
    )


def answer_of(event: RecordedCall | BudgetExceeded) -> ModelResponse:
    """Return the recorded answer. Raise the recorded ModelError if the call failed."""
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
    """Return the differences of two requests as lines of a diff: `-` recorded, `+` now."""
    lines = difflib.unified_diff(_lines(then), _lines(now), "then", "now", lineterm="", n=1)
    found = [line for line in lines if not line.startswith(("---", "+++"))]
    more = len(found) - DIFFERENCE_LINES_MAX
    return [*found[:DIFFERENCE_LINES_MAX], f"... and {more} more lines"] if more > 0 else found


def _lines(request: bytes) -> list[str]:
    """Split a request into lines with one fact each."""
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
"""Parts of a request that `_lines` shows in lines of their own."""


def usage_in(record: Record) -> tuple[int, int, int, int]:
    """Return the tokens of request and reply, all tokens,
    and the latency in microseconds that a model call recorded.
    """
    event = event_of(record)
    if not isinstance(event, ModelReply | ReplyRejected | Summary):
        return 0, 0, 0, 0
    usage = event.usage
    if isinstance(event, ReplyRejected) and not usage.total and event.raw:
        usage = usage_of(event.raw)
    return usage.prompt, usage.completion, usage.total, event.latency_us

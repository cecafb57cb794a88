"""Build a typed context from the rows of `context_window`: exactly what the model sees before a call. Pure.

Used by `model_step.py`, `agent_view.py` and the calling formats, and by `actors/replay`, which builds each recorded
context again: raise `agent_constants.RENDERER` if the same rows give another request.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, cast

import msgspec

from everlog.actors.ports.agent_constants import (
    SCHEMA_SHARE,
    TOKENS_PER_BYTE,
    TOKENS_PER_BYTE_MAX,
    TOKENS_PER_BYTE_MIN,
    TOKENS_PER_BYTE_OF,
)
from everlog.events import (
    AgentConfigured,
    AnyEvent,
    ContextTrimmed,
    MemoryEdited,
    MessageSent,
    ModelReply,
    ModelSwitched,
    ReplyRejected,
    ReplyRethought,
    Summary,
    SummaryExpanded,
    SystemAlert,
    TurnsHidden,
    UnknownEvent,
    UserMessage,
    decode,
)


class ContextMessage(msgspec.Struct, frozen=True):
    """One record that the context shows."""

    seq: int
    turn: int
    step: int
    at: int
    """Time of the message as far as known, else of the record: microseconds UTC."""
    event: AnyEvent


class MemoryBlock(msgspec.Struct, frozen=True):
    """One block of core memory."""

    label: str
    value: str
    limit: int
    """Limit in characters, inclusive."""
    seq: int
    description: str = ""
    read_only: bool = False
    origin: str = ""
    """Shared block that this block copies; empty: the agent's own block."""
    origin_version: int = 0


class Context(msgspec.Struct, frozen=True):
    """Everything that a request is made of. Two equal contexts give the same bytes."""

    agent_id: str
    as_of: int
    config: AgentConfigured
    blocks: Sequence[MemoryBlock]
    """persona, human, then the others by label."""
    summary: ContextMessage | None
    """Newest Summary or SummaryExpanded."""
    messages: Sequence[ContextMessage]
    """In order of turn, then seq."""
    trims: Mapping[int | str, ContextTrimmed]
    """Records (by seq) and blocks (by label) that are shown truncated."""
    recall: int
    archival: int
    modified_at: int
    """Time of the last change of core memory, summary or configuration, microseconds UTC."""
    last_reply: ModelReply | None
    """Newest reply of the log, even if its turn is excluded: it gives the tokens per byte of a request."""
    switches: Mapping[int, ModelSwitched] = {}
    """Switches by turn: the model that replaces the agent's own, or the one for summaries."""
    refusals: Sequence[ContextMessage] = ()
    """Rejected replies that are shown to the model."""
    turn: int = 0
    """Turn of the call; 0: none."""
    switched_at: Mapping[int, int] = {}
    """Seq of the switch, by turn."""
    configured_at: int = 0
    """Seq of the configuration."""
    reply_place: tuple[int, int] = (0, 0)
    """Seq and turn of the newest reply."""

    @property
    def model(self) -> str:
        """Name of the model that is called."""
        return self.switches[self.turn].to if self.turn in self.switches else self.config.model

    @property
    def summarizer(self) -> str:
        """Name of the model that is called for a summary."""
        return self.model if self.turn in self.switches else self.config.summarizer or self.model

    @property
    def refused(self) -> ContextMessage | None:
        """Newest rejected reply, if nothing followed it in the turn: the next reply answers it."""
        last = self.refusals[-1] if self.refusals else None
        if (
            last is None
            or last.turn != self.turn
            or any(m.seq > last.seq for m in self.messages if m.turn == self.turn)
        ):
            return None
        return last

    @property
    def warned(self) -> bool:
        """True if the agent was warned of memory pressure since the last summary, and the warning is in view."""
        since = self.summary.seq if self.summary else 0
        return any(is_warning(m.event) for m in self.messages if isinstance(m.event, SystemAlert) and m.seq > since)

    @property
    def tokens(self) -> int:
        """Tokens of the last call, as the provider counted them; 0 before the first."""
        return self.last_reply.usage.total if self.last_reply else 0

    @property
    def tokens_per_byte(self) -> float:
        """Tokens per byte of request in the newest call of the current model; an estimate before the first call.

        An impossible count, of more tokens than the window holds, is ignored.
        """
        for reply in self._own_replies():
            if reply.context_bytes and 0 < reply.usage.prompt <= self.config.window:
                return min(max(reply.usage.prompt / reply.context_bytes, TOKENS_PER_BYTE_MIN), TOKENS_PER_BYTE_MAX)
        return _tokens_per_byte_of(self.model) * (SCHEMA_SHARE if self.config.calling == "schema" else 1)

    def _own_replies(self) -> Iterator[ModelReply]:
        """Yield the known replies of the current model, newest first."""
        seq, turn = self.reply_place
        if self.last_reply is not None and self._is_own(self.last_reply, seq, turn):
            yield self.last_reply
        for message in reversed(self.messages):
            if isinstance(message.event, ModelReply) and self._is_own(message.event, message.seq, message.turn):
                yield message.event

    def _is_own(self, reply: ModelReply, seq: int, turn: int) -> bool:
        """Return True if a reply is of the current model: by the model that was recorded as asked, if that is known,
        else by the name that the endpoint reported.
        """
        if turn in self.switches and seq > self.switched_at[turn]:
            return self.switches[turn].to == self.model
        if seq > self.configured_at:
            return self.config.model == self.model
        return is_version(reply.model, self.model)


def is_version(named: str, model: str) -> bool:
    """Return True if an endpoint that reports the name `named` seems to serve `model`, or a version of it."""
    return bool(named) and named.rpartition("/")[2].startswith(model.rpartition("/")[2])


def _tokens_per_byte_of(model: str) -> float:
    """Return the tokens per byte of a model's family: the longest known name that the model's name begins with."""
    name = model.rpartition("/")[2].lower()
    fits = [family for family in TOKENS_PER_BYTE_OF if name.startswith(family)]
    return TOKENS_PER_BYTE_OF[max(fits, key=len)] if fits else TOKENS_PER_BYTE


def context_of(agent_id: str, as_of: int, rows: Sequence[Mapping[str, Any]]) -> Context:
    """Build the context from the rows of `context_window`, in the order of the log. The agent must be configured."""
    shown: list[ContextMessage] = []
    trims: dict[int | str, ContextTrimmed] = {}
    hidden: set[int] = set()
    rethought: dict[int, str] = {}
    switches: dict[int, ModelSwitched] = {}
    switched_at: dict[int, int] = {}
    refusals: list[ContextMessage] = []
    slots: dict[str, ContextMessage] = {}
    header = (0, 0, 0, 0)
    """Seq, recall, archival and time of the newest row that has them."""
    for seq, slot, show, kind, turn, step, at, said_at, version, text, payload, recall, archival in _columns(rows):
        if kind == _CONFIGURED:
            event = configuration_of(version, text, payload)
        else:
            event = decode(kind, version, text, payload)
        message = ContextMessage(seq, turn, step, at if said_at is None else said_at, event)
        if slot is not None:
            if recall is not None and seq > header[0]:
                header = (seq, recall, archival, at)
            if slot not in slots or seq >= slots[slot].seq:
                slots[slot] = message
        if kind not in _CHANGES or isinstance(event, UnknownEvent):
            if show:
                shown.append(message)
        elif isinstance(event, ContextTrimmed):
            trims[event.target_seq or event.label] = event
        elif isinstance(event, TurnsHidden):
            hidden.update(event.turns)
        elif isinstance(event, ReplyRethought):
            rethought[event.target_seq] = event.text
        elif isinstance(event, ModelSwitched):
            switches[turn], switched_at[turn] = event, seq
        elif isinstance(event, ReplyRejected):
            refusals.append(message)
    reply = slots.get("reply")
    return Context(
        agent_id=agent_id,
        as_of=as_of,
        config=cast("AgentConfigured", slots["config"].event),
        blocks=_blocks(slots),
        summary=slots.get("summary"),
        messages=_in_view(shown, hidden, rethought),
        trims=trims,
        recall=header[1],
        archival=header[2],
        modified_at=header[3],
        last_reply=cast("ModelReply", reply.event) if reply else None,
        switches=switches,
        refusals=refusals,
        switched_at=switched_at,
        configured_at=slots["config"].seq,
        reply_place=(reply.seq, reply.turn) if reply else (0, 0),
    )


_COLUMNS = (
    "seq", "slot", "shown", "type", "turn", "step", "recorded_at", "said_at", "version", "text", "payload", "recall",
    "archival",
)  # fmt: skip


def _columns(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[Any, ...]]:
    """Return the values of each row that `context_of` reads. A dict for each row would cost as much as all the rest."""
    from everlog.projections import Rows

    return rows.values(*_COLUMNS) if isinstance(rows, Rows) else map(itemgetter(*_COLUMNS), rows)


_CONFIGURED = AgentConfigured.kind
_CHANGES = frozenset(
    {ContextTrimmed.kind, TurnsHidden.kind, ReplyRethought.kind, ModelSwitched.kind, ReplyRejected.kind}
)
"""Kinds of records that change the context and are not messages themselves."""


@lru_cache(maxsize=256)
def configuration_of(version: int, text: str | None, payload: str) -> AnyEvent:
    """Decode a configuration; cached for all agents with the same setup, because prompt and schemas are large."""
    return decode(AgentConfigured.kind, version, text, payload)


def _in_view(
    messages: Sequence[ContextMessage], hidden: Collection[int], rethought: Mapping[int, str]
) -> list[ContextMessage]:
    """Return the messages in order, without those of `hidden` turns, and with replaced thoughts."""
    seen = [m for m in messages if m.turn not in hidden or is_imported(m.event)] if hidden else messages
    reworded = [_with_replaced_thought(m, rethought) for m in seen] if rethought else seen
    return sorted(reworded, key=attrgetter("turn"))  # stable: within a turn they stay in the order of seq


def _with_replaced_thought(message: ContextMessage, rethought: Mapping[int, str]) -> ContextMessage:
    text = rethought.get(message.seq)
    if text is None or not isinstance(message.event, ModelReply):
        return message
    return msgspec.structs.replace(message, event=msgspec.structs.replace(message.event, text=text))


def is_imported(event: AnyEvent) -> bool:
    """Return True for a message of an imported conversation, which belongs to no turn."""
    return isinstance(event, UserMessage | MessageSent) and event.imported


def is_warning(event: AnyEvent) -> bool:
    """Return True for a warning of memory pressure."""
    return isinstance(event, SystemAlert) and event.source == "memory_pressure"


def of_turn(context: Context, turn: int) -> Context:
    """Return the context of a call in `turn`, without inputs that wait for a later turn. After a switch of the model,
    the settings of the new model apply.
    """
    messages = context.messages
    if messages and messages[-1].turn > turn:
        messages = [m for m in messages if m.turn <= turn]
    config = config_of(context.config, context.switches.get(turn))
    return msgspec.structs.replace(context, config=config, messages=messages, turn=turn)


def config_of(config: AgentConfigured, switched: ModelSwitched | None) -> AgentConfigured:
    """Return the configuration of a turn, with the settings of the model switched to. `model` stays the agent's own."""
    if switched is None:
        return config
    return msgspec.structs.replace(
        config, calling=switched.calling, window=switched.window or config.window, sampling=switched.sampling,
        stream=switched.stream,
    )  # fmt: skip


def _blocks(slots: Mapping[str, ContextMessage]) -> list[MemoryBlock]:
    """Return the blocks in a stable order: persona, human, then the others by label."""
    first = {"persona": 0, "human": 1}
    blocks = [
        _block(message.event, message.seq) for message in slots.values() if isinstance(message.event, MemoryEdited)
    ]
    return sorted(blocks, key=lambda block: (first.get(block.label, 2), block.label))


def _block(edited: MemoryEdited, seq: int) -> MemoryBlock:
    return MemoryBlock(
        edited.label, edited.text, edited.limit, seq, edited.description, edited.read_only, edited.origin,
        edited.origin_version,
    )  # fmt: skip


def summary_of(context: Context) -> Summary | SummaryExpanded | None:
    """Return the summary that the context shows; None before the first, or if every summary was undone."""
    event = context.summary.event if context.summary else None
    return event if isinstance(event, Summary | SummaryExpanded) and event.text else None

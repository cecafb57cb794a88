"""Make a typed context of the rows of `context_window`: what the model sees before a call, and nothing more. Pure."""

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
    """When it was said, as far as known, else recorded: microseconds UTC."""
    event: AnyEvent


class MemoryBlock(msgspec.Struct, frozen=True):
    """One block of core memory."""

    label: str
    value: str
    limit: int
    """Characters, inclusive."""
    seq: int
    description: str = ""
    read_only: bool = False
    origin: str = ""
    """The shared block that it follows; empty: it is the agent's own."""
    origin_version: int = 0


class Context(msgspec.Struct, frozen=True):
    """Everything that a request is made of. Two equal contexts give the same bytes."""

    agent_id: str
    as_of: int
    config: AgentConfigured
    blocks: Sequence[MemoryBlock]
    """persona, human, then the others by label."""
    summary: ContextMessage | None
    """The newest Summary or SummaryExpanded."""
    messages: Sequence[ContextMessage]
    """In order of turn, then seq."""
    trims: Mapping[int | str, ContextTrimmed]
    """Records (by seq) and blocks (by label) that are shown cut."""
    recall: int
    archival: int
    modified_at: int
    """When core memory, summary or configuration last changed, microseconds UTC."""
    last_reply: ModelReply | None
    """The newest reply of the log, whether or not its turn is shown: what a byte of request costs is known from it."""
    switches: Mapping[int, ModelSwitched] = {}
    """By turn, what is asked in the place of the agent's own model, or of the one for summaries."""
    refusals: Sequence[ContextMessage] = ()
    """Replies that were refused and are shown to the model."""
    turn: int = 0
    """The turn that the call is of; 0: none."""
    switched_at: Mapping[int, int] = {}
    """By turn, the seq at which that was."""
    configured_at: int = 0
    """The seq of the configuration."""
    reply_place: tuple[int, int] = (0, 0)
    """Seq and turn of the newest reply."""

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.switches[self.turn].to if self.turn in self.switches else self.config.model

    @property
    def summarizer(self) -> str:
        """The model that is asked for a summary."""
        return self.model if self.turn in self.switches else self.config.summarizer or self.model

    @property
    def refused(self) -> ContextMessage | None:
        """The reply that was refused last, if nothing came after it in the turn: the next one answers it."""
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
        """The agent was warned of memory pressure since the last summary, and the warning is in view."""
        since = self.summary.seq if self.summary else 0
        return any(is_warning(m.event) for m in self.messages if isinstance(m.event, SystemAlert) and m.seq > since)

    @property
    def tokens(self) -> int:
        """Tokens of the last call, as the provider counted them; 0 before the first."""
        return self.last_reply.usage.total if self.last_reply else 0

    @property
    def tokens_per_byte(self) -> float:
        """What a byte of request cost in the newest call of the model that is asked; a guess before the first.

        A figure that cannot be, more tokens than the window holds, counts as none.
        """
        for reply in self._own_replies():
            if reply.context_bytes and 0 < reply.usage.prompt <= self.config.window:
                return min(max(reply.usage.prompt / reply.context_bytes, TOKENS_PER_BYTE_MIN), TOKENS_PER_BYTE_MAX)
        return _tokens_per_byte_of(self.model) * (SCHEMA_SHARE if self.config.calling == "schema" else 1)

    def _own_replies(self) -> Iterator[ModelReply]:
        """The replies of the model that is asked, as far as they are known, newest first."""
        seq, turn = self.reply_place
        if self.last_reply is not None and self._is_own(self.last_reply, seq, turn):
            yield self.last_reply
        for message in reversed(self.messages):
            if isinstance(message.event, ModelReply) and self._is_own(message.event, message.seq, message.turn):
                yield message.event

    def _is_own(self, reply: ModelReply, seq: int, turn: int) -> bool:
        """Whether a reply is of the model that is asked: by who was asked then, where that is known, else by its own
        word for itself.
        """
        if turn in self.switches and seq > self.switched_at[turn]:
            return self.switches[turn].to == self.model
        if seq > self.configured_at:
            return self.config.model == self.model
        return is_version(reply.model, self.model)


def is_version(named: str, model: str) -> bool:
    """Whether an endpoint that calls itself `named` seems to be `model`, or a version of it."""
    return bool(named) and named.rpartition("/")[2].startswith(model.rpartition("/")[2])


def _tokens_per_byte_of(model: str) -> float:
    """What a byte costs by the family of a model: by the longest name that it begins with."""
    name = model.rpartition("/")[2].lower()
    fits = [family for family in TOKENS_PER_BYTE_OF if name.startswith(family)]
    return TOKENS_PER_BYTE_OF[max(fits, key=len)] if fits else TOKENS_PER_BYTE


def context_of(agent_id: str, as_of: int, rows: Sequence[Mapping[str, Any]]) -> Context:
    """The context from the rows of `context_window`, in the order of the log. The agent must have been configured."""
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
    """What `context_of` reads of each row. A dict for each would cost as much as all the rest."""
    from everlog.projections import Rows

    return rows.values(*_COLUMNS) if isinstance(rows, Rows) else map(itemgetter(*_COLUMNS), rows)


_CONFIGURED = AgentConfigured.kind
_CHANGES = frozenset(
    {ContextTrimmed.kind, TurnsHidden.kind, ReplyRethought.kind, ModelSwitched.kind, ReplyRejected.kind}
)
"""Kinds of records that are heeded and are no messages themselves."""


@lru_cache(maxsize=256)
def configuration_of(version: int, text: str | None, payload: str) -> AnyEvent:
    """The configuration in a record, one for all agents that are set up alike: prompt and schemas are large."""
    return decode(AgentConfigured.kind, version, text, payload)


def _in_view(
    messages: Sequence[ContextMessage], hidden: Collection[int], rethought: Mapping[int, str]
) -> list[ContextMessage]:
    """The messages in order, without those of `hidden` turns, and replies as they were rethought."""
    seen = [m for m in messages if m.turn not in hidden or is_imported(m.event)] if hidden else messages
    told = [_reworded(m, rethought) for m in seen] if rethought else seen
    return sorted(told, key=attrgetter("turn"))  # they come by seq, and stay so within a turn


def _reworded(message: ContextMessage, rethought: Mapping[int, str]) -> ContextMessage:
    text = rethought.get(message.seq)
    if text is None or not isinstance(message.event, ModelReply):
        return message
    return msgspec.structs.replace(message, event=msgspec.structs.replace(message.event, text=text))


def is_imported(event: AnyEvent) -> bool:
    """Whether the words are of a past conversation that was taken in: they are of no turn."""
    return isinstance(event, UserMessage | MessageSent) and event.imported


def is_warning(event: AnyEvent) -> bool:
    """Whether the agent is warned of memory pressure."""
    return isinstance(event, SystemAlert) and event.source == "memory_pressure"


def of_turn(context: Context, turn: int) -> Context:
    """The context of a call in `turn`: inputs that wait for a later turn are not in it, and where another model is
    asked than the agent's own, it is called in its own way.
    """
    messages = context.messages
    if messages and messages[-1].turn > turn:
        messages = [m for m in messages if m.turn <= turn]
    config = config_of(context.config, context.switches.get(turn))
    return msgspec.structs.replace(context, config=config, messages=messages, turn=turn)


def config_of(config: AgentConfigured, switched: ModelSwitched | None) -> AgentConfigured:
    """The configuration by which a turn goes: how the model that is asked is called. `model` stays the agent's own."""
    if switched is None:
        return config
    return msgspec.structs.replace(
        config, calling=switched.calling, window=switched.window or config.window, sampling=switched.sampling,
        stream=switched.stream,
    )  # fmt: skip


def _blocks(slots: Mapping[str, ContextMessage]) -> list[MemoryBlock]:
    """Blocks in a stable order: persona, human, then the others by label."""
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
    """The summary that the context shows; None before the first, or when it was taken back to the beginning."""
    event = context.summary.event if context.summary else None
    return event if isinstance(event, Summary | SummaryExpanded) and event.text else None

"""Type the rows of `context_window`: exactly what the model sees before a call. Pure.

SQL decides which records are in view, in which order and words; this file decodes them, and folds nothing. Used by
`model_step.py`, `agent_view.py` and the calling formats, and by `actors/replay`, which builds each recorded context
again: raise `agent_constants.RENDERER` if the same rows give another request.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

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
    MemoryEdited,
    MessageSent,
    ModelReply,
    ModelSwitched,
    NewerFormat,
    ReplyRejected,
    RulesApplied,
    Summary,
    SummaryExpanded,
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
    shown_chars: int | None = None
    """Number of characters that are shown of its text and of the arguments of its calls; None: all."""


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
    shown_chars: int | None = None
    """Number of characters that are shown; None: all."""


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
    recall: int
    archival: int
    modified_at: int
    """Time of the last change of core memory, summary or configuration, microseconds UTC."""
    threshold: float
    """Tokens of one call above which the agent is warned of memory pressure."""
    warned: bool
    """True if the agent was warned of memory pressure since the last summary, and the warning is in view."""
    latest_reply: ContextMessage | None = None
    """Newest reply of the log, if it is not in view: it too gives the tokens per byte of a request."""
    switches: Mapping[int, ContextMessage] = {}
    """Switches to another model, by turn."""
    refused: ContextMessage | None = None
    """Newest rejected reply, if nothing followed it in the turn: the next reply answers it."""
    turn: int = 0
    """Turn of the call; 0: none."""
    configured_at: int = 0
    """Seq of the configuration."""
    rules: RulesApplied | None = None
    """Newest state of the rules about functions in the turn of the call; None: the turn begins, or has no rules."""

    @property
    def switch(self) -> ModelSwitched | None:
        """Switch to another model in the turn of the call; None: the agent's own model is called."""
        return switch_of(self.switches.get(self.turn))

    @property
    def model(self) -> str:
        """Name of the model that is called."""
        return self.switch.to if self.switch else self.config.model

    @property
    def summarizer(self) -> str:
        """Name of the model that is called for a summary."""
        return self.model if self.switch else self.config.summarizer or self.model

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
        newest = [self.latest_reply] if self.latest_reply is not None else []
        for message in (*newest, *reversed(self.messages)):
            if isinstance(message.event, ModelReply) and self._is_own(message.event, message.seq, message.turn):
                yield message.event

    def _is_own(self, reply: ModelReply, seq: int, turn: int) -> bool:
        """Return True if a reply is of the current model: by the model that was recorded as asked, if that is known,
        else by the name that the endpoint reported.
        """
        before = self.switches.get(turn)
        switched = switch_of(before)
        if before is not None and switched is not None and seq > before.seq:
            return switched.to == self.model
        if seq > self.configured_at:
            return self.config.model == self.model
        return is_version(reply.model, self.model)


def switch_of(message: ContextMessage | None) -> ModelSwitched | None:
    """Return the switch to another model that a row of `context_window` says; None if there is none."""
    return message.event if message is not None and isinstance(message.event, ModelSwitched) else None


def is_version(named: str, model: str) -> bool:
    """Return True if an endpoint that reports the name `named` seems to serve `model`, or a version of it."""
    return bool(named) and named.rpartition("/")[2].startswith(model.rpartition("/")[2])


def _tokens_per_byte_of(model: str) -> float:
    """Return the tokens per byte of a model's family: the longest known name that the model's name begins with."""
    name = model.rpartition("/")[2].lower()
    fits = [family for family in TOKENS_PER_BYTE_OF if name.startswith(family)]
    return TOKENS_PER_BYTE_OF[max(fits, key=len)] if fits else TOKENS_PER_BYTE


def context_of(agent_id: str, as_of: int, rows: Sequence[Mapping[str, Any]], turn: int = 0) -> Context:
    """Type the rows of `context_window`, in their order, for a call in `turn` (0: none). The agent must be configured.

    After a switch of the model, the settings of the new model apply.
    """
    blocks: list[MemoryBlock] = []
    messages: list[ContextMessage] = []
    switches: dict[int, ContextMessage] = {}
    single: dict[str, ContextMessage] = {}
    """The configuration, the summary, and the newest reply if it is not in view."""
    refused: ContextMessage | None = None
    rules: RulesApplied | None = None
    header = (0, 0, 0)
    threshold = 0.0
    columns, made = _columns(rows)
    for slot, is_message, seq, kind, in_turn, step, at, *shape, chars, recall, archival, gauge in columns:
        message = made.get(seq)
        if message is None:
            event = configuration_of(*shape) if slot == "config" else decode(kind, *shape)
            message = made[seq] = ContextMessage(seq, in_turn, step, at, event, chars)
        event = message.event
        if recall is not None:
            header = (recall, archival, at)
        if not is_message:
            if isinstance(event, MemoryEdited):
                blocks.append(_block(event, message))
            elif isinstance(event, RulesApplied):
                rules = event if in_turn == turn else None
            elif slot is not None:
                single[slot] = message
            if slot == "config":
                threshold = gauge
        elif isinstance(event, ModelSwitched):
            switches[in_turn] = message
            threshold = gauge if in_turn == turn else threshold
        elif isinstance(event, ReplyRejected):
            refused = message if in_turn == turn else None
        else:
            messages.append(message)
            refused = None
    config = single["config"].event
    if not isinstance(config, AgentConfigured):
        raise NewerFormat(
            f"{agent_id!r} was configured by a newer everlog, at seq {single['config'].seq}. Use that everlog."
        )
    return Context(
        agent_id=agent_id,
        as_of=as_of,
        config=config_of(config, switch_of(switches.get(turn))),
        blocks=blocks,
        summary=single.get("summary"),
        messages=messages,
        recall=header[0],
        archival=header[1],
        modified_at=header[2],
        threshold=threshold,
        warned=rows[0]["warned"],
        latest_reply=single.get("reply"),
        switches=switches,
        refused=refused,
        turn=turn,
        configured_at=single["config"].seq,
        rules=rules,
    )


def is_configured(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if rows of `context_window` have a configuration. Without one there is no context."""
    return bool(rows) and rows[0]["slot"] == "config"


_COLUMNS = (
    "slot", "message", "seq", "type", "turn", "step", "at", "version", "text", "payload", "shown_chars", "recall",
    "archival", "threshold",
)  # fmt: skip


def _columns(rows: Sequence[Mapping[str, Any]]) -> tuple[Iterable[tuple[Any, ...]], dict[int, ContextMessage]]:
    """Return the values of each row that `context_of` reads, and what was made of rows before, by seq. A dict for each
    row would cost as much as all the rest.
    """
    from everlog.projections import KeptRows, Rows

    if isinstance(rows, KeptRows):
        return rows.values(*_COLUMNS), rows.made
    return rows.values(*_COLUMNS) if isinstance(rows, Rows) else map(itemgetter(*_COLUMNS), rows), {}


@lru_cache(maxsize=256)
def configuration_of(version: int, text: str | None, payload: str) -> AnyEvent:
    """Decode a configuration; cached for all agents with the same setup, because prompt and schemas are large."""
    return decode(AgentConfigured.kind, version, text, payload)


def is_imported(event: AnyEvent) -> bool:
    """Return True for a message of an imported conversation, which belongs to no turn."""
    return isinstance(event, UserMessage | MessageSent) and event.imported


def config_of(config: AgentConfigured, switched: ModelSwitched | None) -> AgentConfigured:
    """Return the configuration of a turn, with the settings of the model switched to. `model` stays the agent's own."""
    if switched is None:
        return config
    return msgspec.structs.replace(
        config, calling=switched.calling, window=switched.window or config.window, sampling=switched.sampling,
        stream=switched.stream,
    )  # fmt: skip


def _block(edited: MemoryEdited, message: ContextMessage) -> MemoryBlock:
    return MemoryBlock(
        edited.label, edited.text, edited.limit, message.seq, edited.description, edited.read_only, edited.origin,
        edited.origin_version, message.shown_chars,
    )  # fmt: skip


def summary_of(context: Context) -> Summary | SummaryExpanded | None:
    """Return the summary that the context shows; None before the first, or if every summary was undone."""
    event = context.summary.event if context.summary else None
    return event if isinstance(event, Summary | SummaryExpanded) and event.text else None

"""Compare an agent at two moments, and name the event, turn and cause of each change. Pure.

Changes are found in the records between the two moments, in their order. If the first moment is the later one, the same
changes are reported as undone, with `before` and `after` exchanged. Used by `everlog diff` and `everlog configure`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.formats.render_request import numbered_messages
from everlog.actors.prompt.context import Context
from everlog.actors.rules import approval_rules, rule_checks
from everlog.events import (
    INPUTS,
    AgentConfigured,
    AnyEvent,
    ApprovalRule,
    FunctionRule,
    Record,
    Sampling,
    Section,
    Summary,
    SummaryExpanded,
    TurnsHidden,
    event_of,
)

SETTINGS = (
    "model", "window", "text", "preset", "zone", "renderer", "verify_first", "steps_max", "pressure_fraction",
    "summary_fraction", "keep_last", "sections", "calling", "stream", "sampling", "summarizer", "fallback",
    "first_attempts_max", "monologue_chars_max", "day_tokens_max", "day_cost_max",
    "deriver", "reflect_at", "rate_importance", "derive_blocks", "asks", "approvals", "approval_s", "rules",
    "labels", "members", "manager", "rounds", "answer_minutes", "background", "background_turns", "background_idle",
)  # fmt: skip
"""Fields of a configuration that are compared; `text` is the system prompt."""
OUTSIDE = frozenset({"agent_created", "agent_configured", "agent_moved", "agent_deleted", "records_erased"})
"""Types of records that belong to no turn, although their envelope has the number of the last turn."""
REPLIES = frozenset({"model_reply", "reply_rejected", "model_failed", "summary"})
"""Types of records that a model call left, with its tokens."""


class RecordReference(msgspec.Struct, frozen=True):
    """Reference to a record that explains another."""

    seq: int
    type: str
    text: str | None


class ChangeCause(msgspec.Struct, frozen=True):
    """Record that made a change, with its cause and its turn."""

    seq: int
    type: str
    turn: int
    """Number of the turn; 0 for none."""
    time: int
    """Time of the record, microseconds UTC."""
    cause: RecordReference | None
    """Record that it names as its cause; None if that record is further back than those read."""
    input: RecordReference | None
    """Input that opened its turn;
    None if that is the cause or the record itself, or further back than the records read.
    """


class ValueChange(msgspec.Struct, frozen=True):
    """Changed value of a memory block, or of a field of the configuration."""

    name: str
    before: Any
    after: Any
    """None on the side that has no value."""
    because: Sequence[ChangeCause]
    """Records in between that changed the value, in order. The last of them set the newer value."""


class MessageChange(msgspec.Struct, frozen=True):
    """Chat message that is in the context of one moment only, or whose text differs."""

    seq: int
    role: str
    text: str
    was: str | None
    """Former text, if the text differs."""
    because: ChangeCause | None


class BlockSnapshot(msgspec.Struct, frozen=True):
    """Memory block at a moment."""

    value: str
    limit: int
    description: str = ""
    read_only: bool = False


class AgentSnapshot(msgspec.Struct, frozen=True):
    """Agent at one moment, as its projections show it."""

    seq: int
    time: int
    context: Context | None
    """None if the agent was not configured yet, or the configuration was erased."""
    blocks: Mapping[str, BlockSnapshot]
    """By label."""
    recall: int
    archival: int
    tokens: int
    """Tokens of the last model call."""
    estimate: int
    """Estimated tokens of the next model call."""
    window: int


class ModelUsage(msgspec.Struct, frozen=True):
    """Usage of the model calls between the two moments."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    tokens: int = 0


class AgentDiff(msgspec.Struct, frozen=True):
    """All differences between two moments."""

    before: AgentSnapshot
    after: AgentSnapshot
    events: int
    turns: int
    """Number of turns that the records in between belong to."""
    memory: Sequence[ValueChange]
    settings: Sequence[ValueChange]
    functions_in: Sequence[str]
    functions_out: Sequence[str]
    shown_in: Sequence[MessageChange]
    shown_out: Sequence[MessageChange]
    reworded: Sequence[MessageChange]
    spent: ModelUsage

    @property
    def is_nothing(self) -> bool:
        """True if no part of the agent differs. There may be events in between all the same."""
        counts = [
            (side.recall, side.archival, side.tokens, side.estimate, side.window) for side in (self.before, self.after)
        ]
        changes = (self.memory, self.settings, self.functions_in, self.functions_out, self.shown_in, self.shown_out)
        return counts[0] == counts[1] and not any((*changes, self.reworded)) and self.spent == ModelUsage()


class ChangeCauses:
    """Records between two moments, and some before them, in which the causes of changes are looked up."""

    def __init__(self, between: Sequence[Record], earlier: Sequence[Record]) -> None:
        self.between = between
        self._by_id = {record.event_id: record for record in (*earlier, *between)}
        self._inputs: dict[int, Record] = {}
        for record in (*earlier, *between):
            if record.type == "agent_created":
                self._inputs.clear()
            if record.type in INPUTS and record.turn:
                self._inputs.setdefault(record.turn, record)

    def because(self, record: Record) -> ChangeCause:
        """Return a record with its turn, its cause, and the input that opened its turn."""
        cause = self._by_id.get(record.cause) if record.cause is not None else None
        turn = 0 if record.type in OUTSIDE else record.turn
        began = self._inputs.get(turn)
        return ChangeCause(
            seq=record.seq,
            type=record.type,
            turn=turn,
            time=record.recorded_at,
            cause=_reference_to(cause),
            input=_reference_to(began) if began is not cause and began is not record else None,
        )

    def of(self, kinds: Iterable[str]) -> list[tuple[Record, AnyEvent]]:
        """Return the records of some types, in order, with their events."""
        wanted = frozenset(kinds)
        return [(record, event_of(record)) for record in self.between if record.type in wanted]


def _reference_to(record: Record | None) -> RecordReference | None:
    return None if record is None else RecordReference(record.seq, record.type, record.text)


def difference(
    before: AgentSnapshot, after: AgentSnapshot, between: Sequence[Record], earlier: Sequence[Record]
) -> AgentDiff:
    """Compare two moments. `between` are the records after the earlier moment up to the later one,
    `earlier` some before.
    """
    if before.seq > after.seq:
        return _reversed(difference(after, before, between, earlier))
    story = ChangeCauses(between, earlier)
    known = [{f.name: f.sha256 for f in side.context.config.functions} if side.context else {} for side in
             (before, after)]  # fmt: skip
    shown_in, shown_out, reworded = _messages(before.context, after.context, story)
    return AgentDiff(
        before=before,
        after=after,
        events=len(between),
        turns=len({record.turn for record in between if record.turn and record.type not in OUTSIDE}),
        memory=_memory(before, after, story),
        settings=_settings(before.context, after.context, story),
        functions_in=sorted(name for name, sha256 in known[1].items() if known[0].get(name) != sha256),
        functions_out=sorted(name for name, sha256 in known[0].items() if known[1].get(name) != sha256),
        shown_in=shown_in,
        shown_out=shown_out,
        reworded=reworded,
        spent=spent_in(between),
    )


def _reversed(found: AgentDiff) -> AgentDiff:
    """Return the same differences with before and after exchanged."""
    return msgspec.structs.replace(
        found,
        before=found.after,
        after=found.before,
        memory=[_reversed_change(change) for change in found.memory],
        settings=[_reversed_change(change) for change in found.settings],
        functions_in=found.functions_out,
        functions_out=found.functions_in,
        shown_in=found.shown_out,
        shown_out=found.shown_in,
        reworded=[msgspec.structs.replace(s, text=s.was or "", was=s.text) for s in found.reworded],
    )


def _reversed_change(change: ValueChange) -> ValueChange:
    return msgspec.structs.replace(change, before=change.after, after=change.before)


def _memory(before: AgentSnapshot, after: AgentSnapshot, story: ChangeCauses) -> list[ValueChange]:
    found = []
    edits = story.of(["memory_edited", "block_removed"])
    births = [story.because(record) for record, _ in story.of(["agent_created"])]
    for label in sorted({*before.blocks, *after.blocks}):
        then, now = before.blocks.get(label), after.blocks.get(label)
        if then != now:
            because = [story.because(r) for r, event in edits if getattr(event, "label", None) == label] or births[-1:]
            if then is None or now is None or then.value != now.value:
                found.append(ValueChange(label, then.value if then else None, now.value if now else None, because))
            for name in ("limit", "description", "read_only"):
                sides = [None if side is None else getattr(side, name) for side in (then, now)]
                if None not in sides and sides[0] != sides[1]:
                    found.append(ValueChange(f"{label} {name.replace('_', '-')}", sides[0], sides[1], because))
    return found


def _settings(before: Context | None, after: Context | None, story: ChangeCauses) -> list[ValueChange]:
    because = [story.because(record) for record, _ in story.of(["agent_configured"])][-1:]
    sides = [None if side is None else side.config for side in (before, after)]
    return [ValueChange(name, then, now, because) for name, then, now in setting_changes(*sides)]


def setting_changes(before: AgentConfigured | None, after: AgentConfigured | None) -> list[tuple[str, Any, Any]]:
    """Return the settings in which two configurations differ, each with both values as JSON types."""
    found = []
    for name in SETTINGS:
        then, now = (None if side is None else getattr(side, name) for side in (before, after))
        if then != now:
            found.append(("system prompt" if name == "text" else name, _json_value(then), _json_value(now)))
    return found


def _rule_text(part: object) -> str:
    match part:
        case ApprovalRule():
            return approval_rules.rule_text(part)
        case FunctionRule():
            return rule_checks.rule_text(part)
        case _:
            return str(part)


def _json_value(value: Any) -> Any:
    """Convert a setting into JSON types: lists, sections of a prompt and sampling become text."""
    match value:
        case [Section(), *_]:
            return "\n".join([f"[{s.name}{'' if s.visible else ', hidden'}]\n{s.text}" for s in value])
        case [*parts]:
            return "; ".join(map(_rule_text, parts))
        case Sampling():
            return ", ".join([f"{key} {word}" for key, word in msgspec.to_builtins(value).items()])
        case _:
            return value


def _messages(before: Context | None, after: Context | None, story: ChangeCauses
              ) -> tuple[list[MessageChange], list[MessageChange], list[MessageChange]]:  # fmt: skip
    """Return the messages that came into the context, those that went out of it, and those whose text differs."""
    then, now = _by_place(before), _by_place(after)
    came = [_shown(place, now[place], _cause_in_view(place[0], story)) for place in now if place not in then]
    turns = {message.seq: message.turn for message in before.messages} if before is not None else {}
    went = [
        _shown(place, then[place], _hiding_cause(place[0], turns.get(place[0], 0), story))
        for place in then
        if place not in now
    ]
    other = []
    for place in now:
        if place in then and then[place] != now[place]:
            made = story.of(["reply_rethought", "context_trimmed"])
            because = [record for record, event in made if getattr(event, "target_seq", None) == place[0]][-1:]
            changes = story.because(because[0]) if because else None
            other.append(_shown(place, now[place], changes, was=message_text(then[place])))
    return came, went, other


def _by_place(context: Context | None) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Map the chat messages, by seq and by number among those of one seq. The system message is left out."""
    found: dict[tuple[int, int], Mapping[str, Any]] = {}
    for seq, message in numbered_messages(context) if context is not None else []:
        number = 0
        while (seq, number) in found:
            number += 1
        if seq:
            found[seq, number] = message
    return found


def _shown(place: tuple[int, int], message: Mapping[str, Any], because: ChangeCause | None, was: str | None = None
           ) -> MessageChange:  # fmt: skip
    return MessageChange(place[0], message["role"], message_text(message), was, because)


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a chat message: its content, and the calls in it."""
    calls = (call["function"] for call in message.get("tool_calls") or ())
    said = [str(message["content"])] if message.get("content") else []
    return "\n".join([*said, *(f"{call['name']}({call['arguments']})" for call in calls)])


def _cause_in_view(seq: int, story: ChangeCauses) -> ChangeCause | None:
    """Return the cause of a message in view:
    its own record, or the newest `summary_expanded`, which undid a summary.
    """
    for record in story.between:
        if record.seq == seq:
            return story.because(record)
    back = [record for record, _ in story.of(["summary_expanded"])]
    return story.because(back[-1]) if back else None


def _hiding_cause(seq: int, turn: int, story: ChangeCauses) -> ChangeCause | None:
    """Return the record that took a message out of view."""
    for record, event in story.of(["summary", "summary_expanded", "turns_hidden", "agent_created"]):
        match event:
            case Summary() | SummaryExpanded():
                gone = seq < event.kept_from or (seq < record.seq and _is_summary(seq, story))
            case TurnsHidden():
                gone = turn in event.turns
            case _:
                gone = True
        if gone:
            return story.because(record)
    return None


def _is_summary(seq: int, story: ChangeCauses) -> bool:
    return any(record.seq == seq and record.type.startswith("summary") for record in story.between)


def spent_in(records: Iterable[Record]) -> ModelUsage:
    """Return the usage of the model calls among some records."""
    calls = prompt = completion = tokens = 0
    for record in records:
        event = event_of(record) if record.type in REPLIES else None
        if getattr(event, "context_sha256", ""):
            usage = getattr(event, "usage", None)
            calls += 1
            prompt += usage.prompt if usage is not None else 0
            completion += usage.completion if usage is not None else 0
            tokens += usage.total if usage is not None else 0
    return ModelUsage(calls, prompt, completion, tokens)

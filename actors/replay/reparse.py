"""Every recorded answer of a model, read again with today's reader: which would be read otherwise, and which could be
read at last. It writes nothing and asks no model. Pure but for reading the log.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from everlog.actors.formats import parse
from everlog.actors.formats.asked import compact
from everlog.actors.prompt.context import config_of
from everlog.events import (
    AgentConfigured,
    AgentCreated,
    ModelError,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    Summary,
    event_of,
)

Verdict = Literal["same", "otherwise", "readable", "unreadable"]

Answer = ModelReply | ReplyRejected | ModelFailed | ModelSwitched | Summary


class Reread(msgspec.Struct, frozen=True):
    """A recorded answer that is not read as it was, or that nobody could read."""

    seq: int
    type: str
    turn: int
    verdict: Verdict
    was: str
    """What it was read as, or why it could not be."""
    now: str
    """What it is read as today, or why it cannot be."""
    repair: str = ""
    """What today's reader does to read it, rung by rung."""
    lossy: bool = False


class Reparsed(msgspec.Struct):
    """What became of the answers of one agent."""

    agent_id: str
    read: int = 0
    """Answers that the log has."""
    found: list[Reread] = []
    """All that are not the same; those that could not be read then and cannot be today among them."""


def reparse(agent_id: str, records: Iterable[Record]) -> Reparsed:
    """Read every answer in the records again."""
    report = Reparsed(agent_id)
    config: AgentConfigured | None = None
    switched: dict[int, ModelSwitched] = {}
    for record in records:
        event = event_of(record)
        if isinstance(event, AgentConfigured):
            config = event
        elif isinstance(event, AgentCreated):
            switched.clear()
        elif config is not None and isinstance(event, Answer) and event.raw:
            report.read += 1
            again = _again(record, event, config_of(config, switched.get(record.turn)))
            if again.verdict != "same":
                report.found.append(again)
        if isinstance(event, ModelSwitched):
            switched[record.turn] = event
    return report


def _again(record: Record, event: Answer, config: AgentConfigured) -> Reread:
    then = _then(event)
    now, reply = _now(event, config)
    if reply is None:
        verdict: Verdict = "unreadable"
    elif isinstance(event, ModelFailed | ModelSwitched):
        verdict = "readable"
    elif isinstance(event, ReplyRejected):
        verdict = "readable" if _is_freed(event, config, reply) else "same"
    else:
        verdict = "same" if then == now else "otherwise"
    repair, lossy = (reply.repair, reply.lossy) if reply is not None else ("", False)
    return Reread(record.seq, record.type, record.turn, verdict, then, now, repair, lossy)


def _then(event: Answer) -> str:
    """What it was read as, or why it was not."""
    if isinstance(event, ModelReply):
        return _worded(event)
    return event.text or ""


def _now(event: Answer, config: AgentConfigured) -> tuple[str, ModelReply | None]:
    """What it is read as today, or why it is not."""
    try:
        if _is_summary(event):
            reply = parse.words(event.raw, config.window)
            return reply.text.strip(), reply
        reply = parse.reply(event.raw, config.window, config.calling)
    except ModelError as error:
        return str(error), None
    return _worded(reply), reply


def _is_summary(event: Answer) -> bool:
    return isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary")


def _is_freed(event: ReplyRejected, config: AgentConfigured, reply: ModelReply) -> bool:
    """Whether the reader was why the reply was refused, and is so no longer: rules and lengths are what they were."""
    if event.shown:
        return not reply.lossy
    for reader in (1, parse.READER):
        try:
            if event.purpose == "summary":
                parse.words(event.raw, config.window, reader)
            else:
                parse.reply(event.raw, config.window, config.calling, reader)
        except ModelError as error:
            if str(error) == event.text:
                return True
    return False


def _worded(reply: ModelReply) -> str:
    """A reading in lines: the monologue, then each call with its arguments as they would be run."""
    calls = [f"{call.name} {_arguments(call.arguments, reply.reader)}" for call in reply.calls]
    return "\n".join([*([reply.text] if reply.text else []), *calls])


def _arguments(text: str, reader: int) -> str:
    try:
        return compact(parse.arguments(text, min(reader, parse.READER)))
    except (ValueError, TypeError) as error:
        return f"(cannot be read: {error})"

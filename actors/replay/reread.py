"""A recorded answer of a model, read again: by the reader that read it, or by today's. Pure."""

from everlog.actors.agent.decide import first_message_fault
from everlog.actors.formats import parse
from everlog.actors.prompt.context import Context
from everlog.actors.prompt.fit import summary_fault, summary_room
from everlog.events import ContextOverflow, ModelError, ModelReply, ReplyRejected, Summary

READERS = (parse.READER, 1)
"""The readers that there are, the newest first. A refusal and a summary do not say which one read them."""


def reply(event: ModelReply, context: Context) -> ModelReply:
    """What the reader of then reads. Raises ModelError."""
    return parse.reply(event.raw, context.config.window, context.config.calling, event.reader)


def refusals(event: ReplyRejected, context: Context) -> list[str | None]:
    """Why the reply would be refused, by each reader; None where it would not."""
    return [_refusal(event, context, reader) for reader in READERS]


def _refusal(event: ReplyRejected, context: Context, reader: int) -> str | None:
    window, calling = context.config.window, context.config.calling
    try:
        if event.purpose == "summary":
            text = parse.words(event.raw, window, reader).text
            return summary_fault(text, summary_room(context, event.covers_to))
        parsed = parse.reply(event.raw, window, calling, reader)
    except ModelError as error:
        return str(error)
    if event.shown:
        return parse.lossy_fault(parsed) if parsed.lossy and parse.said(event.raw) == event.said else None
    return first_message_fault(parsed)


def has_overflowed(event: ReplyRejected, context: Context) -> bool:
    """Whether the request was refused because it or its answer was too long for the window."""
    try:
        if event.raw:
            parse.reply(event.raw, context.config.window, context.config.calling)
    except ContextOverflow:
        return True
    except ModelError:
        return False
    return not event.raw


def summaries(event: Summary, context: Context) -> list[str]:
    """The summary, by each reader. Raises ModelError."""
    return [parse.words(event.raw, context.config.window, reader).text.strip() for reader in READERS]

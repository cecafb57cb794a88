"""Encode a run as the events of a response, numbered so that any server continues a stream where it was cut.

The number of an event counts the characters of the answer that were sent up to it: every server counts the same from
the log, and a reader that comes back with the number of its last event gets the rest, down to a character. The events
are those of OpenAI's API: `created`, `in_progress`, the message with its text in parts, and one end.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from everlog.actors.answer_text import AnswerText
from everlog.actors.formats.reply_preview import Preview
from everlog.events import Record
from everlog.interfaces.http.core.routes import encode
from everlog.interfaces.http.openai.response_shapes import MessageItem, ResponseShape, TextPart
from everlog.interfaces.http.runs.run_items import RunEnded, RunItem, RunLeft

_HEAD = 4
"""Events before the first part of the text."""

ResponseOf = Callable[[Sequence[Record], RunEnded | RunLeft | None], ResponseShape]
"""Returns the response for the records so far, and the end of the run; None: it is at work."""


async def response_events(
    items: AsyncIterator[RunItem], item_id: str, response: ResponseOf, after: int = -1
) -> AsyncIterator[bytes]:
    """Yield the events of a response after a number. `item_id`: of the message with the answer."""
    records: list[Record] = []
    numbered = _NumberedEvents(item_id, after)
    begun = b"".join(numbered.head(response(records, None)))
    if begun:
        yield begun
    answer = AnswerText()
    async for item in items:
        sent = b""
        if isinstance(item, Preview):
            sent = numbered.delta(answer.preview(item))
        elif isinstance(item, RunEnded | RunLeft):
            sent = b"".join(numbered.tail(response(records, item)))
        else:
            records += item
            sent = b"".join(numbered.delta(answer.record(record)) for record in item)
        if sent:
            yield sent


class _NumberedEvents:
    """Events of one stream, of which those up to a number are left out."""

    def __init__(self, item_id: str, after: int) -> None:
        self._item_id, self._after = item_id, after
        self._place = {"item_id": item_id, "output_index": 0, "content_index": 0}
        self._chars = 0
        """Characters of the answer that are counted so far."""

    def head(self, response: ResponseShape) -> Iterator[bytes]:
        """Yield the events before the text."""
        empty = message_item(self._item_id, "", "in_progress")
        item = MessageItem(id=empty.id, role="assistant", status="in_progress", content=())
        yield self._event(0, "response.created", response=response)
        yield self._event(1, "response.in_progress", response=response)
        yield self._event(2, "response.output_item.added", output_index=0, item=item)
        yield self._event(3, "response.content_part.added", **self._place, part=empty.content[0])

    def delta(self, text: str) -> bytes:
        """Return the event with more of the answer, without the characters that the reader has."""
        if not text:
            return b""
        had, self._chars = self._chars, self._chars + len(text)
        fresh = text[max(0, self._after - (_HEAD - 1) - had) :]
        number = _HEAD - 1 + self._chars
        return self._event(number, "response.output_text.delta", **self._place, delta=fresh, logprobs=())

    def tail(self, response: ResponseShape) -> Iterator[bytes]:
        """Yield the events after the text."""
        number = _HEAD + self._chars
        if response.status in ("completed", "cancelled"):
            item = response.output[0] if response.output else message_item(self._item_id, "", "completed")
            part = item.content[0]
            yield self._event(number, "response.output_text.done", **self._place, text=part.text, logprobs=())
            yield self._event(number + 1, "response.content_part.done", **self._place, part=part)
            yield self._event(number + 2, "response.output_item.done", output_index=0, item=item)
        kind = {"failed": "failed", "completed": "completed"}.get(response.status, "incomplete")
        yield self._event(number + 3, f"response.{kind}", response=response)

    def _event(self, number: int, kind: str, **fields: Any) -> bytes:
        if number <= self._after:
            return b""
        body = encode({"type": kind, "sequence_number": number, **fields})
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), body)


def message_item(item_id: str, text: str, status: Any) -> MessageItem:
    """Return the message with an answer."""
    return MessageItem(id=item_id, role="assistant", status=status, content=[TextPart(type="output_text", text=text)])

"""Write a run as Letta's clients read it: as one answer, or as a stream that any server can continue at any byte.

Events have no `event:` and no `id:`, which the clients' readers do not take; the position is in each message
(`seq_id`, see `stream_cursor`).
"""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.formats.reply_preview import Preview
from everlog.actors.reply import Reply
from everlog.events import (
    ApprovalRequested,
    BudgetExceeded,
    ModelFailed,
    ModelReply,
    Record,
    TurnAbandoned,
    event_of,
    is_erased,
)
from everlog.interfaces.http.core.event_streams import StreamStyle
from everlog.interfaces.http.core.routes import encode
from everlog.interfaces.http.letta.translation import stream_cursor
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, otid_of
from everlog.interfaces.http.letta.translation.letta_messages import (
    MESSAGE_PART,
    PROMPTED,
    LettaAssistantMessage,
    LettaMessage,
    LettaReasoning,
    messages_of,
    text_of,
    with_text,
)
from everlog.interfaces.http.letta.translation.stream_cursor import START, StreamCursor, check_of, checksum
from everlog.interfaces.http.runs.run_items import RunEnded, RunItem, RunLeft

DONE = b"data: [DONE]\n\n"
AGAIN_PART = 64
"""Added to the number of a part whose text was sent before with other words."""
_WRITTEN = ("user_message", "system_message", "approval_response_message")
"""Messages that the client wrote itself: an answer does not repeat them."""


class LettaStopReason(msgspec.Struct, frozen=True, kw_only=True, tag_field="message_type", tag="stop_reason",
                      omit_defaults=True):  # fmt: skip
    """Reason for which a run ended."""

    stop_reason: str
    seq_id: int | None = None


class LettaUsage(msgspec.Struct, frozen=True, kw_only=True, tag_field="message_type", tag="usage_statistics",
                 omit_defaults=True):  # fmt: skip
    """Tokens of a run."""

    completion_tokens: int
    prompt_tokens: int
    total_tokens: int
    step_count: int
    cached_input_tokens: int
    run_ids: Sequence[str]
    seq_id: int | None = None


class LettaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a message."""

    messages: Sequence[LettaMessage]
    stop_reason: LettaStopReason
    usage: LettaUsage


class RunOfReader(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as one reader wants it."""

    ids: LettaIds
    run_id: str
    types: Collection[str] = ()
    """Types of messages that the reader wants; empty: all."""
    summaries: bool = False
    """True: the reader wants summaries too."""

    def wants(self, message: LettaMessage) -> bool:
        """Return True if the reader gets a message."""
        kind = message.__struct_config__.tag
        if kind in _WRITTEN or (kind == "summary_message" and not self.summaries):
            return False
        return not self.types or kind in self.types


def response_of(run: RunOfReader, records: Sequence[Record], stop_reason: str) -> LettaResponse:
    """Return a run that has ended, as one answer."""
    messages = [one for record in records for one in messages_of(record, run.ids, run.run_id) if run.wants(one)]
    return LettaResponse(
        messages=messages, stop_reason=LettaStopReason(stop_reason=stop_reason),
        usage=usage_of(records, run.run_id),
    )  # fmt: skip


def usage_of(records: Sequence[Record], run_id: str, seq_id: int | None = None) -> LettaUsage:
    """Return the tokens of a run, from its records."""
    tokens = Reply("", "", records).tokens
    return LettaUsage(
        completion_tokens=tokens.output, prompt_tokens=tokens.input, total_tokens=tokens.total,
        step_count=sum(record.type == ModelReply.kind for record in records), cached_input_tokens=tokens.cached,
        run_ids=[run_id], seq_id=seq_id,
    )  # fmt: skip


_REASONS = {"done": "end_turn", "cancelled": "cancelled", "running": ""}
_ABANDONED = {"steps_max": "max_steps", "context": "context_window_overflow_in_system_prompt", "forked": "cancelled"}
_FAILURES = {"garbage": "invalid_llm_response", "credit": "insufficient_credits"}


def stop_reason_of(status: str, records: Sequence[Record]) -> str:
    """Return Letta's reason for the end of a run, from its status and records; empty: it has not ended."""
    if status == "done" and any(record.type == ApprovalRequested.kind for record in records):
        return "requires_approval"
    if status in _REASONS:
        return _REASONS[status]
    for record in reversed(records):
        event = None if is_erased(record.payload) else event_of(record)
        if isinstance(event, BudgetExceeded):
            return "insufficient_credits"
        if isinstance(event, ModelFailed):
            return _FAILURES.get(event.failure, "llm_api_error")
        if isinstance(event, TurnAbandoned):
            return _ABANDONED[event.reason]
    return "error"


def letta_style(run_id: str, at: datetime, *, pings: bool) -> StreamStyle:
    """Return what a stream sends in silence and when the server stops."""
    stop = _error_event(
        run_id, "server_stopping",
        "The server stops. The run continues: read on with runs.messages.stream(run_id, starting_after=...).",
    )  # fmt: skip
    return StreamStyle(retry=False, keep_alive=ping(run_id, at) if pings else b": waiting\n\n", stop=stop)


def ping(run_id: str, at: datetime) -> bytes:
    """Return a sign of life, which says the id of the run."""
    return data({"message_type": "ping", "id": run_id.replace("run-", "message-"), "date": at, "run_id": run_id})


def data(answer: object) -> bytes:
    """Return one event of a stream."""
    return b"data: " + encode(answer) + b"\n\n"


def _error_event(run_id: str, kind: str, message: str) -> bytes:
    shape = {"message_type": "error_message", "error_type": kind, "message": message, "run_id": run_id}
    return b"event: error\n" + data(shape)


class LettaRunStream:
    """Encoder of one run for one reader."""

    def __init__(
        self, run: RunOfReader, cursor: StreamCursor = START, *, tokens: bool = False, joined: bool = False
    ) -> None:
        """`cursor`: position of the reader. `tokens`: send words while the model writes them. `joined`: the run may be
        at work already, so that the beginning of a reply may be missed: the words of that reply come when it is whole.
        """
        self._run = run
        self._began = cursor
        self._cursor = cursor
        """Position of the reader. Its characters are those of the next reply."""
        self._sum = cursor.check
        """Checksum of these characters."""
        self._tokens = tokens
        self._missed = None if joined else (0, 0)
        """Turn and step up to which previews are not sent; None: those of the first reply of which there is one."""
        self._part = 0
        """Part of the reply that previews belong to."""
        self._ended_part = False
        self._muted = False
        """True: previews are not sent before the next record."""
        self._records: list[Record] = []

    async def events(self, items: AsyncIterator[RunItem]) -> AsyncIterator[bytes]:
        """Yield the events of a run, whose items come from its beginning."""
        async for item in items:
            if isinstance(item, Preview):
                part = self._preview(item)
            elif isinstance(item, RunLeft):
                part = _error_event(self._run.run_id, item.error.code, f"{item.error} The run continues: read on with "
                                    "runs.messages.stream(run_id, starting_after=...).")  # fmt: skip
            elif isinstance(item, RunEnded):
                part = self._end(item)
            else:
                part = b"".join(map(data, self._new_messages(item)))
            if part:
                yield part

    def _new_messages(self, records: Sequence[Record]) -> Iterator[LettaMessage]:
        self._records += records
        for record in records:
            if record.seq > self._cursor.seq:
                messages = messages_of(record, self._run.ids, self._run.run_id)
                if record.type == ModelReply.kind:
                    yield from self._reply(record, messages)
                else:
                    yield from self._others(record, messages)
        self._muted = False

    def _others(self, record: Record, messages: Sequence[LettaMessage]) -> Iterator[LettaMessage]:
        """Yield the messages of a record that is no reply. Characters of the reader are of a reply yet to come."""
        self._cursor = self._cursor._replace(seq=record.seq)
        for message in filter(self._run.wants, messages):
            yield msgspec.structs.replace(message, seq_id=self._number(self._cursor))

    def _reply(self, record: Record, messages: Sequence[LettaMessage]) -> Iterator[LettaMessage]:
        """Yield what the reader does not have of a reply."""
        texts = [text for text in map(text_of, messages) if text is not None]
        unthought = int(not messages or not isinstance(messages[0], LettaReasoning))
        counts = stream_cursor.characters_sent([""] * unthought + texts, self._cursor)
        had = self._cursor.chars - stream_cursor.AGAIN
        for number, message in enumerate(messages):
            text, last = text_of(message), number == len(messages) - 1
            if had >= 0 or counts is None:
                at = StreamCursor(record.seq - 1, stream_cursor.AGAIN + number + 1)
                sent = message if number >= had else None
            elif text is None:
                at, sent = StreamCursor(record.seq), message
            else:
                at = _after_text(record, texts, counts[unthought:], number)
                count = counts[number + unthought]
                sent = None if count == len(text) else with_text(message, text[count:])
            if sent is not None and self._run.wants(sent):
                otid = _again(sent) if had >= 0 or counts is None else sent.otid
                at = StreamCursor(record.seq) if last else at
                yield msgspec.structs.replace(sent, seq_id=self._number(at), otid=otid)
        self._cursor, self._sum = StreamCursor(record.seq), 0
        self._part, self._ended_part = 0, False

    def _number(self, cursor: StreamCursor) -> int:
        return cursor._replace(tokens=self._tokens).number

    def _preview(self, preview: Preview) -> bytes:
        """Return the words of a preview as a message, if the reader gets them now."""
        if self._missed is None:
            self._missed = preview.turn, preview.step
        if not self._tokens or self._muted or (preview.turn, preview.step) <= self._missed:
            return b""
        if preview.kind == "restart":
            self._muted = self._cursor.chars > 0
        elif preview.kind == "end":
            self._ended_part = True
        if preview.kind not in {"thought", "message"}:
            return b""
        part = 0
        if preview.kind == "message":
            part = self._part + int(self._ended_part or not self._part)
        text = preview.text if part or self._cursor.chars else preview.text.lstrip()
        if part < self._part or self._cursor.chars + len(text) > stream_cursor.CHARS_MAX:
            self._muted = True  # the words come with the whole reply
            text = ""
        if not text:
            return b""
        self._part, self._ended_part = part, False
        self._sum = checksum(text, self._sum)
        self._cursor = StreamCursor(self._cursor.seq, self._cursor.chars + len(text), check_of(self._sum))
        return self._words(preview, part, text)

    def _words(self, preview: Preview, part: int, text: str) -> bytes:
        ids = self._run.ids
        message_id = ids.step(preview.turn, preview.step, "message")
        common: dict[str, Any] = {
            "id": message_id, "date": self._records[-1].time, "run_id": self._run.run_id,
            "step_id": ids.step(preview.turn, preview.step), "seq_id": self._number(self._cursor),
            "otid": otid_of(message_id, MESSAGE_PART + part - 1 if part else 0),
        }  # fmt: skip
        message: LettaMessage
        if part:
            message = LettaAssistantMessage(content=text, **common)
        else:
            message = LettaReasoning(reasoning=text, source=PROMPTED, **common)
        return data(message) if self._run.wants(message) else b""

    def _end(self, ended: RunEnded) -> bytes:
        """Return the last events of a run that has ended."""
        run_id, last = self._run.run_id, ended.last_seq
        read = self._began.chars if self._began.seq == last else 0
        reason = stop_reason_of(ended.status, self._records)
        stop = LettaStopReason(stop_reason=reason, seq_id=self._number(StreamCursor(last, 1)))
        parts = [data(stop)] if read < 1 else []
        if ended.error is not None:
            parts.append(_error_event(run_id, reason, str(ended.error)))
        elif read < 2:
            parts.append(data(usage_of(self._records, run_id, self._number(StreamCursor(last, 2)))))
        return b"".join(parts) + DONE


def _after_text(record: Record, texts: Sequence[str], counts: Sequence[int], number: int) -> StreamCursor:
    """Return the cursor of a reader that has the first texts of a reply whole, up to one, and some of the later ones.
    `counts`: characters that it had before.
    """
    later = (text[:count] for text, count in zip(texts[number + 1 :], counts[number + 1 :], strict=True))
    had = "".join([*texts[: number + 1], *later])[: stream_cursor.CHARS_MAX]
    return StreamCursor(record.seq - 1, len(had), check_of(checksum(had)))


def _again(message: LettaMessage) -> str:
    part = int((message.otid or "00")[-2:], 16)
    return otid_of(message.id, part + AGAIN_PART)

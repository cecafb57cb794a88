"""Follow one run through the streams that a client reads of it: what arrived, and when it is over. Pure."""

from collections.abc import Sequence

from everlog.actors.formats.reply_preview import Preview
from everlog.events import ArchiveError, Busy, ClusterError, EverlogError, HostLost, Record, StoreError
from everlog.interfaces.client.event_stream import ServerEvent
from everlog.interfaces.client.server_address import decoded, refusal_of, wait_s_of
from everlog.interfaces.wire.problems import Problem
from everlog.interfaces.wire.records import HttpRecord, PreviewShape, preview_of, record_of

PASSING = (HostLost, ClusterError, ArchiveError, Busy)
"""Errors of a run that was begun, after which it may continue elsewhere, beside a plain StoreError."""


class RunStream:
    """State of the reader of one run."""

    def __init__(self, run_id: str, seen: int) -> None:
        """`seen`: last seq that the caller has received already."""
        self.seen = seen
        self.input: Record | None = None
        """Record of the input, if it arrived."""
        self.was_resumed = seen > 0
        """True if the input may have arrived at an earlier reader."""
        self.is_over = False
        """True after the end of the run."""
        self.failure: EverlogError | None = None
        """Reason for which the server closed the stream, if it said one."""
        self._run_id = run_id
        self._begun = False
        self._last_preview: Preview | None = None

    def take(self, event: ServerEvent) -> Sequence[Record] | Preview | None:
        """Return what an event brings: a record that is new, or a preview. Raises the error of a run that failed."""
        if event.kind == "record":
            return self._record(record_of(decoded(event.data, HttpRecord)))
        if event.kind == "preview":
            self._last_preview = preview_of(decoded(event.data, PreviewShape))
            return self._last_preview
        if event.kind == "end":
            self.is_over = True
            if self.failure is not None:
                raise self.failure
        elif event.kind == "error":
            self.failure = refusal_of(decoded(event.data, Problem))
        elif event.kind == "close":
            self.failure = _reason_of(event.data)
            if self.failure is not None and not _passes(self.failure):
                raise self.failure
        return None

    def may_return(self, error: EverlogError) -> bool:
        """Return True if a server that refused the run may take it later: it was begun, or the server is full."""
        return bool(wait_s_of(error)) or (self._begun and _passes(error))

    def restarted(self) -> Preview | None:
        """Return the preview that voids the one that was interrupted, if there was one."""
        self.failure = None
        last, self._last_preview = self._last_preview, None
        return None if last is None else Preview(last.turn, last.step, "restart")

    def _record(self, record: Record) -> Sequence[Record] | None:
        self._begun = True
        if record.event_id == self._run_id:
            self.input = record
        if record.seq <= self.seen:
            return None
        self.seen = record.seq
        return [record]


def _passes(error: EverlogError) -> bool:
    return isinstance(error, PASSING) or type(error) is StoreError


def _reason_of(data: bytes) -> EverlogError | None:
    """Return the error with which a server closed a stream; None if the server itself stops."""
    return refusal_of(decoded(data, Problem)) if b'"code"' in data else None

"""Forward the chunks of a streamed reply to a caller, over several tries.

Used by `Gateway`. The order counts: the caller must get the restart before the first chunk of the next try.
"""

from everlog.actors.ports.effects import DeltaCallback, ReplyDelta


class DeltaForwarder:
    """Forwards the chunks of a reply to a caller; the chunks of a failed try are revoked before the next try."""

    __slots__ = ("_has_sent", "_on_delta")

    def __init__(self, on_delta: DeltaCallback | None) -> None:
        self._on_delta = on_delta
        self._has_sent = False

    def next_try(self) -> DeltaCallback | None:
        """Return the callback for the chunks of the next try; None if the caller wants none."""
        if self._on_delta is None:
            return None
        if self._has_sent:
            self._on_delta(ReplyDelta(restart=True))
            self._has_sent = False
        return self._forward

    def _forward(self, delta: ReplyDelta) -> None:
        if self._on_delta is not None:
            self._has_sent = True
            self._on_delta(delta)

"""Preview a reply while it is streamed: thoughts and messages, read from the chunks, and calls that begin. Pure.

A preview is not durable and may be withdrawn: only records are final. Reported text is always the beginning of what the
complete reply will be read as. Text that is still ambiguous is not reported. Used by `hosting/subscribers.py`;
`model_step.py` passes the chunks, and terminals and chat show the previews.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

import msgspec

from everlog.actors.formats.incremental_json import DuplicateKey, IncrementalJson, IncrementalJsonError, JsonPath
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.ports.effects import DeltaCallback, ReplyDelta
from everlog.events import AgentConfigured, Call

PreviewKind = Literal["thought", "message", "restart", "end", "call", "progress"]


class Preview(msgspec.Struct, frozen=True, gc=False):
    """Some words of a reply that is still streamed, a call that begins, or a line of its progress."""

    turn: int
    step: int
    kind: PreviewKind
    """`end`: the last reported message or thought is complete. `restart`: everything reported of the step is void.
    `call`: a user's function is about to run. `progress`: a line that replaces the last one of the running function.
    """
    text: str = ""
    call: Call | None = None
    """Call of the function, for the kind `call`."""


class PreviewListener(Protocol):
    """Gets what an agent does before it is durable."""

    def preview_for(self, turn: int, step: int, config: AgentConfigured) -> DeltaCallback | None:
        """Return the callback for the chunks of a reply; None: no preview is wanted."""

    def on_call(self, turn: int, step: int, call: Call, thought: str) -> None:
        """Note that a user's function is about to run. `thought`: that of the reply, if it is not committed."""

    def on_progress(self, turn: int, step: int, line: str) -> None:
        """Note a line of progress of the running function."""


class NoPreviews:
    """Listener that wants nothing."""

    def preview_for(self, _turn: int, _step: int, _config: AgentConfigured) -> DeltaCallback | None:
        """Return None: no preview is wanted."""
        return None

    def on_call(self, _turn: int, _step: int, _call: Call, _thought: str) -> None:
        """Ignore a call that begins."""

    def on_progress(self, _turn: int, _step: int, _line: str) -> None:
        """Ignore a line of progress."""


NO_PREVIEWS = NoPreviews()

PreviewText = tuple[Literal["thought", "message", "end"], str]

_MESSAGE: JsonPath = ("message",)
_THOUGHTS: tuple[JsonPath, ...] = (("inner_thoughts",), ("params", "inner_thoughts"))
_FUNCTION: JsonPath = ("function",)
_SAID: JsonPath = ("params", "message")

_UNSURE = re.compile(r"[<\[{`]")
"""Text from one of these characters on may be a call, or a model's own marks."""


def reported_beginning(thought: str) -> str:
    """Return the part of a thought that is reported of a native reply before its calls begin."""
    unsure = _UNSURE.search(thought)
    return thought if unsure is None else thought[: unsure.start()].rstrip()


class _Native:
    """Reader of a native reply: words and calls."""

    def __init__(self) -> None:
        self._sure = True
        self._space: list[str] = []
        """Trailing white space, which may not count."""
        self._call = -1
        self._name = ""
        self._arguments: IncrementalJson | None = None

    def read(self, piece: ReplyDelta) -> Iterator[PreviewText]:
        if piece.text and self._sure:
            unsure = _UNSURE.search(piece.text)
            self._sure = unsure is None
            sure = piece.text if unsure is None else piece.text[: unsure.start()]
            words = sure.rstrip()
            if words:
                yield "thought", "".join([*self._space, words])
                self._space = []
            self._space.append(sure[len(words) :])
        if piece.call > self._call:
            self._call, self._name, self._arguments = piece.call, "", None
        if piece.call < 0 or piece.call != self._call:
            return
        if self._arguments is None:
            self._name += piece.name
        if piece.arguments:
            if self._arguments is None:
                self._arguments = IncrementalJson((_MESSAGE,) if self._name == SEND_MESSAGE else ())
            if self._name == SEND_MESSAGE:
                for _, text in self._arguments.read(piece.arguments):
                    yield ("end", "") if text is None else ("message", text)


class _Written:
    """Reader of a reply that is one JSON object: a thought, the name of a function and its parameters."""

    def __init__(self) -> None:
        self._object = IncrementalJson((*_THOUGHTS, _FUNCTION, _SAID), fenced=True)
        self._function: list[str] = []
        self._known = False
        self._kept: list[PreviewText] = []
        self._thought: JsonPath = ()

    def read(self, piece: ReplyDelta) -> Iterator[PreviewText]:
        for place, text in self._object.read(piece.text):
            if place == _FUNCTION:
                yield from self._named(text)
            elif place == _SAID:
                preview: PreviewText = ("end", "") if text is None else ("message", text)
                if not self._known:
                    self._kept.append(preview)
                elif self._sends:
                    yield preview
            elif self._thought in ((), place):  # of two thoughts the first is reported
                self._thought = place
                yield ("end", "") if text is None else ("thought", text)

    @property
    def _sends(self) -> bool:
        return "".join(self._function) == SEND_MESSAGE

    def _named(self, text: str | None) -> Iterator[PreviewText]:
        """Take a part of the function's name; its end decides if the held-back text is a message."""
        if text is not None:
            self._function.append(text)
            return
        self._known = True
        if self._sends:
            yield from self._kept
        self._kept = []


class ReplyPreview:
    """Preview of one reply."""

    def __init__(self, calling: str) -> None:
        self._pieces: _Native | _Written = _Native() if calling == "native" else _Written()
        self._over = False
        """True if nothing more can be reported before the reply is complete."""

    def read(self, piece: ReplyDelta) -> Iterator[tuple[PreviewKind, str]]:
        """Yield what the chunk adds."""
        if self._over:
            return
        try:
            yield from self._pieces.read(piece)
        except IncrementalJsonError:
            self._over = True
        except DuplicateKey:  # the later of two values counts
            self._over = True
            yield "restart", ""


class PreviewStream:
    """Previews of one agent's replies, for subscribers that want them; a `PreviewListener`."""

    def __init__(self, wanted: Callable[[int], bool], notify: Callable[[Preview], None]) -> None:
        """`wanted`: returns True if a subscriber wants previews of a turn."""
        self._wanted = wanted
        self._notify = notify
        self._previewed_step: tuple[int, int] = (0, 0)
        """Turn and step with reported text since their last start; (0, 0): none."""
        self._thought_step: tuple[int, int] = (0, 0)
        """The same for a thought."""

    def preview_for(self, turn: int, step: int, config: AgentConfigured) -> DeltaCallback | None:
        """Return the callback for one reply."""
        if not config.stream or not self._wanted(turn):
            return None
        self._restart_preview(turn, step)  # the reply before it was not accepted
        reply = ReplyPreview(config.calling)

        def on_delta(piece: ReplyDelta) -> None:
            nonlocal reply
            if piece.restart:
                reply = ReplyPreview(config.calling)
                self._restart_preview(turn, step)
            for kind, text in reply.read(piece):
                if kind == "restart":
                    self._restart_preview(turn, step)
                else:
                    self._previewed_step = turn, step
                    if kind == "thought":
                        self._thought_step = turn, step
                    self._notify(Preview(turn, step, kind, text))

        return on_delta

    def on_call(self, turn: int, step: int, call: Call, thought: str) -> None:
        """Report a call that begins. A thought that was not streamed is reported before it."""
        if self._wanted(turn):
            if thought and self._thought_step != (turn, step):
                self._thought_step = turn, step
                self._notify(Preview(turn, step, "thought", thought))
            self._notify(Preview(turn, step, "end"))
            self._notify(Preview(turn, step, "call", call=call))

    def on_progress(self, turn: int, step: int, line: str) -> None:
        """Report a line of progress of the running function."""
        if self._wanted(turn):
            self._notify(Preview(turn, step, "progress", line))

    def _restart_preview(self, turn: int, step: int) -> None:
        if self._previewed_step == (turn, step):
            self._previewed_step = self._thought_step = 0, 0
            self._notify(Preview(turn, step, "restart"))

"""What a reply says while it is still coming: thoughts and messages, read out of the pieces of a stream. Pure.

A preview is not durable, and may come to nothing: only records are final. What is told of a text is always the
beginning of what the whole reply will be read as. Where that cannot be known yet, nothing is told.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from everlog.actors.formats.incremental_json import DuplicateKey, IncrementalJson, IncrementalJsonError, JsonPath
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.ports.effects import DeltaCallback, ReplyDelta
from everlog.events import AgentConfigured

PreviewKind = Literal["thought", "message", "restart", "end"]


class Preview(msgspec.Struct, frozen=True, gc=False):
    """Some words of a reply that is on its way."""

    turn: int
    step: int
    kind: PreviewKind
    """`end`: the message or the thought that was told last is whole. `restart`: what was told of the step counts for
    nothing.
    """
    text: str = ""


PreviewFactory = Callable[[int, int, AgentConfigured], DeltaCallback | None]
"""Who hears the pieces of the reply to a turn's step, under a configuration; None: nobody does."""


def no_preview(_turn: int, _step: int, _config: AgentConfigured) -> DeltaCallback | None:
    """Nobody listens."""
    return None


PreviewText = tuple[Literal["thought", "message", "end"], str]

_MESSAGE: JsonPath = ("message",)
_THOUGHTS: tuple[JsonPath, ...] = (("inner_thoughts",), ("params", "inner_thoughts"))
_FUNCTION: JsonPath = ("function",)
_SAID: JsonPath = ("params", "message")

_UNSURE = re.compile(r"[<\[{`]")
"""What begins in a text with one of these may be a call, or marks of a model's own."""


class _Native:
    """A reply of words and calls."""

    def __init__(self) -> None:
        self._sure = True
        self._space: list[str] = []
        """White space that came last: it may not count."""
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
    """A reply that is one JSON object: a thought, the name of a function and what it is called with."""

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
                told: PreviewText = ("end", "") if text is None else ("message", text)
                if not self._known:
                    self._kept.append(told)
                elif self._sends:
                    yield told
            elif self._thought in ((), place):  # of two thoughts the first is told
                self._thought = place
                yield ("end", "") if text is None else ("thought", text)

    @property
    def _sends(self) -> bool:
        return "".join(self._function) == SEND_MESSAGE

    def _named(self, text: str | None) -> Iterator[PreviewText]:
        """A part of the function's name; with its end it is known whether what was kept is a message."""
        if text is not None:
            self._function.append(text)
            return
        self._known = True
        if self._sends:
            yield from self._kept
        self._kept = []


class ReplyPreview:
    """One reply as it comes."""

    def __init__(self, calling: str) -> None:
        self._pieces: _Native | _Written = _Native() if calling == "native" else _Written()
        self._over = False
        """Nothing more can be told of it before it is whole."""

    def read(self, piece: ReplyDelta) -> Iterator[tuple[PreviewKind, str]]:
        """What the piece adds."""
        if self._over:
            return
        try:
            yield from self._pieces.read(piece)
        except IncrementalJsonError:
            self._over = True
        except DuplicateKey:  # the later one of two counts
            self._over = True
            yield "restart", ""


class PreviewStream:
    """What one agent's replies say as they come, for those who want to hear it."""

    def __init__(self, wanted: Callable[[int], bool], notify: Callable[[Preview], None]) -> None:
        """`wanted`: whether anybody wants to hear of a turn."""
        self._wanted = wanted
        self._notify = notify
        self._told: tuple[int, int] = (0, 0)
        """The turn and step of which something was told since it began, or began anew."""

    def preview_for(self, turn: int, step: int, config: AgentConfigured) -> DeltaCallback | None:
        """See `PreviewFactory`."""
        if not config.stream or not self._wanted(turn):
            return None
        self._begin_anew(turn, step)  # the reply before it was not taken
        reply = ReplyPreview(config.calling)

        def on_delta(piece: ReplyDelta) -> None:
            nonlocal reply
            if piece.restart:
                reply = ReplyPreview(config.calling)
                self._begin_anew(turn, step)
            for kind, text in reply.read(piece):
                if kind == "restart":
                    self._begin_anew(turn, step)
                else:
                    self._told = turn, step
                    self._notify(Preview(turn, step, kind, text))

        return on_delta

    def _begin_anew(self, turn: int, step: int) -> None:
        if self._told == (turn, step):
            self._told = 0, 0
            self._notify(Preview(turn, step, "restart"))

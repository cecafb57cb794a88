"""What the model answered. A request is logged by reference: the sha256 of its exact bytes, its length, and short marks
of its parts in their order, by which a request that is made again and is another says where it differs first.
"""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event
from everlog.events.lifecycle import Sampling


class Call(msgspec.Struct, frozen=True):
    """A function call as the model asked for it."""

    id: str
    name: str
    arguments: str
    """The model's own JSON text, not repaired."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as the provider counted them; 0 where it did not say."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    cached: int = 0
    """Of those of the prompt: how many the provider still had from a request before."""


class ModelReply(Event, frozen=True, kw_only=True):
    """The model answered a request; `text` is the inner monologue. All of it can be parsed from `raw` again."""

    kind: ClassVar[str] = "model_reply"

    calls: list[Call] = []
    finish_reason: str = ""
    usage: Usage = Usage()
    model: str = ""
    """The model's own word for itself."""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`."""
    raw: str = ""
    """The body of the answer, verbatim; of one that was streamed, its pieces put together."""
    attempts: int = 1
    """Tries that it took to get an answer."""
    repair: str = ""
    """What was done to read it, rung by rung, as `fence, comma`; empty where it was read as it stands."""
    lossy: bool = False
    """A rung of the repair may have changed what was meant."""
    reader: int = 1
    """Version of the code that read it."""


class ModelFailed(Event, frozen=True, kw_only=True):
    """The model could not be asked or understood; `text` says why. The turn ends; what was said stays in view."""

    kind: ClassVar[str] = "model_failed"

    failure: str
    """A short word, the `kind` of a ModelError; `actors/models/failure_classes.py` says what each means."""
    model: str = ""
    """The model that was asked, where it is not the agent's own or something came of it."""
    attempts: int = 1
    usage: Usage = Usage()
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`."""
    raw: str = ""


class ReplyRejected(Event, frozen=True, kw_only=True):
    """A reply was read and refused; `text` says why. A first message broke the rules, or a summary did not shrink."""

    kind: ClassVar[str] = "reply_rejected"

    purpose: Literal["reply", "summary"] = "reply"
    attempt: int
    covers_to: int = 0
    """For a summary: the last seq that it was to cover."""
    words: int = 0
    """For a summary: the words that it was asked to keep to."""
    shown: bool = False
    """The next request shows the reply and why it was refused, so that the model says it again."""
    said: str = ""
    """Where it is shown: what the model is shown of it."""
    usage: Usage = Usage()
    model: str = ""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request in order, each with its mark, as `prompt d51efd, header 802d77`."""
    raw: str = ""


class ModelSwitched(Event, frozen=True, kw_only=True):
    """The model could not be asked, and another is for the rest of the turn; `text` says why."""

    kind: ClassVar[str] = "model_switched"

    to: str
    """The model that is asked now."""
    calling: Literal["native", "schema", "text"] = "native"
    """How that one calls functions."""
    window: int = 0
    """Tokens of its window; 0: as many as the agent's."""
    sampling: Sampling = Sampling()
    stream: bool = False
    model: str
    """The one that failed."""
    failure: str
    """A short word, as in `model_failed`."""
    attempts: int = 1
    usage: Usage = Usage()
    """What the one that failed used up."""
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The parts of the request that failed in order, each with its mark."""
    raw: str = ""

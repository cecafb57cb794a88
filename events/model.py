"""Events of what the model answered. A request is logged by reference: the sha256 of its exact bytes, its length, and
short fingerprints of its parts in their order, which show where a request that is rendered again differs first.

Written by `actors/agent`; read by turns, replay and the SQL of projections. Released shapes never change: see `upcast`.
"""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event
from everlog.events.lifecycle import CallingName, Sampling


class Call(msgspec.Struct, frozen=True):
    """A function call as the model requested it."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, not repaired."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider counted them; 0 for figures that it did not report."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    cached: int = 0
    """Number of the prompt's tokens that the provider had in its cache."""


class ModelReply(Event, frozen=True, kw_only=True):
    """The model answered a request; `text` is the inner monologue. All of it can be parsed from `raw` again."""

    kind: ClassVar[str] = "model_reply"

    calls: list[Call] = []
    finish_reason: str = ""
    usage: Usage = Usage()
    model: str = ""
    """Model name as the endpoint reported it."""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """Parts of the request in order, each with its fingerprint, as `prompt d51efd, header 802d77`."""
    raw: str = ""
    """Body of the answer, verbatim; of a streamed answer, the completion assembled from its chunks."""
    attempts: int = 1
    """Number of attempts until there was an answer."""
    repair: str = ""
    """Repair steps that it took to parse the reply, as `fence, comma`; empty if the reply was valid."""
    lossy: bool = False
    """True if a repair step may have changed what was meant."""
    reader: int = 1
    """Version of the code that parsed it."""


class ModelFailed(Event, frozen=True, kw_only=True):
    """The model failed, or its answer could not be understood; `text` says why.
    The turn ends; its messages stay in view.
    """

    kind: ClassVar[str] = "model_failed"

    failure: str
    """Class of the failure, the `kind` of a ModelError; `actors/models/failure_classes.py` describes each."""
    model: str = ""
    """Model that was called, if it is not the agent's own or if it sent a part of an answer."""
    attempts: int = 1
    usage: Usage = Usage()
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """Parts of the request in order, each with its fingerprint, as `prompt d51efd, header 802d77`."""
    raw: str = ""


class ReplyRejected(Event, frozen=True, kw_only=True):
    """A reply was parsed and rejected; `text` says why.
    A first message broke the rules, or a summary did not shrink.
    """

    kind: ClassVar[str] = "reply_rejected"

    purpose: Literal["reply", "summary"] = "reply"
    attempt: int
    covers_to: int = 0
    """For a summary: the last seq that it was to cover."""
    words: int = 0
    """For a summary: the maximum words that were asked for."""
    shown: bool = False
    """True if the next request shows the reply and the reason of its rejection,
    so that the model corrects the reply.
    """
    said: str = ""
    """The part of the reply that the next request shows, if it shows any."""
    usage: Usage = Usage()
    model: str = ""
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """Parts of the request in order, each with its fingerprint, as `prompt d51efd, header 802d77`."""
    raw: str = ""


class ModelSwitched(Event, frozen=True, kw_only=True):
    """The model failed, and another model is called for the rest of the turn; `text` says why."""

    kind: ClassVar[str] = "model_switched"

    to: str
    """Model that is called from now on."""
    calling: CallingName = "native"
    """Calling format of that model."""
    window: int = 0
    """Context window of that model in tokens; 0: the agent's own."""
    sampling: Sampling = Sampling()
    stream: bool = False
    model: str
    """Model that failed."""
    failure: str
    """Class of the failure, as in `model_failed`."""
    attempts: int = 1
    usage: Usage = Usage()
    """Usage of the model that failed."""
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """Parts of the failed request in order, each with its fingerprint."""
    raw: str = ""

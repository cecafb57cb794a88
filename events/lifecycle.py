"""Facts about the agent itself: that it began, how it is set up, where it went, that it ended."""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event


class FunctionRef(msgspec.Struct, frozen=True):
    """A function that the model may call, by the digest of its JSON schema."""

    name: str
    sha256: str


class Section(msgspec.Struct, frozen=True):
    """One part of the system prompt."""

    name: str
    text: str
    """A template, as it was given; the prompt holds what it gave when the agent was set up."""
    visible: bool = True
    """False: it is kept and not shown."""


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a model chooses its words, named as requests name it; None is the endpoint's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """Tokens of a reply, at most."""
    max_completion_tokens: int | None = None
    """The same, as newer models of OpenAI want it named."""
    reasoning_effort: str | None = None


class AgentCreated(Event, frozen=True, kw_only=True):
    """The agent began. A deleted name may be created again: projections begin at the last of these."""

    kind: ClassVar[str] = "agent_created"

    persona: str = ""
    """Name of the shipped persona, or empty when the text was the user's own."""
    human: str = ""


class AgentConfigured(Event, frozen=True, kw_only=True):
    """How every later request is made; `text` is the system prompt. A request depends on nothing outside the log."""

    kind: ClassVar[str] = "agent_configured"

    model: str
    window: int
    """Context window of the model, in tokens."""
    renderer: int
    """Version of the code that turns a context into a request."""
    zone: str = "UTC"
    """IANA name of the zone in which the agent is told the time."""
    preset: str = ""
    """Name of the shipped system prompt that `text` is; empty when it is the user's own."""
    functions: list[FunctionRef] = []
    schemas: dict[str, str] = {}
    """JSON schema text by sha256: each is written once in a stream, in the first record that needs it."""
    verify_first: bool = False
    """First-message verification: the first reply must call `send_message` with a plain monologue."""
    steps_max: int = 20
    """Model calls in one turn, at most."""
    pressure_fraction: float = 0.75
    """Part of the window at which the agent is warned, once between two summaries."""
    summary_fraction: float = 0.75
    """Part of the messages' tokens that a summary replaces."""
    keep_last: int = 3
    """Messages that a summary leaves alone, as long as the rest can be made to fit."""
    sections: list[Section] = []
    """What `text` was made of, in order; empty where it was given as it is."""
    calling: Literal["native", "schema", "text"] = "native"
    """How the model calls functions: the endpoint's tools, a reply held to a JSON schema, or JSON in plain text."""
    stream: bool = False
    """Replies are asked for piece by piece."""
    sampling: Sampling = Sampling()
    summarizer: str = ""
    """The model that writes summaries; empty: the agent's own."""
    fallback: str = ""
    """The model that is asked where the agent's own cannot be; empty: none."""
    first_attempts_max: int = 10
    """Replies asked for when the first message is verified."""
    monologue_chars_max: int = 0
    """Characters of an inner monologue that the context shows; 0: all of them."""
    day_tokens_max: int = 0
    """Tokens that the agent may use up on one day (UTC); 0: as many as it wants."""
    day_cost_max: float = 0.0
    """What it may cost on one day (UTC), in the currency of the price list; 0: whatever it costs."""


class AgentForked(Event, frozen=True, kw_only=True):
    """The stream begins as another agent's first `parent_seq` records, read through; this record is the next one."""

    kind: ClassVar[str] = "agent_forked"

    parent: str
    parent_seq: int
    chain: str
    """Chain value of the parent at `parent_seq`, in hexadecimal."""


class AgentMoved(Event, frozen=True, kw_only=True):
    """The stream goes on in another partition (`to`), or comes from one (`from`).

    The last record of the stream in the one, and the first in the other.
    """

    kind: ClassVar[str] = "agent_moved"

    direction: Literal["to", "from"]
    partition: str
    """The other one."""
    seq: int
    """The seq before this record's own."""
    chain: str
    """Chain value there, in hexadecimal."""
    epoch: int
    """Generation of the assignment to the new partition, from 2."""


class AgentDeleted(Event, frozen=True, kw_only=True):
    """The agent ended. Its records stay until they are erased."""

    kind: ClassVar[str] = "agent_deleted"


class RecordsErased(Event, frozen=True, kw_only=True):
    """The content of records `from_seq` to `to_seq`, both inclusive, was erased; tombstones are left."""

    kind: ClassVar[str] = "records_erased"

    from_seq: int
    to_seq: int

"""Events about the agent itself: its beginning, configuration, moves and end.

Written by agents, and by `store` for moves and forks; read by activations and the SQL of projections. Released shapes
never change: see `upcast`.
"""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event


class FunctionRef(msgspec.Struct, frozen=True):
    """Function that the model may call, by the digest of its JSON schema."""

    name: str
    sha256: str


class ApprovalRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rule about the calls of a function: the last rule that fits a call decides."""

    function: str
    """Name of the function, as a pattern with `*` and `?`."""
    decision: Literal["ask", "allow", "refuse"] = "ask"
    """`ask`: the call waits for a person's approval."""
    arguments: dict[str, str] = {}
    """Patterns by argument: the rule fits only calls whose arguments, as text, fit all of them."""


class FunctionRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rule about which functions may be called at which place of a turn."""

    kind: Literal["init", "children", "parent", "conditional", "max_count", "continue", "terminal", "required"]
    """`init`: only such functions begin a turn. `children`: only the children follow the function. `parent`: the
    children are called only right after the function. `conditional`: the result of the function decides which one
    follows. `max_count`: the function is called at most `limit` times in a turn. `continue`: the turn continues after
    the function. `terminal`: the turn ends with it. `required`: the turn does not end before the function was called.
    """
    function: str
    children: list[str] = []
    outputs: dict[str, str] = {}
    """Function that follows, by result; for `conditional`."""
    default: str = ""
    """Function that follows any other result; empty: any function."""
    strict: bool = False
    """True: after any other result no function may follow, and the turn ends."""
    limit: int = 0
    """Maximum calls in a turn, for `max_count`."""
    arguments: dict[str, str] = {}
    """JSON text of arguments that replace the model's, by the function that they are for: the function itself for
    `init`, a child for `children`.
    """


class Section(msgspec.Struct, frozen=True):
    """One part of the system prompt."""

    name: str
    text: str
    """Template as it was given. The prompt contains its text as rendered when the agent was configured."""
    visible: bool = True
    """False: the section is stored, and not shown."""


CallingName = Literal["native", "schema", "text", "llama3", "zephyr", "airoboros", "neural-chat"]
"""Calling format: the endpoint's tools, a reply in a JSON schema, or JSON in plain text with the turns of ChatML or of
another family of models.
"""


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sampling parameters of a model, named as in requests; None is the endpoint's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """Maximum tokens of a reply."""
    max_completion_tokens: int | None = None
    """Maximum tokens of a reply, under the name that newer models of OpenAI require."""
    reasoning_effort: str | None = None


class AgentCreated(Event, frozen=True, kw_only=True):
    """The agent began. A deleted name may be created again: projections begin at the last of these events."""

    kind: ClassVar[str] = "agent_created"

    persona: str = ""
    """Name of the shipped persona; empty if the text was the user's own."""
    human: str = ""


class AgentConfigured(Event, frozen=True, kw_only=True):
    """The configuration of all later requests; `text` is the system prompt.
    A request depends on nothing outside the log.
    """

    kind: ClassVar[str] = "agent_configured"

    model: str
    window: int
    """Context window of the model, in tokens."""
    renderer: int
    """Version of the code that turns a context into a request."""
    zone: str = "UTC"
    """IANA name of the time zone in which the agent sees times."""
    preset: str = ""
    """Name of the shipped system prompt that `text` is; empty if it is the user's own."""
    functions: list[FunctionRef] = []
    schemas: dict[str, str] = {}
    """JSON schema text by sha256. Each is written once in a stream, in the first record that needs it."""
    verify_first: bool = False
    """First-message verification: the first reply must call `send_message` with a plain monologue."""
    steps_max: int = 20
    """Maximum model calls in one turn."""
    pressure_fraction: float = 0.75
    """Fraction of the window at which the agent is warned, once between two summaries."""
    summary_fraction: float = 0.75
    """Fraction of the messages' tokens that a summary replaces."""
    keep_last: int = 3
    """Number of newest messages that a summary leaves alone, as long as the rest can be made to fit."""
    sections: list[Section] = []
    """Sections that `text` was made of, in order; empty if `text` was given as a whole."""
    calling: CallingName = "native"
    """Calling format: the endpoint's tools, a reply constrained to a JSON schema, or JSON in plain text."""
    stream: bool = False
    """True if replies are requested as a stream."""
    sampling: Sampling = Sampling()
    summarizer: str = ""
    """Model that writes summaries; empty: the agent's own."""
    fallback: str = ""
    """Model that is called if the agent's own fails; empty: none."""
    first_attempts_max: int = 10
    """Maximum replies requested while the first message is verified."""
    monologue_chars_max: int = 0
    """Maximum characters of an inner monologue that the context shows; 0: all."""
    day_tokens_max: int = 0
    """Maximum tokens that the agent may use on one day (UTC); 0: no limit."""
    day_cost_max: float = 0.0
    """Maximum cost on one day (UTC), in the currency of the price list; 0: no limit."""
    deriver: str = ""
    """Deriver of memories while the agent is idle: `rules`, or a model's name; empty: nothing is derived by itself."""
    reflect_at: int = 150
    """Sum of the importance of new messages at which the agent reflects without waiting until it is idle for long."""
    rate_importance: bool = False
    """True if the deriver, a model, also rates the importance of messages."""
    derive_blocks: list[str] = []
    """Labels of the memory blocks that the deriver may rewrite."""
    asks: list[str] = []
    """Functions that wait for an approval by their own declaration, where no rule fits."""
    approvals: list[ApprovalRule] = []
    """Rules about which calls wait for a person's approval, or are refused."""
    approval_s: int = 604800
    """Seconds after which a call without a decision counts as refused; 0: never."""
    rules: list[FunctionRule] = []
    """Rules about which functions may be called at which place of a turn."""
    labels: list[str] = []
    """Labels by which agents are chosen together; no request shows them."""
    members: list[str] = []
    """Names of the members of a group, in the order in which they speak; its `model` names its rule."""
    manager: str = ""
    """Agent that speaks last in a supervised group, or names the next speaker in a dynamic one; empty: none."""
    rounds: int = 1
    """Number of times that each member may speak, on average, to one input of a group."""
    answer_minutes: int = 60
    """Minutes that a group waits for an answer of a member."""
    background: str = ""
    """Agent that is told what was said here, by its name as agents of the tenant say it; empty: none."""
    background_turns: int = 5
    """Number of turns after which that agent is told; 0: not by turns."""
    background_idle: int = 10
    """Minutes without a turn after which that agent is told; 0: not by time."""


class AgentForked(Event, frozen=True, kw_only=True):
    """The stream begins with another agent's first `parent_seq` records, which are read there;
    this record is the next one.
    """

    kind: ClassVar[str] = "agent_forked"

    parent: str
    parent_seq: int
    chain: str
    """Chain value of the parent at `parent_seq`, in hexadecimal."""


class AgentMoved(Event, frozen=True, kw_only=True):
    """The stream continues in another partition (`to`), or comes from one (`from`).

    This is the last record of the stream in the old partition, and the first in the new one.
    """

    kind: ClassVar[str] = "agent_moved"

    direction: Literal["to", "from"]
    partition: str
    """The other partition."""
    seq: int
    """Seq before this record's own."""
    chain: str
    """Chain value at that seq, in hexadecimal."""
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

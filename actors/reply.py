"""Read from the records what one input brought: the agent's answer, the calls it made, its tokens and their price.

Part of the public API: made by `Run.reply` and by `AgentSystem`. Nothing here is stored: the records are the truth, and
every property is computed from them.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Self

import msgspec

from everlog.actors.models.prices import PriceList
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.events import (
    BadInput,
    EverlogError,
    FunctionResult,
    MessageSent,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    Summary,
    TurnAbandoned,
    TurnCancelled,
    event_of,
    is_erased,
)

TEXT_SHOWN = 60
"""Characters of a text that a repr shows."""

_BILLED = (ModelReply, ReplyRejected, ModelFailed, ModelSwitched, Summary)
"""Events of requests to a model: the same that the SQL view `model_calls` has."""
_STOPPED = (TurnCancelled.kind, TurnAbandoned.kind)


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens of model calls, as the endpoint counted them; 0 if it counted none."""

    input: int = 0
    """Tokens of the requests."""
    output: int = 0
    """Tokens of the replies."""
    cached: int = 0
    """Tokens of the requests that the endpoint had in its cache."""

    @property
    def total(self) -> int:
        """Tokens of requests and replies together."""
        return self.input + self.output


class CallMade(msgspec.Struct, frozen=True):
    """A function that the agent called, with its result."""

    name: str
    arguments: str
    """JSON text as the model wrote it."""
    result: str
    """Text that the model got."""
    ok: bool
    """False: the call failed, and `result` says why."""


class Reply:
    """Answer of an agent to one input, and what it took.

    `str(reply)` is its text. Each property is computed from `records` when it is read.
    """

    def __init__(
        self,
        agent_id: str,
        event_id: str,
        records: Sequence[Record],
        value: Any = None,
        prices: PriceList | BadInput | None = None,
    ) -> None:
        """`value`: value of the command. `prices`: prices of tokens, or the error for which they are not known."""
        self.agent_id = agent_id
        """Name of the agent."""
        self.event_id = event_id
        """Id of the input. The first event that the input appended has the same id."""
        self.records = records
        """Records that followed from the input, in order."""
        self.value = value
        """Value of the command; for a message, its record."""
        self._prices = prices

    @property
    def text(self) -> str:
        """Messages that the agent sent, one per line; empty if it sent none."""
        return "\n".join(record.text or "" for record in self.records if record.type == MessageSent.kind)

    @property
    def turn(self) -> int:
        """Number of the turn; 0 if the command ran none."""
        if isinstance(self.value, Record):
            return self.value.turn
        return self.records[-1].turn if self.records else 0

    @property
    def calls(self) -> Sequence[CallMade]:
        """Functions that the agent called, in order, `send_message` left out."""
        asked: dict[str, str] = {}
        made = []
        for event in self._events():
            if isinstance(event, ModelReply):
                asked.update((call.id, call.arguments) for call in event.calls)
            elif isinstance(event, FunctionResult) and event.name != SEND_MESSAGE:
                made.append(CallMade(event.name, asked.get(event.call_id, ""), event.text, event.ok))
        return made

    @property
    def tokens(self) -> TokenCount:
        """Tokens of all calls of models, those for summaries included."""
        used = [event.usage for event in self._events() if isinstance(event, _BILLED)]
        return TokenCount(
            sum(max(usage.total - usage.completion, usage.prompt) for usage in used),
            sum(usage.completion for usage in used),
            sum(usage.cached for usage in used),
        )

    @property
    def cost(self) -> float | None:
        """Price of the tokens in USD, by the prices that `everlog cost` has; None if that of one model is unknown.

        Raises BadInput if `models.toml` cannot be read.
        """
        if isinstance(self._prices, BadInput):
            raise self._prices
        spent = 0.0
        for event in self._events():
            if isinstance(event, _BILLED) and event.usage.total:
                price = None if self._prices is None else self._prices.of(event.model)
                if price is None:
                    return None
                spent += price.cost(event.usage)
        return spent

    @property
    def stopped(self) -> str:
        """Reason for which the turn ended before the agent was done, such as a cancellation; empty: it was done."""
        return next((record.text or record.type for record in self.records if record.type in _STOPPED), "")

    def _events(self) -> Iterator[object]:
        return (event_of(record) for record in self.records if not is_erased(record.payload))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.agent_id!r}, {', '.join(self._facts())}: {shortened(self.text)!r}>"

    def _facts(self) -> list[str]:
        tokens = self.tokens
        facts = [f"turn {self.turn}", f"calls {len(self.calls)}", f"tokens {tokens.input} in, {tokens.output} out"]
        return [*facts, f"stopped: {self.stopped}"] if self.stopped else facts

    def _repr_html_(self) -> str:
        """Return the text, and one line of figures, for a notebook."""
        text = "<br>".join(escape(line) for line in self.text.split("\n"))
        return f"<div><b>{escape(self.agent_id)}</b> {text}<br><small>{escape(', '.join(self._facts()))}</small></div>"


class SendOutcome(Reply):
    """Outcome of one of many commands: a `Reply`, and the error that stopped the command, if there was one."""

    def __init__(
        self,
        agent_id: str,
        event_id: str,
        records: Sequence[Record],
        value: Any,
        error: EverlogError | None,
        prices: PriceList | BadInput | None = None,
    ) -> None:
        """`error`: see the attribute. The other parameters are those of a `Reply`."""
        super().__init__(agent_id, event_id, records, value, prices)
        self.error = error
        """Error that stopped the command before or during its work; None if the command succeeded."""

    @property
    def ok(self) -> bool:
        """True if the command succeeded."""
        return self.error is None

    def raise_for_error(self) -> Self:
        """Raise the error of the command, if there is one. Return the outcome."""
        if self.error is not None:
            raise self.error
        return self

    def _facts(self) -> list[str]:
        if self.error is None:
            return super()._facts()
        return [f"{type(self.error).__name__}: {shortened(str(self.error))}"]


def shortened(text: str) -> str:
    """Return the beginning of a text for a repr."""
    return text if len(text) <= TEXT_SHOWN else f"{text[: TEXT_SHOWN - 1]}…"

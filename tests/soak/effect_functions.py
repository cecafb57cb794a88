"""Functions whose calls are killed: each row of the matrix has one, and its outside effect is counted."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from everlog.actors.functions.tools import Tool, tool
from everlog.actors.mcp.call_outcome import Answer
from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.offered_tool import Offer, ServerHints, offer_of, offered_tool
from everlog.actors.mcp.server_connections import ServerConnections
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.memory.core_memory import Memory

FUNCTIONS = {
    "at_most_once": "pay", "idempotent": "book", "read_only": "look", "pure": "note", "model": "send_message",
    "server": "shop__pay", "approved": "order",
}  # fmt: skip
"""Function that is called in each row; in the row `model` the model call itself is the effect, that of the row `server`
is a function of an MCP server, and that of the row `approved` waits for an approval. Both act at most once.
"""
PAY = offered_tool("pay", "Pay.", {"type": "object", "properties": {"number": {"type": "integer"}}}, ServerHints())


def functions(act: Callable[..., str]) -> list[Tool]:
    """Return the function of each row; `act` is its outside effect."""

    @tool
    def pay(number: int) -> str:
        """Pay.

        Args:
            number: Of the round.
        """
        return act(number)

    @tool(effect="idempotent")
    def book(number: int, idempotency_key: str) -> str:
        """Book.

        Args:
            number: Of the round.
        """
        return act(number, idempotency_key)

    @tool(effect="read_only")
    def look(number: int) -> str:
        """Look.

        Args:
            number: Of the round.
        """
        return act(number)

    @tool
    def note(memory: Memory, number: int) -> str:
        """Note the round.

        Args:
            number: Of the round.
        """
        memory.append("human", f"round {number}")
        return act(number)

    @tool(approval=True)
    def order(number: int) -> str:
        """Order.

        Args:
            number: Of the round.
        """
        return act(number)

    shop = ServerConnections(lambda *_: session(act))
    return [pay, book, look, note, order, *functions_of("shop", ServerEntry(approval=False), [PAY], lambda: shop)]


class Shop:
    """A session with a server whose function is the outside effect."""

    def __init__(self, act: Callable[..., str]) -> None:
        self.act = act

    async def offer(self) -> Offer:
        return offer_of([PAY])

    async def call(self, _tool: str, arguments: Mapping[str, Any], *_: object) -> Answer:
        return Answer(self.act(arguments["number"]))


@asynccontextmanager
async def session(act: Callable[..., str]) -> AsyncIterator[Shop]:
    """Open a session with the server."""
    yield Shop(act)

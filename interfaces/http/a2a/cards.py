"""Describe agents, and the server itself, for A2A clients: how to reach them, and what they take.

A card says nothing of an agent's memory. The card of the server needs no key and names no agent; a client with a key
asks for the extended card, which lists the agents that the key sees.
"""

from collections.abc import Sequence
from importlib.metadata import version
from urllib.parse import quote

from everlog.events import UnknownAgent
from everlog.interfaces.http.a2a.shapes import (
    JSON_TEXT,
    PLAIN_TEXT,
    AgentCard,
    CardCapabilities,
    CardInterface,
    CardSkill,
)
from everlog.interfaces.http.a2a.surface import PREFIX, VERSION
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.store import is_agent

WELL_KNOWN = "/.well-known/agent-card.json"
LISTED_MAX = 1000
"""Most agents that the extended card lists."""
_KEY = {
    "httpAuthSecurityScheme": {"scheme": "Bearer", "description": "A key of `everlog keys`, if the server has keys."}
}


async def show_agent_card(call: HttpCall) -> AgentCard:
    """Return the card of an agent."""
    name = call.params["agent"]
    try:
        await call.service.ports.aside(call.opened, call.stream)
    except UnknownAgent as error:
        raise not_found(f"agent {name[:80]!r}") from error
    return _card(call, name, _path(name), [_skill("talk", name, f"Answers messages, as {name} remembers them.")])


async def show_server_card(call: HttpCall) -> AgentCard:
    """Return the card of the server, which names no agent."""
    return _card(call, "everlog", PREFIX, [_skill("talk", "Talk to an agent", _HOW)], extended=True)


async def server_card_of(call: HttpCall) -> AgentCard:
    """Return the card of the server for the sender of a call: with the agents that its key sees as skills."""
    streams = await call.service.ports.aside(call.service.system.store.agents)
    names = [call.shown(name) for name in sorted(streams) if is_agent(name) and call.names.owns(name)]
    skills = [_skill(name, name, f"{_base(call)}{_path(name)}{WELL_KNOWN}") for name in names[:LISTED_MAX]]
    general = _skill("talk", "Talk to an agent", _HOW)
    return _card(call, "everlog", PREFIX, [general, *skills], extended=True)


_HOW = (
    f"Send a message with the name of an agent as `tenant`, or use the card of the agent: {PREFIX}/NAME{WELL_KNOWN}. "
    "The extended card lists the agents."
)


def _path(name: str) -> str:
    return f"{PREFIX}/{quote(name, safe='')}"


def _base(call: HttpCall) -> str:
    """Return the address by which the client reached the server: a proxy that ends TLS says so in its header."""
    secured = call.request.headers.get("x-forwarded-proto") == "https"
    return f"{'https' if secured else call.request.url.scheme}://{call.request.headers['host']}"


def _skill(id: str, name: str, description: str) -> CardSkill:
    return CardSkill(id=id, name=name, description=description, tags=["memory", "conversation"])


def _card(call: HttpCall, name: str, path: str, skills: Sequence[CardSkill], *, extended: bool = False) -> AgentCard:
    what = "Agents with memory of their own." if extended else "An agent with a memory of its own."
    return AgentCard(
        name=name,
        description=f"{what} Each message is a task; a call that needs a person makes it input-required.",
        supported_interfaces=[
            CardInterface(url=f"{_base(call)}{path}", protocol_binding="JSONRPC", protocol_version=VERSION)
        ],
        version=version("everlog"),
        capabilities=CardCapabilities(streaming=True, extended_agent_card=extended),
        default_input_modes=[PLAIN_TEXT, JSON_TEXT],
        default_output_modes=[PLAIN_TEXT],
        skills=skills,
        security_schemes={"key": _KEY},
        security_requirements=[{"schemes": {"key": {"list": []}}}],
    )

"""The table of the A2A surface: cards, and the addresses to which calls go. The protocol has documents of its own."""

from everlog.interfaces.http.a2a.cards import WELL_KNOWN, show_agent_card, show_server_card
from everlog.interfaces.http.a2a.methods import answer_rpc
from everlog.interfaces.http.a2a.shapes import AgentCard, RpcCall
from everlog.interfaces.http.a2a.surface import PREFIX
from everlog.interfaces.http.core.routes import EVENT_STREAM, JSON, Route, RouteTable

_AGENT = f"{PREFIX}/{{agent}}"
_BOTH = (JSON, EVENT_STREAM)

A2A: RouteTable = tuple(
    route._replace(hidden=True)
    for route in (
        Route(
            "GET", WELL_KNOWN, show_server_card, "Describe the server to A2A clients", answer=AgentCard, is_open=True
        ),
        Route("GET", f"{_AGENT}{WELL_KNOWN}", show_agent_card, "Describe an agent to A2A clients", answer=AgentCard),
        Route("POST", _AGENT, answer_rpc, "Answer an A2A call about an agent", body=RpcCall, media=_BOTH),
        Route("POST", PREFIX, answer_rpc, "Answer an A2A call", body=RpcCall, media=_BOTH),
    )
)
"""All routes of the surface. A method says itself which role it needs."""

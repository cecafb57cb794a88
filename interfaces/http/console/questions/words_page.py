"""Show how an answer or a summary came about: its record, turn and input, and where its words were in sight before.

Equal words are a trace and no proof. The page says so, and leads to all that the model saw.
"""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.interfaces.http.console.agent_frame import AgentFrame, framed, page_of_agent, seq_in
from everlog.interfaces.http.console.page_response import redirect
from everlog.interfaces.http.console.talk_entries import entries_of
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.replay_console.word_origin import origin_of


async def show_words(call: HttpCall) -> Response:
    """Show how the words of an answer or of a summary came about. Other records have their own page."""
    given = call.params["seq"]
    seq = seq_in(given)

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        if not 1 <= seq <= view.seq:
            raise not_found(f"record {given[:20]!r} of the agent {frame.agent!r}")
        origin = origin_of(view, seq)
        entries = entries_of(iter(origin.near if origin else ()), frame.agent)
        return {"origin": origin, "entries": [one for one in entries if one.seq < seq]}

    values = await framed(call, read)
    if values["origin"] is None:
        return redirect(f"{values['frame'].path}/records/{seq}")
    return page_of_agent(call, "words", "words.html", values)

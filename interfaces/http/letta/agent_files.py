"""Write agents as agent files of Letta, and make agents from such files, for clients of Letta."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.events import BadInput
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.agent_labels import read_labels
from everlog.interfaces.http.letta.agents import NAMES_MAX
from everlog.interfaces.http.letta.letta_calls import agent_stream, alone, refused, viewed
from everlog.interfaces.http.letta.letta_forms import file_in, uploaded_form
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds
from everlog.interfaces.http.native.agents import check_models
from everlog.interfaces.http.runs.agent_digests import remember_stream
from everlog.interfaces.imports.letta_file_export import letta_file_of
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.interfaces.imports.read_conversations import named, read_agents
from everlog.interfaces.imports.restore_agents import restore_past


class LettaFileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of an export."""

    scrub_messages: bool = False
    """True: leave the messages out."""


class LettaImported(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that a file made, and the numbers of what was left out, by kind."""

    agent_ids: Sequence[str]
    left_out: Mapping[str, int]


async def export_agent(call: HttpCall) -> Response:
    """Write an agent as an agent file."""
    stream = await agent_stream(call)
    labels = await call.service.ports.aside(read_labels, call.service.system.store.root, stream)
    shown = call.shown(stream)
    file = await viewed(
        call, stream, lambda view: letta_file_of(view, name=shown, tags=labels.tags, description=labels.description)
    )
    if call.query.scrub_messages:
        for agent in file.content["agents"]:
            agent.update(messages=[], in_context_message_ids=[])
    return Response(file.encode(), media_type="application/json")


async def import_agents(call: HttpCall) -> LettaImported:
    """Make agents from an agent file. A repeat finds the agents that the first try made; the name of another agent gets
    a number.
    """
    async with uploaded_form(call) as form:
        source = file_in(form).filename or "the file"
        data = await file_in(form).read()
        wanted = {key: str(value) for key, value in form.items() if key != "file"}
    found = await call.service.ports.aside(read_agents, data, source)
    pasts = [_as_wanted(past, wanted) for past in found]
    for past in pasts:
        check_models(call, past.settings)
    ids, left_out = [], dict[str, int]()
    for name, past in named(pasts, wanted.get("name") or wanted.get("override_name"), source).items():
        async with alone(call, f"agent {call.names.inner(name)}"):
            ids.append(LettaIds(await _restored(call, name, past)).agent)
        for kind, count in past.left_out.items():
            left_out[kind] = left_out.get(kind, 0) + count
    return LettaImported(agent_ids=ids, left_out=left_out)


def _as_wanted(past: PastConversation, wanted: Mapping[str, Any]) -> PastConversation:
    """Return an agent of a file with the changes that the form asks for."""
    if wanted.get("strip_messages", "").lower() == "true":
        past = msgspec.structs.replace(past, messages=())
    if wanted.get("model"):
        past = msgspec.structs.replace(past, settings=msgspec.structs.replace(past.settings, model=wanted["model"]))
    return past


async def _restored(call: HttpCall, name: str, past: PastConversation) -> str:
    """Restore an agent under its name, or under the first number of it that is free. Return its stream."""
    system = call.service.system
    for number in range(1, NAMES_MAX + 1):
        stream = system.store.stream_of(call.names.inner(name if number == 1 else f"{name}-{number}"))
        taken = system.store.register_files.find(stream) is not None
        try:
            await restore_past(
                system, stream, past, by=call.caller.key_id, command="everlog serve", aside=call.service.ports.aside
            )
        except BadInput:
            if not taken:
                raise
            continue  # another agent has the name
        remember_stream(call.service, stream)
        return stream
    raise refused(f"There are {NAMES_MAX} agents of the name {name[:80]!r}.", 409)

"""Create, list, show, change and delete agents for clients of Letta.

Letta allows several agents of one name, everlog does not: a name that is taken gets a number, and the answer says it.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_ref import AgentRef
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.mail.mail_functions import OPTIONAL
from everlog.events import ApprovalRule, UnknownAgent
from everlog.events.times import MICROSECONDS, moment
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.agent_labels import (
    NO_LABELS,
    changed_labels,
    read_labels,
    write_labels,
)
from everlog.interfaces.http.letta.agent_states import AgentTimes, LettaAgent, agent_state, agent_states
from everlog.interfaces.http.letta.blocks import shared_block_named
from everlog.interfaces.http.letta.folders import source_of_folder
from everlog.interfaces.http.letta.letta_calls import (
    LettaNotice,
    LettaPageQuery,
    agent_ref,
    agent_stream,
    alone,
    ordered,
    page_of,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.models import model_names
from everlog.interfaces.http.letta.translation.agent_settings import LettaAgentBody, check_supported, settings_of_body
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, tool_id
from everlog.interfaces.http.native.agents import check_models
from everlog.interfaces.http.runs.agent_digests import remember_stream
from everlog.interfaces.http.runs.sdk_repeats import repeat_of
from everlog.interfaces.imports.letta_tool_rules import is_plain, rules_of

NAMES_MAX = 1000
"""Agents of one name."""
RECENT_US = 300 * MICROSECONDS
"""Age of an agent that a repeated request can have created, microseconds; more if the client waits for longer."""

_AGENTS = """
SELECT agent_id, name, epoch_us(first_recorded_at) AS created, epoch_us(last_recorded_at) AS updated FROM agents
WHERE current AND NOT deleted"""


class LettaAgentQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of agents."""

    name: str | None = None
    query_text: str | None = None
    tags: tuple[str, ...] = ()
    match_all_tags: bool = False
    order_by: Literal["created_at", "updated_at", "last_run_completion"] = "created_at"
    sort_by: str | None = None
    ascending: bool | None = None
    identity_id: str | None = None
    identifier_keys: tuple[str, ...] = ()


async def create_agent(call: HttpCall) -> LettaAgent:
    """Create an agent. A repeat of the request returns the agent that the first try created."""
    body: LettaAgentBody = call.body
    check_supported(body)
    settings = _with_functions(call, body, settings_of_body(body, await model_names(call), new=True))
    settings = _with_rules(body, settings, ())
    check_models(call, settings)
    shared = [await shared_block_named(call, block) for block in body.block_ids or ()]
    sources = [await source_of_folder(call, folder) for folder in (body.folder_ids or body.source_ids or ())]
    labels = changed_labels(NO_LABELS, body.description, body.tags, body.metadata)
    base = body.name or f"agent-{sha256(msgspec.json.encode(body)).hexdigest()[:8]}"
    async with alone(call, f"agent {call.names.inner(base)}"):
        stream, agent = await _new(call, base, settings)
        remember_stream(call.service, stream)
        if agent is None:
            return await agent_state(call, stream)
        await call.service.ports.aside(write_labels, call.service.system.store.root, stream, labels)
        if body.memory_blocks is not None or shared:
            await _keep_blocks(agent, {block.label for block in body.memory_blocks or ()})
        for name, label in shared:
            await agent.attach_block(name, label)
        for source in sources:
            await agent.attach_source(source)
        return await agent_state(call, stream)


def _with_rules(body: LettaAgentBody, settings: Settings, approvals: Sequence[ApprovalRule]) -> Settings:
    """Return the settings with the body's rules about functions. They replace all that Letta's client can see.

    `approvals`: rules of the agent about approvals.
    """
    if body.tool_rules is None:
        return settings
    rules, kept = rules_of(body.tool_rules), [rule for rule in approvals if not is_plain(rule)]
    return msgspec.structs.replace(settings, rules=rules.functions, approvals=[*kept, *rules.approvals])


async def _new(call: HttpCall, base: str, settings: Settings) -> tuple[str, AgentRef | None]:
    """Create an agent under a name, or under the first number of it that is free. Return its stream and a handle; None
    in place of the handle: an earlier try of the request created it.
    """
    for number in range(1, NAMES_MAX + 1):
        stream = call.service.system.store.stream_of(call.names.inner(base if number == 1 else f"{base}-{number}"))
        created = await _created(call, stream)
        if created is not None and _is_repeat(call, created):
            return stream, None
        if created is None:
            agent = await call.service.system.agent(stream, settings, by=call.caller.key_id, command="everlog serve")
            if agent.opened.born:
                return stream, agent
    raise refused(f"There are {NAMES_MAX} agents of the name {base[:80]!r}.", 409)


async def _keep_blocks(agent: AgentRef, labels: set[str]) -> None:
    """Remove the blocks that everlog gives to a new agent and that the client did not ask for."""
    for label in ("persona", "human"):
        if label not in labels:
            await agent.remove_block(label)


def _is_repeat(call: HttpCall, created: int) -> bool:
    repeat = repeat_of(call.request.headers)
    if repeat is None:
        return False
    return created >= call.service.ports.clock.now() - max(RECENT_US, repeat.span_us)


async def _created(call: HttpCall, stream: str) -> int | None:
    """Return the time at which an agent began, microseconds UTC; None if there is none of that name."""

    def looked(view: Any) -> int | None:
        if view.rows("standing")[0]["deleted"]:
            return None
        return min(row["seq"] for row in view.rows("configurations") if row["living"])

    try:
        seq = await viewed(call, stream, looked)
    except UnknownAgent:
        return None
    if seq is None:
        return None
    reader = call.service.system.store.reader(stream)
    record = await call.service.ports.aside(lambda: next(iter(reader.read(stream, seq, seq))))
    return int(record.recorded_at)


def _with_functions(call: HttpCall, body: LettaAgentBody, settings: Settings) -> Settings:
    """Return settings with the functions that a body names. Raises the refusal of one that does not exist here."""
    own = [tool.name for tool in (*BUILTIN, *call.service.system.tools)]
    known = {tool_id(name): name for name in (*own, *OPTIONAL)}
    names = list(body.tools or ())
    for given in body.tool_ids or ():
        if given not in known:
            raise refused(f"There is no function {given[:80]!r}.", 404)
        names.append(known[given])
    unknown = set(names) - set(known.values())
    if unknown:
        raise refused(
            f"There is no function {min(unknown)[:80]!r}. There are {', '.join(known.values())}. Functions are made in "
            "Python and given by the operator: `everlog serve --tools`."
        )
    optional = tuple(name for name in OPTIONAL if name in names)
    return msgspec.structs.replace(settings, optional_functions=optional) if optional else settings


async def list_agents(call: HttpCall) -> Sequence[LettaAgent]:
    """List agents, the newest first."""
    query: LettaAgentQuery = call.query
    if query.identity_id or query.identifier_keys:
        raise refused("There are no identities here.", 501)
    if query.ascending is not None:
        query = msgspec.structs.replace(query, order="asc" if query.ascending else "desc")
    rows = await over_fleet(call, lambda views, _position, _run: views.table(_AGENTS).to_pylist())
    root = call.service.system.store.root
    chosen = []
    for row in rows:
        stream = call.names.inner(row["agent_id"])
        if query.name is not None and row["name"] != query.name:
            continue
        if query.query_text and query.query_text.casefold() not in row["name"].casefold():
            continue
        if query.tags:
            tags = set((await call.service.ports.aside(read_labels, root, stream)).tags)
            if not (tags.issuperset(query.tags) if query.match_all_tags else tags & set(query.tags)):
                continue
        chosen.append((row, stream))
    key = "created" if query.order_by == "created_at" else "updated"
    listed = ordered(chosen, query, lambda one: (one[0][key], one[1]))
    page = page_of(listed, query, lambda one: LettaIds(one[1]).agent)
    times = {stream: AgentTimes(moment(row["created"]), moment(row["updated"])) for row, stream in page}
    return await agent_states(call, [stream for _, stream in page], times)


async def show_agent(call: HttpCall) -> LettaAgent:
    """Return an agent."""
    return await agent_state(call, await agent_stream(call))


async def update_agent(call: HttpCall) -> LettaAgent:
    """Change an agent; what is left out stays."""
    body: LettaAgentBody = call.body
    stream = await agent_stream(call)
    check_supported(body)
    for field in ("block_ids", "tools", "tool_ids", "folder_ids", "source_ids", "memory_blocks"):
        if getattr(body, field) is not None:
            raise refused(f"`{field}` cannot be changed here: attach and detach, one by one.")
    settings = settings_of_body(body, await model_names(call), new=False)
    if body.tool_rules is not None:
        config = await viewed(call, stream, lambda view: view.context().config)
        settings = _with_rules(body, settings, config.approvals)
    check_models(call, settings)
    agent = await agent_ref(call, stream)
    if settings != Settings():
        await agent.configure(settings)
    if body.name is not None and call.names.inner(body.name) != stream:
        await call.service.system.rename(stream, call.names.inner(body.name))
    root = call.service.system.store.root
    if body.description is not None or body.tags is not None or body.metadata is not None:
        labels = await call.service.ports.aside(read_labels, root, stream)
        labels = changed_labels(labels, body.description, body.tags, body.metadata)
        await call.service.ports.aside(write_labels, root, stream, labels)
    return await agent_state(call, stream)


async def delete_agent(call: HttpCall) -> LettaNotice:
    """Delete an agent: its records stay until they are erased."""
    stream = await agent_stream(call)
    await call.service.system.delete(stream)
    await call.service.ports.aside(write_labels, call.service.system.store.root, stream, NO_LABELS)
    return LettaNotice(message=f"{call.params['agent_id']} was deleted. Its records stay until they are erased.")


async def list_tags(call: HttpCall) -> Sequence[str]:
    """List the tags of all agents."""
    rows = await over_fleet(call, lambda views, _position, _run: views.table(_AGENTS).to_pylist())
    root = call.service.system.store.root
    found: set[str] = set()
    for row in rows:
        found |= set((await call.service.ports.aside(read_labels, root, call.names.inner(row["agent_id"]))).tags)
    return sorted(found)

"""Create, list, configure, fork, move, rename and delete agents."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.fork_agent import is_deleted
from everlog.actors.models.model_types import is_gguf
from everlog.actors.prompt import presets
from everlog.actors.reports.fleet_listing import FleetListing, list_agents
from everlog.events import AgentConfigured, BadInput
from everlog.events.times import microseconds_of, moment
from everlog.interfaces.http.core.moments import moment_of, time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse
from everlog.interfaces.wire.agents import (
    AgentPage,
    AgentQuery,
    AgentReport,
    AgentRow,
    AgentShape,
    ConfigureBody,
    CreateAgentBody,
    DeletedAgents,
    Done,
    ForkBody,
    ForkShape,
    MoveBody,
    RenameBody,
    settings_of,
)
from everlog.store import check_register, is_agent

LIMIT_MAX = 1000


async def list_all(call: HttpCall) -> AgentPage:
    """List agents by name, page by page."""
    query: AgentQuery = call.query
    if not 1 <= query.limit <= LIMIT_MAX:
        raise Refusal(400, "bad-input", f"`limit` is from 1 to {LIMIT_MAX}, not {query.limit}.")
    when = time_of_parameter(query.as_of, "as_of")
    until = None if when is None else microseconds_of(when, "as_of")
    store, names = call.service.system.store, call.names

    def listed() -> tuple[FleetListing, Mapping[str, str], Sequence[str], set[str]]:
        scan = store.register_files.scan()
        mine = {stream for stream in scan.routes if names.owns(stream)}
        faults = check_register(store, scan=scan).errors if query.check and not names.tenant else ()
        return list_agents(store, mine, until=until, deleted=query.deleted), store.aliases.shown(), faults, mine

    listing, given, faults, mine = await call.service.ports.aside(listed)
    rows = [row for row in listing.rows if call.shown(row["agent_id"]) > query.cursor]
    page = [
        AgentRow(
            agent=call.shown(row["agent_id"]),
            name=call.shown(given.get(row["agent_id"], row["agent_id"])),
            events=row["events"],
            messages=row["messages"],
            turns=row["turns"],
            head=row["head"],
            last_active=None if row["last_active"] is None else moment(row["last_active"]),
            deleted=row["deleted"],
            parent=None if row["parent"] is None else call.shown(row["parent"]),
            parent_seq=row["parent_seq"],
        )
        for row in rows[: query.limit]
    ]
    damaged = [] if names.tenant else list(dict.fromkeys([*listing.damaged, *faults]))
    unlisted: Sequence[str] = ()
    if listing.damaged and query.deleted and not query.cursor:
        listed_names = {row["agent_id"] for row in listing.rows}
        unlisted = sorted(call.shown(name) for name in mine if is_agent(name) and name not in listed_names)
    following = page[-1].agent if len(rows) > query.limit else None
    return AgentPage(agents=page, next=following, damaged=damaged, unlisted=unlisted)


async def create(call: HttpCall) -> Any:
    """Create an agent, or configure one that exists. 201: it is new; 200: it existed."""
    body: CreateAgentBody = call.body
    settings = settings_in(call, body.settings)
    if call.names.tenant and "persona" not in {block.label for block in settings.blocks}:
        # The persona says the name of its agent: the one that the tenant says.
        persona = InitialBlock("persona", presets.persona(settings.persona, body.name))
        settings = msgspec.structs.replace(settings, blocks=(*settings.blocks, persona))
    stream = call.service.system.store.stream_of(call.names.inner(body.name))
    defaults = {name: text for name, text in call.service.options.new_agents.items() if name not in body.settings}
    if defaults and await call.service.ports.aside(is_deleted, call.service.system.store, stream) is not False:
        settings = msgspec.structs.replace(settings, **defaults)
    agent = await call.service.system.agent(
        stream, settings, placement=body.placement, by=call.caller.key_id, command="everlog serve"
    )
    return JsonResponse(_report(call, agent.agent_id, agent.opened), 201 if agent.opened.born else 200)


async def show(call: HttpCall) -> AgentShape:
    """Return an agent at a moment: its settings and figures."""
    async with await call.service.system.view(call.stream, as_of=moment_of(call.query.as_of)) as view:
        messages, memories = await view.counts()
        standing = (await view.rows("standing"))[0]
        try:
            config: AgentConfigured | None = (await view.context()).config
        except BadInput:  # its configuration was erased: the next command configures it again
            config = None
        store, aside = call.service.system.store, call.service.ports.aside
        given = await aside(store.aliases.of, view.agent_id)
        return AgentShape(
            agent=call.shown(view.agent_id), as_of=view.seq, head=view.head, messages=messages, memories=memories,
            turn=standing["turn"], waiting=len(await view.rows("open_turns")), deleted=bool(standing["deleted"]),
            settings={} if config is None else _shown_settings(config),
            functions=[] if config is None else [function.name for function in config.functions],
            names=[call.shown(name) for name in given if name != view.agent_id],
            partition=await aside(store.partition_of, view.agent_id),
        )  # fmt: skip


async def configure(call: HttpCall) -> AgentReport:
    """Change settings of an agent."""
    body: ConfigureBody = call.body
    agent = await call.agent()
    return _report(call, agent.agent_id, await agent.configure(settings_in(call, body.settings)))


async def delete(call: HttpCall) -> DeletedAgents:
    """Delete an agent: its name can be used again, and its records stay until they are erased."""
    ended = await call.service.system.delete(call.stream, with_forks=call.query.with_forks)
    return DeletedAgents(deleted=[call.shown(stream) for stream in ended])


async def fork(call: HttpCall) -> ForkShape:
    """Create an agent that continues from a moment of this one. The cost does not depend on the length of the log."""
    body: ForkBody = call.body
    at = body.at if isinstance(body.at, int) else moment_of(body.at)
    name = call.names.inner(body.name)
    made = await call.service.system.fork(call.stream, name, at=at, placement=body.placement, by=call.caller.key_id)
    return ForkShape(
        agent=call.shown(made.agent_id), parent=call.shown(made.parent), parent_seq=made.parent_seq, head=made.head,
        closed=made.closed,
    )  # fmt: skip


async def move(call: HttpCall) -> Done:
    """Move an agent to a log of its own, or to one with other agents."""
    body: MoveBody = call.body
    await (await call.agent()).move(body.placement)
    return Done()


async def rename(call: HttpCall) -> Done:
    """Give an agent another name. The names that it had stay usable."""
    body: RenameBody = call.body
    await call.service.system.rename(call.stream, call.names.inner(body.name))
    return Done()


async def unload(call: HttpCall) -> Done:
    """Unload an agent from memory. `done` is false if it is at work."""
    stream = call.stream
    await call.service.ports.aside(call.opened, stream)
    return Done(done=await call.service.system.unload(stream))


def settings_in(call: HttpCall, given: dict[str, Any]) -> Settings:
    """Return settings by their names. Raises the refusal of settings that are none, or that the caller may not give."""
    try:
        settings = settings_of(given)
    except KeyError as error:
        raise Refusal(400, "bad-input", f"There is no setting {error.args[0][:80]!r}. Nothing was changed.") from error
    except msgspec.ValidationError as error:
        raise Refusal(400, "bad-input", f"A setting is not what it should be: {error}. Nothing was changed.") from error
    check_models(call, settings)
    return settings


def check_models(call: HttpCall, settings: Settings) -> None:
    """Raise the refusal of a tenant's settings that name a model by a file."""
    if call.names.tenant:
        for model in (settings.model, settings.summarizer, settings.fallback, settings.deriver):
            if model and is_gguf(model):
                raise Refusal(403, "forbidden", "Only the operator may name a model by a file. Nothing was changed.")


def _shown_settings(config: AgentConfigured) -> dict[str, Any]:
    left_out = {"functions", "schemas", "renderer", "by"}
    return {name: value for name, value in msgspec.to_builtins(_whole(config)).items() if name not in left_out}


def _whole(config: AgentConfigured) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__}


def _report(call: HttpCall, stream: str, opened: Any) -> AgentReport:
    return AgentReport(
        agent=call.shown(stream), created=opened.born, model=opened.model, zone=opened.zone, head=opened.head,
        turn=opened.turn, waiting=opened.waiting,
    )  # fmt: skip

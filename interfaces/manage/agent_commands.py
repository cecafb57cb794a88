"""The commands that create, rename and move an agent: create, rename, move. Called by `cli.command_run`."""

import asyncio
from argparse import Namespace

from everlog.actors.agent_system import AgentSystem
from everlog.actors.models.model_catalogue import catalogue_of, request_url
from everlog.actors.models.model_types import is_rule_based
from everlog.events import AgentConfigured, UnknownAgent, UsageError
from everlog.interfaces.common.bootstrap import agents_of, open_view, opened_agent, settings_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of, without_take_over
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.store import check_not_reserved, name_of, typed


def create(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `create`."""
    asyncio.run(_create(args, world))
    return 0


async def _create(args: Namespace, world: CommandEnvironment) -> None:
    name = name_of(args.name)
    check_not_reserved(name)
    settings = settings_of(args, world)
    async with agents_of(args, world) as system:
        if agent_exists(system, name):
            raise UsageError(f"The agent {name!r} exists already. `everlog chat {typed(name)}` talks to it.")
        async with opened_agent(args, system, name, settings) as agent:
            shape = {"agent": name, "events": agent.opened.head}
        with open_view(system, name, notify=False) as view:
            config = view.context().config
            shape |= {
                "model": config.model,
                "window": config.window,
                "preset": config.preset,
                "calling": config.calling,
            }
    if args.json:
        print(json_shapes.line(shape))
        return
    print(escape_line(f"Created {name}. Talk to it: everlog chat {typed(name)}"))
    if not is_rule_based(config.model):
        way = _WAYS.get(config.calling, f"in its text ({config.calling})")
        print(escape_line(f"{config.model} calls functions {way} ({_origin(args, config)})."))


_WAYS = {
    "native": "by the endpoint's tools (native)",
    "schema": "by replies that match a JSON schema (schema)",
}
"""Ways of calling functions, in words."""


def _origin(args: Namespace, config: AgentConfigured) -> str:
    """Return where the calling format of a new agent comes from, and how to change it."""
    if args.calling:
        return "as --calling says"
    found = catalogue_of(root_of(args)).found_of(config.model, request_url(args.base_url or ""))
    answered = found.said.get("tools", "") if found is not None else ""
    if not answered:
        return "the default; `everlog models test` asks the endpoint"
    return f"tested: {answered}; `everlog models test` tests again, --calling sets it"


def agent_exists(system: AgentSystem, name: str) -> bool:
    """Return True if an agent of that name exists and was not deleted."""
    try:
        with open_view(system, name, notify=False) as view:
            return not view.rows("standing")[0]["deleted"]
    except UnknownAgent:
        return False


def rename(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `rename`."""
    store = store_of(args, world)
    if server_of(args) is None:
        alias = store.aliases.give(args.name, args.new, world.clock.now())
        agent, called = alias.agent_id, alias.name
    else:
        asyncio.run(_rename(args, world))
        agent, called = store.stream_of(args.new), name_of(args.new)
    names = [name for name in store.aliases.of(agent) if name != agent]
    if args.json:
        print(json_shapes.line({"agent": agent, "name": called, "names": names}))
        return 0
    also = "" if called == agent else f" Its log keeps the name {agent}, which can still be used."
    print(escape_line(f"{agent} is now called {called}.{also}"))
    return 0


async def _rename(args: Namespace, world: CommandEnvironment) -> None:
    async with agents_of(args, world) as system:
        await system.rename(args.name, args.new)


def move(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `move`."""
    name = name_of(args.name)
    with without_take_over():
        asyncio.run(_move(args, world, name))
    server = server_of(args)
    partition = store_of(args, world).partition_of(name) if server is None else server.agent(name).partition
    shape = {"agent": name, "placement": args.placement, "partition": partition}
    print(
        json_shapes.line(shape) if args.json else escape_line(f"Moved {name} to {partition}; its log continues there.")
    )
    return 0


async def _move(args: Namespace, world: CommandEnvironment, name: str) -> None:
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog move")
        await agent.move(args.placement)

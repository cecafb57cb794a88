"""`everlog archive`: insert, list, show, update, delete and search memories in an agent's archival memory.

Called by `cli.command_run`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.memory.archival_rules import id_of
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Filters, Page
from everlog.events import BadInput, FunctionError
from everlog.interfaces.common.bootstrap import agents_of, opened_view, searching
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text, required_text
from everlog.interfaces.common.open_store import warn, without_take_over
from everlog.interfaces.output import json_shapes
from everlog.store import name_of

if TYPE_CHECKING:
    from everlog.interfaces.client.remote_search import RemoteSearcher

T = TypeVar("T")
LIST_RESULTS = 20
"""Memories on one page of a list."""


def insert(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive insert`."""
    text, tags = _text(args), tuple(map(check_text, args.tags or ()))
    command_id = world.ids.new(world.clock.now())

    async def inserted(system: AgentSystem, agent: AgentRef) -> tuple[str, str]:
        handle = system.handle(name_of(args.name), first_id=command_id)
        return agent.agent_id, await handle.archive.insert(text, tags)

    with without_take_over():
        name, kept = asyncio.run(_run_on_agent(args, world, inserted))
    known = kept != command_id  # a new memory has the id of the command that stored it
    if args.json:
        print(json_shapes.line({"agent": name, "memory": kept, "known": known}))
    else:
        print(f"Stored already, as {kept}." if known else f"Stored as {kept}.")
    return 0


def update(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive update`."""
    if args.no_tags and args.tags:
        args.fail("--tag cannot be given with --no-tags")
    text = _text(args)
    tags = list(map(check_text, args.tags)) if args.tags else [] if args.no_tags else None
    return _change(args, world, "Changed", lambda agent: agent.archive.update(args.memory, text, tags))


def delete(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive delete`."""
    return _change(args, world, "Deleted", lambda agent: agent.archive.delete(args.memory))


def _change(args: Namespace, world: CommandEnvironment, done: str, work: Callable[[AgentRef], Awaitable[None]]) -> int:
    """Change a memory, and print what was `done`. A view of the agent would make a server send the whole agent."""

    async def changed(_: AgentSystem, agent: AgentRef) -> str:
        await work(agent)
        return agent.agent_id

    with without_take_over():
        name = asyncio.run(_run_on_agent(args, world, changed))
    shape = {"agent": name, "memory": id_of(args.memory)}
    print(json_shapes.line(shape) if args.json else sanitize(f"{done} {shape['memory']}."))
    return 0


async def _run_on_agent(
    args: Namespace, world: CommandEnvironment, work: Callable[[AgentSystem, AgentRef], Awaitable[T]]
) -> T:
    """Open an existing agent and await `work` on it, which runs no turn."""
    async with agents_of(args, world) as system:
        agent = await system.agent(
            name_of(args.name), create=False, keep_configuration=True, command=f"everlog {args.command}"
        )
        return await work(system, agent)


def _text(args: Namespace) -> str:
    """Return the text to store. Exit with a usage error if the text is blank."""
    text = required_text(args).strip()
    if not text:
        args.fail("TEXT is empty")
    return text


def list_command(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive list`."""
    with opened_view(args, world) as view:
        searcher, filters = view.searcher(), _filters(args)
        page = _ask_page(lambda: searcher.listed(args.page - 1, LIST_RESULTS, filters))
    return _page(args, page, world, searcher.zone, "")


def search(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive search`."""
    if args.query is None or not check_text(args.query).strip():
        args.fail("QUERY is missing")
    with searching(args, world) as searcher:
        filters = _filters(args)
        page = _ask_page(lambda: asyncio.run(_find_page(searcher, args, filters)))
    if page.archive_down:
        warn("the archive does not answer: searched by keywords only, and without documents.")
    return _page(args, page, world, searcher.zone, args.query)


async def _find_page(searcher: "AgentSearcher | RemoteSearcher", args: Namespace, filters: Filters) -> Page:
    return await searcher.archival(args.query, args.page - 1, PAGE_RESULTS, filters)


def show(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive show`."""
    with opened_view(args, world) as view:
        searcher = view.searcher()
        found = asyncio.run(searcher.memory(id_of(args.memory)))
    if found is None:
        raise BadInput(
            f"{view.agent_id!r} has no memory {args.memory!r} as of seq {view.seq}. `everlog archive list "
            f"{view.agent_id}` lists its memories."
        )
    if args.json:
        print(json_shapes.line(json_shapes.hit(found)))
        return 0
    from everlog.interfaces.output import search_pages, show_pages

    look = search_pages.Look(zone=searcher.zone)
    show_pages.show(search_pages.one(json_shapes.hit(found), world.clock.now(), look=look))
    return 0


def _filters(args: Namespace) -> Filters:
    return Filters(
        tags=tuple(map(check_text, args.tags or ())), start=args.since, end=args.until, source=check_text(args.source)
    )


def _ask_page(ask: Callable[[], Page]) -> Page:
    """Return the page that `ask` finds. Raise BadInput for an invalid day or source."""
    try:
        return ask()
    except FunctionError as error:
        raise BadInput(str(error)) from error


def _page(args: Namespace, found: Page, world: CommandEnvironment, zone: str, query: str) -> int:
    shape = json_shapes.page(found)
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import search_pages, show_pages

    look = search_pages.Look(zone=zone, full=getattr(args, "full", False))
    show_pages.show(search_pages.results(query, shape, world.clock.now(), look))
    return 0

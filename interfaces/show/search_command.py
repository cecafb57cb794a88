"""`everlog search`: one query in one agent or in many, or a file of queries that are answered in one process.

Called by `cli.command_run`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Filters, Page, Place, in_place
from everlog.actors.reports.fleet_search import FleetQuery, SearchReports, search_agents, searched_agents
from everlog.events import BadInput, EverlogError, FunctionError
from everlog.events.times import moment
from everlog.interfaces.common.agent_patterns import is_pattern, select, selects_many
from everlog.interfaces.common.as_of import time_of_option
from everlog.interfaces.common.bootstrap import agents_of, archive_of, searching, system_of
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.open_store import lines_of, store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import ChosenServer, server_of
from everlog.interfaces.output import json_shapes, progress_bar

if TYPE_CHECKING:
    from everlog.interfaces.client.remote_search import RemoteSearcher

NAMED_MAX = 200
"""Names of agents that one request to a server holds."""
QUERY_RESULTS = 10
"""Results for each query of a file."""

PLACES: Mapping[str, Sequence[Place]] = {
    "everything": (), "messages": ("messages",), "archive": ("archive",), "documents": ("documents",),
    "derived": ("derived",), "recall": ("messages",), "archival": ("archive", "documents"),
}  # fmt: skip
"""Values of --in; the last two are those of MemGPT."""

WITHOUT: Mapping[str, Sequence[str]] = {
    "everything": (), "messages": ("tags", "source"), "recall": ("tags", "source"), "archive": ("role", "source"),
    "documents": ("role",), "archival": ("role",), "derived": ("role", "tags", "source"),
}  # fmt: skip
"""Filters that nothing in a place can pass, by value of --in."""

SearchFunction = Callable[[str, int, int, Filters], Awaitable[Page]]


def search(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog search` and return its exit code."""
    if args.all:
        if args.query is not None:
            args.fail(f"--all searches all agents: give QUERY without the NAME {args.name!r}")
        args.name, args.query = None, args.name
    elif args.name is None:
        args.fail("give NAME and QUERY, or --all and QUERY")
    if (args.query is None) == (args.queries is None):
        args.fail("give either a QUERY or --queries FILE")
    check_text(args.query or "")
    filters = filters_of(args)
    if args.all or (is_pattern(args.name) and selects_many([args.name], store_of(args, world).agents())):
        return _search_many(args, world, filters)
    queries = queries_in(args.queries) if args.queries else []
    with searching(args, world) as searcher:
        find = _search_of(args, searcher)
        try:
            if args.queries:
                asyncio.run(_answer(find, queries, filters))
                return 0
            found = asyncio.run(_find_page(find, args.query, args.page - 1, filters))
        except FunctionError as error:  # its text is written for the model, and suits people too
            raise BadInput(str(error)) from error
    _show(args, world, found, searcher.zone)
    return 0


def _search_of(args: Namespace, searcher: "AgentSearcher | RemoteSearcher") -> SearchFunction:
    return searcher.archival if args.place == "archival" else searcher.everything


def _search_many(args: Namespace, world: CommandEnvironment, filters: Filters) -> int:
    """Search all agents, or those that a pattern matches. An agent that cannot be read is an error and hides no other:
    the exit code is 1 then.
    """
    if args.queries:
        args.fail("--queries searches one agent: give its NAME")
    until, server = time_of_option(args, world), server_of(args)
    if server is not None and not args.words:
        found = asyncio.run(_find_there(args, world, server, filters, until))
        return _show_many(args, world, found, found.unread)
    store = store_of(args, world)
    names, damaged = searched_agents(store, until)
    faults = [*damaged, *(() if server is None else server.listing(until=until).damaged)]
    if not args.all:
        names = select(args, [args.name], names)
    archive = archive_of(args, world)
    system: LocalSystem = system_of(args, world, archive)
    wanted = FleetQuery(args.query, args.page - 1, PAGE_RESULTS, filters, until)

    def failed(name: str, error: EverlogError) -> None:
        faults.append(f"{name!r} was not searched: {error}")

    async def find() -> Page:
        try:
            with progress_bar.shown(f"searching {plural(len(names), 'agent')}") as moved:
                return await search_agents(system, names, wanted, SearchReports(failed, moved), in_place)
        finally:
            if archive is not None:
                await archive.close()

    try:
        found = asyncio.run(find())
    except FunctionError as error:
        raise BadInput(str(error)) from error
    return _show_many(args, world, found, faults)


async def _find_there(
    args: Namespace, world: CommandEnvironment, server: ChosenServer, filters: Filters, until: int | None
) -> Page:
    """Return a page of results that a server finds in all agents, or in those that the pattern matches."""
    names = None
    if not args.all:
        names = select(args, [args.name], [row["agent_id"] for row in server.listing(until=until).rows])
    if names is not None and len(names) > NAMED_MAX:
        raise BadInput(
            f"{args.name!r} matches {len(names):,} agents, and a server takes {NAMED_MAX} names. Narrow the pattern, "
            "or search --all."
        )
    as_of = None if until is None else moment(until)
    async with agents_of(args, world) as system:
        return await system.search(args.query, args.page - 1, PAGE_RESULTS, filters, agents=names, as_of=as_of)


def _show_many(args: Namespace, world: CommandEnvironment, found: Page, faults: Sequence[str]) -> int:
    """Print the errors of agents that were not searched, and the page. Return the exit code."""
    for fault in dict.fromkeys(faults):
        complain(fault)
    _show(args, world, found, "UTC", with_agent=True)
    return int(bool(faults))


def _show(args: Namespace, world: CommandEnvironment, found: Page, zone: str, *, with_agent: bool = False) -> None:
    """Print a page, as JSON with --json."""
    shape = json_shapes.page(found)
    if args.json:
        print(json_shapes.line(shape))
        return
    from everlog.interfaces.output import search_pages, show_pages

    look = search_pages.Look(zone=zone, scores=args.scores, full=args.full, with_agent=with_agent)
    show_pages.show(search_pages.results(args.query, shape, world.clock.now(), look))


async def _answer(find: SearchFunction, queries: Sequence[str], filters: Filters) -> None:
    """Print the results of each query as soon as they are found."""
    for query in queries:
        print(json_shapes.line(json_shapes.answer(query, await find(query, 0, QUERY_RESULTS, filters))))


async def _find_page(find: SearchFunction, query: str, page: int, filters: Filters) -> Page:
    return await find(query, page, PAGE_RESULTS, filters)


def filters_of(args: Namespace) -> Filters:
    """Return the filters of the results. Exit with a usage error for a filter that nothing in the place can pass."""
    if given := next((name for name in WITHOUT[args.place] if getattr(args, name)), None):
        args.fail(f"--{given.removesuffix('s')} finds nothing with --in {args.place}: leave one of them out")
    return Filters(
        roles=args.role,
        start=args.since,
        end=args.until,
        tags=tuple(map(check_text, args.tags or ())),
        source=check_text(args.source),
        places=PLACES[args.place],
        ended=args.ended,
    )


def queries_in(path: str) -> list[str]:
    """Return the queries of a file, one a line: text, or a JSON object with `query` or `question`. Raises BadInput."""
    return [_query(line, f"{path}, line {number}") for number, line in enumerate(lines_of(path), 1) if line.strip()]


def _query(line: bytes, place: str) -> str:
    try:
        text = line.decode().strip()
        value = msgspec.json.decode(text) if text.startswith("{") else {"query": text}
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadInput(f"{place}: {error}. Give text, or a JSON object with `query` or `question`.") from error
    query = value.get("query") or value.get("question")
    if not isinstance(query, str):
        raise BadInput(f"{place}: the JSON object needs a `query` or a `question` that is text.")
    return query

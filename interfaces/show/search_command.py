"""`everlog search`: one query, or a file of queries that are answered in one process.

Called by `cli.command_run`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Filters, Page
from everlog.events import BadInput, FunctionError
from everlog.interfaces.common.bootstrap import lines_of, searching
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.output import json_shapes

QUERY_RESULTS = 10
"""Results for each query of a file."""

SearchFunction = Callable[[str, int, int, Filters], Awaitable[Page]]


def search(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog search` and return its exit code."""
    if (args.query is None) == (args.queries is None):
        args.fail("give either a QUERY or --queries FILE")
    check_text(args.query or "")
    queries = queries_in(args.queries) if args.queries else []
    filters = filters_of(args)
    with searching(args, world) as view:
        searcher = view.searcher()
        find = searcher.archival if args.place == "archival" else searcher.recall
        try:
            if args.queries:
                asyncio.run(_answer(find, queries, filters))
                return 0
            shape = json_shapes.page(asyncio.run(_find_page(find, args.query, args.page - 1, filters)))
        except FunctionError as error:  # its text is written for the model, and suits people too
            raise BadInput(str(error)) from error
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(show_pages.search(args.query, shape, world.clock.now(), zone=searcher.zone, scores=args.scores))
    return 0


async def _answer(find: SearchFunction, queries: Sequence[str], filters: Filters) -> None:
    """Print the results of each query as soon as they are found."""
    for query in queries:
        print(json_shapes.line(json_shapes.answer(query, await find(query, 0, QUERY_RESULTS, filters))))


async def _find_page(find: SearchFunction, query: str, page: int, filters: Filters) -> Page:
    return await find(query, page, PAGE_RESULTS, filters)


def filters_of(args: Namespace) -> Filters:
    """Return the filters of the results. Exit with a usage error for a filter of the other kind of memory."""
    wrong = {"recall": ("tags", "source"), "archival": ("role",)}[args.place]
    if given := next((name for name in wrong if getattr(args, name)), None):
        other = "archival" if args.place == "recall" else "recall"
        args.fail(f"--{given.removesuffix('s')} works only with --in {other}")
    return Filters(
        roles=args.role,
        start=args.since,
        end=args.until,
        tags=tuple(map(check_text, args.tags or ())),
        source=check_text(args.source),
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

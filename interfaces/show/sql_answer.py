"""Answers of `everlog sql`: the views opened, one query answered, its position and its faults printed.

Used by `sql_command`, by the prompt `sql_prompt`, and by `report_command` and `/save` of a chat for their views and
output files.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from everlog.actors.gateway.gateway_limits import limits_from
from everlog.actors.gateway.store_prices import prices_of
from everlog.actors.memory.fleet_sql import fleet_views
from everlog.events import BadInput, UsageError
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import time_of_option
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.process_limits import cleaning_up_on_exit
from everlog.interfaces.common.server_choice import ChosenServer
from everlog.interfaces.output import sql_output
from everlog.interfaces.show.sql_text import with_parameters
from everlog.projections.fleet_views import FleetViews, QueryLimits
from everlog.projections.projection_constants import FLEET_MEMORY_MB
from everlog.store import FleetPosition, SkippedPartition, Snapshot, open_private

ROWS = 50
"""Rows of a table without --rows."""


def write_answer(args: Namespace, form: str, views: FleetViews, position: FleetPosition, query: str) -> None:
    """Run one query, and write its answer in the form that the arguments name. Raises BadInput, CorruptLog."""
    schema, batches = views.select(with_parameters(query, dict(args.params)))
    _write(args, form, schema, batches, position)


def server_answer(
    args: Namespace, world: CommandEnvironment, server: ChosenServer, form: str, query: str
) -> FleetPosition:
    """Have a server run one query, and write its answer in the form that the arguments name. Return the position of
    the answer. Raises BadInput.
    """
    check_memory_of_server(args)
    until = time_of_option(args, world)
    rows, position = server.query(
        query, agent=args.agent or "", params=dict(args.params), skip_damaged=args.skip_damaged,
        check=True, as_of=None if until is None else time_text.iso(until),
    )  # fmt: skip
    _write(args, form, rows.schema, rows.to_batches(), position)
    return position


def _write(
    args: Namespace, form: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], position: FleetPosition
) -> None:
    if form == "json":
        with _out(args) as out:
            sql_output.write_json(sql_output.head(schema, position), batches, out)
    elif form == "table":
        from everlog.interfaces.output import show_pages

        show_pages.show(sql_output.table(schema, batches, ROWS if args.rows is None else args.rows))
    else:
        with _out(args) as out:
            sql_output.write(form, schema, batches, out)


def check_memory_of_server(args: Namespace) -> None:
    """Raise UsageError for the memory of a query that is sent to a server."""
    if args.memory:
        raise UsageError("--memory is for a query that runs here: a server has limits of its own. Nothing was run.")


def complain_with_place(error: BadInput, views: FleetViews, query: str) -> None:
    """Print the error on stderr, after the line of the query in which DuckDB found it, and a caret below its place."""
    excerpt = views.excerpt(query)
    if excerpt:
        print(sanitize(excerpt), file=sys.stderr, flush=True)
    complain(error)


@contextmanager
def open_views(args: Namespace, world: CommandEnvironment) -> Iterator[tuple[FleetViews, Snapshot]]:
    """Open the views that the arguments name. This process lowers its priority, so that running agents are not slowed
    down.
    """
    world.lower_priority()
    world.hold_memory(_memory_mb(args))
    with reopened_views(args, world) as opened:
        yield opened


@contextmanager
def reopened_views(args: Namespace, world: CommandEnvironment) -> Iterator[tuple[FleetViews, Snapshot]]:
    """Open the views in a process whose priority and memory are limited already."""
    with (
        cleaning_up_on_exit(),
        fleet_views(
            store_of(args, world),
            as_of=time_of_option(args, world),
            agent=args.agent,
            skip_damaged=args.skip_damaged,
            limits=QueryLimits(memory_mb=_memory_mb(args)),
            prices=lambda: prices_of(root_of(args), limits_from(os.environ)),
        ) as (views, position),
    ):
        tell_left_out(position.left_out)
        yield views, position


def _memory_mb(args: Namespace) -> int:
    return FLEET_MEMORY_MB if args.memory is None else int(args.memory)


def tell_left_out(left_out: Iterable[SkippedPartition]) -> None:
    """Print to stderr the damaged partitions of which nothing was read."""
    for left in left_out:
        complain(f"{left.partition} is left out of the result: {left.reason}")


def print_position(position: FleetPosition, *, every: bool) -> None:
    """Print to stderr which records the result covers; with `every`, one more line for each partition. A tenant of a
    server is told no partitions.
    """
    parts = [plural(len(position.partitions), "partition")] if position.partitions or not position.records else []
    covered = ", ".join([*parts, plural(position.records, "record")])
    print(f"as of {time_text.clock(time_text.since_epoch(position.as_of))}, {covered}", file=sys.stderr, flush=True)
    for part in position.partitions if every else ():
        records = plural(part.records, "record")
        print(f"{part.partition}: up to commit {part.commit:,}, {records}", file=sys.stderr, flush=True)


@contextmanager
def _out(args: Namespace) -> Iterator[IO[Any]]:
    """Open the output: stdout, or a file that gets its name when it is complete. Raises BadInput."""
    if not args.out:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_output(args, Path(args.out), "--out") as out:
        yield out


@contextmanager
def open_output(args: Namespace, path: Path, option: str) -> Iterator[IO[bytes]]:
    """Open a file that the user named. It is written under another name first, so that no reader sees a part of it.

    Raises BadInput if the file cannot be written, or lies inside the store.
    """
    _check_outside_store(root_of(args), path, option)
    part = path.with_name(f".{path.name}.part")
    try:
        with open_private(part, "wb") as out:
            yield out
        part.replace(path)
    except OSError as error:
        raise BadInput(f"{option} {path}: it cannot be written ({error.strerror or error}).") from error
    finally:
        if part.exists():
            part.unlink()


def _check_outside_store(root: Path, path: Path, option: str) -> None:
    """Raise BadInput if the file or its folder lies inside the store, also by way of links."""
    try:
        places = path.resolve(), path.parent.resolve() / path.name
        inside = any(place.is_relative_to(root.resolve()) for place in places)
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(f"{option} {path}: it cannot be written ({error}).") from error
    if inside:
        raise BadInput(
            f"{option} {path} is inside the store {root}, where only everlog may write. Name a file elsewhere."
        )

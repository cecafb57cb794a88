"""`everlog models`: list models and their abilities, and test a model.

Called by `cli.command_run`.
"""

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.models.model_catalogue import catalogue_of, defaults_at, place_at, request_url
from everlog.actors.models.model_types import Abilities, ModelEntry, ProbeFindings, is_gguf, window_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.model_choice import model_address, probe_and_save
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import check_no_server, server_of
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.show_pages import show

ABILITIES = {
    "tools": "tools",
    "json_schema": "schema",
    "grammar": "grammar",
    "parallel_calls": "several calls",
    "streaming": "stream",
    "usage": "usage",
}
"""Abilities that are printed, with the word for each."""


def models(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `models`."""
    if args.action == "test":
        if not args.model:
            args.fail("MODEL is missing: everlog models test MODEL")
        check_no_server(args, "The test of a model")
        return _test(args, world)
    server = server_of(args)
    rows: Sequence[Mapping[str, Any]]
    if server is None:
        rows = list(rows_of(root_of(args)))
    else:
        from everlog.interfaces.wire.sql import ModelsShape

        rows = server.answer("/models", ModelsShape).models
    if args.json:
        print(json_shapes.line(rows))
    else:
        show(page(rows))
    return 0


def _test(args: Namespace, world: CommandEnvironment) -> int:
    root, name = root_of(args), args.model
    if name == OFFLINE:
        raise BadInput("`offline` is part of everlog and needs no test.")
    if is_gguf(name):
        from everlog.actors.models import gguf_model

        path = str(gguf_model.path_of(name))
        found = gguf_model.findings_of(path, catalogue_of(root), world.clock.now())
        gguf_model.check_extra_installed()
    else:
        place = model_address(name, args.base_url, root)
        url = request_url(place.url)
        if world.probe is None:
            raise BadInput("Testing an endpoint is not available in this process.")
        found = probe_and_save(place.name, url, world, root)
    known = defaults_at(root, found.model, found.url)
    at = time_text.iso(found.at)
    shown = {**msgspec.to_builtins(found), "at": at, "abilities": _abilities(found.abilities), "calling": known.calling}
    if args.json:
        print(json_shapes.line(shown))
    else:
        show(test_page(found, known.calling or ""))
    if found.fault and not args.json:
        complain(found.fault)
    return int(bool(found.fault))


_FREE = ModelEntry(price_in=0, price_out=0, price_cached=0)
"""Prices of the offline model, which runs in the process of its agent."""


def rows_of(root: Path) -> Iterator[dict[str, Any]]:
    """Yield a row in JSON for each known model, the offline model first."""
    catalogue = catalogue_of(root)
    yield _row(OFFLINE, "", "", window_of(OFFLINE), "native", Abilities(tools=True), _FREE, None)
    seen: set[tuple[str, str]] = set()
    for name, url in [*((name, "") for name in catalogue.models), *_served(catalogue.found)]:
        place = place_at(root, name, url)
        at = "" if is_gguf(name) else request_url(place.url)
        if (place.name, at) in seen:
            continue
        seen.add((place.name, at))
        try:
            known = defaults_at(root, name, url)
        except BadInput as error:  # models.toml names a file that does not exist
            complain(error)
            continue
        found = catalogue.found_of(place.name, at)
        entry = catalogue.models.get(name) or ModelEntry()
        can = (
            Abilities(json_schema=True, streaming=True, usage=True)
            if is_gguf(name)
            else catalogue.abilities(place.name, at)
        )
        yield _row(place.name, place.endpoint, at, known.window, known.calling, can, entry, found)


def _served(found: Iterable[ProbeFindings]) -> Iterator[tuple[str, str]]:
    for each in found:
        yield each.model, each.url
        yield from ((name, each.url) for name in each.models)


def _row(
    name: str, endpoint: str, url: str, window: int | None, calling: str | None, can: Abilities, entry: ModelEntry,
    found: ProbeFindings | None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "model": name,
        "endpoint": endpoint or None,
        "url": url or None,
        "window": window,
        "calling": calling,
        "abilities": _abilities(can),
        "price_in": entry.price_in,
        "price_out": entry.price_out,
        "price_cached": entry.price_cached,
        "tested": time_text.iso(found.at) if found and found.at else None,
        "server": found.server or None if found else None,
    }


def _abilities(can: Abilities) -> dict[str, bool | None]:
    return {name: getattr(can, name) for name in can.__struct_fields__}


def page(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return the list of models as a table."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in ("model", "served at", "window", "calling", "can", "price per 1M", "tested"):
        table.add_column(column, justify="right" if column == "window" else "left", overflow="fold")
    for row in rows:
        table.add_row(
            Text(sanitize(row["model"]), "bold"),
            Text(
                sanitize(
                    row["endpoint"]
                    or row["url"]
                    or ("in this process" if row["model"] == OFFLINE or is_gguf(row["model"]) else "")
                )
            ),
            "–" if row["window"] is None else f"{row['window']:,}",
            row["calling"] or "–",
            _ability_text(row["abilities"]),
            _price(row),
            "–" if row["tested"] is None else row["tested"][:10],
        )
    if len(rows) > 1:
        return table
    hint = "No other model is known yet. `everlog models test MODEL --base-url URL` tests a model of an endpoint."
    return Group(table, Text(hint, "dim"))


def _ability_text(abilities: Mapping[str, bool | None]) -> Text:
    """Return the abilities of a model: present ones in green, missing ones dim with "no"; unknown ones are left out."""
    words = Text()
    for name, word in ABILITIES.items():
        if abilities[name] is not None:
            words.append(word if abilities[name] else f"no {word}", "green" if abilities[name] else "dim")
            words.append("  ")
    words.rstrip()
    return words if words.plain else Text("–")


def _price(row: Mapping[str, Any]) -> str:
    prices = row["price_in"], row["price_out"]
    if prices == (0, 0) or (prices == (None, None) and is_gguf(row["model"])):
        return "free"
    if prices == (None, None):
        return "–"
    return f"{row['price_in'] or 0:g} in, {row['price_out'] or 0:g} out"


def test_page(found: ProbeFindings, calling: str) -> RenderableType:
    """Return the result of a test as a table."""
    table = Table.grid(padding=(0, 2))
    table.add_row("model", Text(sanitize(found.model), "bold"))
    if found.url:
        table.add_row("served at", Text(sanitize(f"{found.url}{f' ({found.server})' if found.server else ''}")))
    if not found.fault:
        table.add_row("window", "not reported" if found.window is None else plural(found.window, "token"))
        table.add_row("can", _ability_text(_abilities(found.abilities)))
        table.add_row("calling", calling or "unknown (default: native)")
    for question, said in found.said.items():
        table.add_row(Text(question, "dim"), Text(sanitize(said), "dim"))
    return table

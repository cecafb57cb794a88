"""Machine-readable output of the command line.

`docs/reference/cli.md` promises these shapes: keys are added, never changed.

Used by the commands that have --json.
"""

from collections.abc import Mapping, Sequence
from typing import IO, Any

import msgspec

from everlog.actors.ports.effects import Hit, Page
from everlog.events import EverlogError, Record
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.time_text import iso

JsonObject = dict[str, Any]

_json = msgspec.json.Encoder()


def line(shape: object) -> str:
    """Return `shape` as one line of JSON."""
    return _json.encode(shape).decode()


def event(record: Record) -> JsonObject:
    """Return a record: the columns of its envelope, times in ISO 8601, and the payload as an object."""
    shape = msgspec.structs.asdict(record)
    shape["recorded_at"] = iso(record.recorded_at)
    shape["said_at"] = None if record.said_at is None else iso(record.said_at)
    shape["payload"] = msgspec.Raw(record.payload.encode())
    return shape


def hit(found: Hit) -> JsonObject:
    """Return one result of a search."""
    until = None if found.until is None else iso(found.until)
    return {**msgspec.to_builtins(found), "place": found.place, "time": iso(found.at), "until": until}


def page(found: Page) -> JsonObject:
    """Return one page of results. Its number counts from 1, as --page does; `Page.page` counts from 0."""
    return {
        "total": found.total,
        "page": found.page + 1,
        "pages": found.pages,
        "by_meaning": found.by_meaning,
        "archive_down": found.archive_down,
        "reranked": found.reranked,
        "reranker_down": found.reranker_down,
        "results": [hit(result) for result in found.results],
    }


def answer(query: str, found: Page) -> JsonObject:
    """Return the first results of one of many queries."""
    return {"query": query, "total": found.total, "results": [hit(result) for result in found.results]}


def agent(row: Mapping[str, Any]) -> JsonObject:
    """Return one row of a listing of agents, with the parent of a fork, and the group if the listing has groups."""
    group = {"group": row["group"]} if "group" in row else {}
    return {
        "agent": row["agent_id"],
        "name": row["name"],
        "events": row["events"],
        "messages": row["messages"],
        "turns": row["turns"],
        "last_active": iso(row["last_active"]),
        "parent": row["parent"],
        "parent_seq": row["parent_seq"],
        **group,
    }


def memory(name: str, as_of: int, rows: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return core memory: rows of the projection `core_memory`, in the order given."""
    keys = ("label", "value", "limit", "seq", "description", "read_only", "origin")
    return {"agent": name, "as_of": as_of, "blocks": [{key: row[key] for key in keys} for row in rows]}


def pressure(name: str, as_of: int, row: Mapping[str, Any], estimate: int, summaries: int) -> JsonObject:
    """Return memory pressure: a row of the projection, and the estimated tokens of the next request.

    The numbers are 0 if the row is empty or has no window, because the configuration was erased.
    """
    return {
        "agent": name,
        "as_of": as_of,
        "tokens": row.get("tokens", 0),
        "cached": row.get("cached", 0),
        "estimate": estimate,
        "window": row.get("window") or 0,
        "fraction": row.get("fraction", 0.0),
        "warned": row.get("warned", False),
        "summary_seq": row.get("summary_seq"),
        "summaries": summaries,
    }


def pressure_row(row: Mapping[str, Any]) -> JsonObject:
    """Return the memory pressure of one agent of a listing, without an estimate of the next request."""
    keys = ("tokens", "fraction", "warned", "summary_seq", "summaries", "used")
    return {
        "agent": row["agent_id"],
        "as_of": row["head"],
        "window": row["window"] or 0,
        **{key: row[key] for key in keys},
    }


def cost(row: Mapping[str, Any]) -> JsonObject:
    """Return the tokens and costs of one agent of a listing."""
    keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "tokens", "cost", "unpriced", "estimated")
    return {"agent": row["agent_id"], **{key: row[key] for key in keys}}


def context(name: str, as_of: int, tokens: int, window: int, numbered: Sequence[tuple[int, JsonObject]]) -> JsonObject:
    """Return the chat messages that the model would see, each with the seq of its record (0: the system message)."""
    return {
        "agent": name,
        "as_of": as_of,
        "tokens": tokens,
        "window": window,
        "messages": [{"seq": seq, **message} for seq, message in numbered],
    }


def size(count: int) -> str:
    """Return a number of bytes for people, in powers of 1,000: 812 B, 12.3 kB, 1.2 GB."""
    if count < 1000:
        return f"{count} B"
    power = next((power for power in (1, 2, 3) if count < 999_950 * 1000 ** (power - 1)), 4)
    return f"{count / 1000**power:,.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


class JsonLines:
    """Interface for programs: one line of JSON for each record, flushed as soon as the record is durable."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def on_records(self, records: Sequence[Record]) -> None:
        """Write the records and flush."""
        for record in records:
            self._out.write(line(event(record)) + "\n")
        self._out.flush()

    def on_error(self, error: EverlogError) -> None:
        """Print the error to stderr."""
        complain(error)

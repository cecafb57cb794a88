"""Read and write the operator's file of MCP servers, `mcp.toml`: errors name the line and the field.

The file is in the store, beside the models, or where EVERLOG_MCP says. It names programs that are run, so one that
others can write to is refused. A file that holds a secret, not just the name of a variable, is refused too.
"""

import math
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from everlog.actors.mcp.function_names import SERVER, SERVER_CHARS_MAX
from everlog.actors.mcp.operator_file import (
    LOOPBACK,
    check_owner,
    header_of,
    text_in,
    text_of,
    toml_text,
    toml_value,
    with_table,
    without_table,
)
from everlog.actors.mcp.server_entry import CALL_CAP_S, ServerEntry
from everlog.actors.models.models_toml import KEY_NAME, SECRET, texts_in
from everlog.events import BadInput
from everlog.store import change_whole

SERVERS = "mcp.toml"
"""Name of the file, in the store."""
VARIABLE = "EVERLOG_MCP"
TABLE = "servers"

_ONLY_NAMES = (
    "secrets stay in the environment, and none may stand in this file: name a variable in `env`, `token` or `headers`. "
    "If it was a secret, make a new one"
)
_CREDENTIAL = re.compile(r"(?i)(?:^|[-_])(?:api[-_]?key|token|secret|password|passwd|key)=\S+|://[^/\s@]+:[^/\s@]+@")
"""Forms of an argument that gives a program a secret."""


def servers_file(root: Path) -> Path:
    """Return the path of the file of servers: EVERLOG_MCP, else `mcp.toml` in the store."""
    named = os.environ.get(VARIABLE, "")
    return Path(named).expanduser() if named else root / SERVERS


def servers_of(root: Path) -> Mapping[str, ServerEntry]:
    """Return the servers that the operator of a store names. Raise BadInput, StoreError."""
    path = servers_file(root)
    text = text_of(path)
    if text:
        check_owner(path)
    return parse_servers(text, str(path))


def server_of(root: Path, name: str) -> ServerEntry:
    """Return one server. Raise BadInput, with the names that there are."""
    servers = servers_of(root)
    if name not in servers:
        known = f"there are {', '.join(servers)}" if servers else "the file names none: `everlog mcp add` adds one"
        raise BadInput(f"There is no MCP server {name[:80]!r} in {servers_file(root)}; {known}.")
    return servers[name]


def parse_servers(text: str, path: str) -> Mapping[str, ServerEntry]:
    """Return the servers of a file, by name. Raise BadInput, whose text repeats no value that could be a secret."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is no TOML: {error}. Nothing was read of it.") from error
    if foreign := sorted(tables.keys() - {TABLE}):
        raise _fault(path, text, foreign[:1], "there are tables [servers.NAME] here, and no others")
    table = tables.get(TABLE, {})
    if not isinstance(table, dict):
        raise _fault(path, text, [TABLE], "tables [servers.NAME] were expected")
    return {name: _entry(name, value, path, text) for name, value in table.items()}


def _entry(name: str, value: Any, path: str, text: str) -> ServerEntry:
    if not SERVER.fullmatch(name):
        raise _fault(
            path, text, [TABLE, name],
            f"a name of 1 to {SERVER_CHARS_MAX} letters, digits, - and _ was expected, without two of these in a row",
        )  # fmt: skip
    for where, each in texts_in(value, [TABLE, name]):
        if SECRET.search(each) or _CREDENTIAL.search(each):
            raise _fault(path, text, where, f"what stands there looks like a secret; {_ONLY_NAMES}")
    try:
        entry = msgspec.convert(value, ServerEntry)
    except msgspec.ValidationError as error:
        said, _, at = str(error).partition(" - at `$")
        inner = [part for part in at.rstrip("`").split(".") if part]
        raise _fault(path, text, [TABLE, name, *inner], said[:1].lower() + said[1:]) from error
    _check(entry, [TABLE, name], path, text)
    return entry


def _check(entry: ServerEntry, where: list[str], path: str, text: str) -> None:
    if bool(entry.command) == bool(entry.url):
        raise _fault(path, text, where, "either `command` or `url` was expected")
    program_only, address_only = entry.args or entry.env or entry.folder, entry.token or entry.headers
    if (entry.url and program_only) or (entry.command and address_only):
        raise _fault(
            path, text, where, "`args`, `env` and `folder` belong to `command`; `token` and `headers` belong to `url`"
        )
    names = [*(("env", one) for one in entry.env), *(("headers", one) for one in entry.headers.values())]
    for field, variable in [*names, *([("token", entry.token)] if entry.token else [])]:
        if not KEY_NAME.fullmatch(variable):
            raise _fault(
                path, text, [*where, field],
                f"the name of an environment variable was expected, such as GITHUB_TOKEN; {_ONLY_NAMES}",
            )  # fmt: skip
    for field in ("connect_s", "call_s"):
        if not 0 < getattr(entry, field) <= CALL_CAP_S or math.isnan(getattr(entry, field)):
            raise _fault(
                path, text, [*where, field], f"a number of seconds above 0, and at most {CALL_CAP_S:g}, was expected"
            )
    if entry.url:
        _check_url(entry, where, path, text)


def _check_url(entry: ServerEntry, where: list[str], path: str, text: str) -> None:
    try:
        parts = urlsplit(entry.url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        raise _fault(path, text, [*where, "url"], "an address such as https://example.com/mcp was expected") from None
    if parts.username is not None or parts.password is not None or parts.query:
        expected = f"an address without a name, password or query was expected; {_ONLY_NAMES}"
        raise _fault(path, text, [*where, "url"], expected)
    if not usable:
        raise _fault(path, text, [*where, "url"], "an address such as https://example.com/mcp was expected")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and (entry.token or entry.headers):
        raise _fault(
            path, text, [*where, "url"],
            "an address with https was expected: with http, everybody on the way can read the secret that goes with it",
        )  # fmt: skip


def add_server(root: Path, name: str, entry: ServerEntry) -> None:
    """Write a server at the end of the file. All other lines stay. Raise BadInput if the name is taken or a value is
    not what the file may hold.
    """
    path = servers_file(root)
    servers_of(root)  # checks whose file it is

    def added(content: bytes | None) -> bytes:
        before = text_in(content, path)
        if name in parse_servers(before, str(path)):
            raise BadInput(f"There is an MCP server {name!r} already. Remove it first, or take another name.")
        after = with_table(before, entry_text(name, entry))
        parse_servers(after, str(path))
        return after.encode()

    change_whole(path, added)


def remove_server(root: Path, name: str) -> None:
    """Remove the tables of a server from the file. All other lines stay. Raise BadInput if there is none."""
    path = servers_file(root)
    server_of(root, name)

    def removed(content: bytes | None) -> bytes:
        after = without_table(text_in(content, path), [TABLE, name])
        if name in parse_servers(after, str(path)):
            raise BadInput(
                f"{path} names the server {name!r} in a form that everlog does not write. Remove it by hand."
            )
        return after.encode()

    change_whole(path, removed)


def entry_text(name: str, entry: ServerEntry) -> str:
    """Return the table of a server, as the file holds it."""
    fields = {
        field: value
        for field, value in msgspec.to_builtins(entry).items()
        if value != msgspec.to_builtins(ServerEntry())[field] and field != "tools"
    }
    lines = [f"[{TABLE}.{name}]", *(f"{field} = {toml_value(value)}" for field, value in fields.items())]
    for pattern, rule in entry.tools.items():
        said = {key: value for key, value in msgspec.to_builtins(rule).items() if value is not None}
        lines += [
            "",
            f"[{TABLE}.{name}.tools.{toml_text(pattern)}]",
            *(f"{k} = {toml_value(v)}" for k, v in said.items()),
        ]
    return "\n".join(lines) + "\n"


def _fault(path: str, text: str, where: list[str], expected: str) -> BadInput:
    line = _line_of(text, where)
    shown = ".".join(part if re.fullmatch(r"[\w\[\]-]+", part) else f'"{part}"' for part in where)
    return BadInput(f"{path}{f', line {line}' if line else ''}: {shown}: {expected}. Nothing was read of it.")


def _line_of(text: str, where: list[str]) -> int:
    """Return the line of a field, or of its table if the field is not found; 0 if neither is found."""
    found, inside = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            header = header_of(line)
            inside = header[:2] == where[:2]
            found = number if header == where[: len(header)] else found
        elif inside and len(where) > 2 and re.match(rf"\s*[\"']?{re.escape(where[2])}[\"']?\s*[.=]", line):
            return number
    return found

"""Read and write the operator's file of remote agents, `a2a.toml`: who may be asked, and how.

The file is in the store. An address may get a secret, so a file that others can write to is refused, and so is one that
holds a secret instead of the name of a variable. A remote agent's words about itself come into the file once, when the
operator adds it: they stand in `description`, where the operator can change them, and no model reads any others.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from everlog.actors.mcp.function_names import SERVER, SERVER_CHARS_MAX
from everlog.actors.mcp.operator_file import (
    LOOPBACK,
    check_owner,
    text_in,
    text_of,
    toml_value,
    with_table,
    without_table,
)
from everlog.actors.models.models_toml import KEY_NAME, SECRET, texts_in
from everlog.events import BadInput
from everlog.store import change_whole

FILE = "a2a.toml"
"""Name of the file, in the store."""
TABLE = "agents"
WELL_KNOWN = "/.well-known/agent-card.json"
CALL_S = 300.0
"""Default of `call_s`."""
CALL_CAP_S = 3600.0
DESCRIPTION_CHARS_MAX = 1000
"""Characters of `description`: it is part of every request to the model."""


class RemoteAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent of another program. Secrets are named, never written."""

    card: str
    """Address of its card, or the address below which the card is at its well-known place."""
    description: str = ""
    """Text for models: the things that it can be asked for."""
    token: str = ""
    """Name of the variable whose value is sent as `Authorization: Bearer VALUE`."""
    headers: Mapping[str, str] = {}
    """Names of variables by header, for agents that want another one."""
    call_s: float = CALL_S
    """Seconds in which it answers."""
    approval: bool = True
    """True: each question to it waits for a person's approval, because words leave the machine."""
    repeats: bool = False
    """True: it takes a message with the same id once, so a question that was cut off is sent again. everlog does."""

    def card_url(self) -> str:
        """Return the address of the card itself."""
        return self.card if self.card.endswith(".json") else self.card.rstrip("/") + WELL_KNOWN

    def origin(self) -> tuple[str, str, int]:
        """Return scheme, host and port of the card: the agent is spoken to there alone."""
        return origin_of(urlsplit(self.card))

    def missing_variable(self, environment: Mapping[str, str]) -> str:
        """Return the name of a variable that the entry names and the environment lacks; empty if there is none."""
        wanted = [*([self.token] if self.token else []), *self.headers.values()]
        return next((variable for variable in wanted if variable not in environment), "")


def origin_of(parts: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of an address."""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def remote_agents(root: Path) -> Mapping[str, RemoteAgent]:
    """Return the remote agents that the operator of a store names. Raise BadInput, StoreError."""
    path = root / FILE
    text = text_of(path)
    if text:
        check_owner(path)
    return parse_agents(text, str(path))


def remote_agent(root: Path, name: str) -> RemoteAgent:
    """Return one remote agent. Raise BadInput, with the names that there are."""
    agents = remote_agents(root)
    if name not in agents:
        known = f"there are {', '.join(agents)}" if agents else "the file names none: `everlog a2a add` adds one"
        raise BadInput(f"There is no remote agent {name[:80]!r} in {root / FILE}; {known}.")
    return agents[name]


def parse_agents(text: str, path: str) -> Mapping[str, RemoteAgent]:
    """Return the agents of a file, by name. Raise BadInput, whose text repeats no value that could be a secret."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is no TOML: {error}. Nothing was read of it.") from error
    for where, each in texts_in(tables, []):
        if SECRET.search(each):
            raise _fault(path, where, "what stands there looks like a secret; name a variable in `token` or `headers`")
    if foreign := sorted(tables.keys() - {TABLE}):
        raise _fault(path, foreign[:1], "there are tables [agents.NAME] here, and no others")
    try:
        agents = msgspec.convert(tables.get(TABLE, {}), dict[str, RemoteAgent])
    except msgspec.ValidationError as error:
        said, _, at = str(error).partition(" - at `$")
        raise _fault(path, [TABLE, *filter(None, re.split(r"[.`]", at))], said[:1].lower() + said[1:]) from error
    for name, agent in agents.items():
        for field, expected in _faults(name, agent):
            raise _fault(path, [TABLE, name, field], expected)
    return agents


def _faults(name: str, agent: RemoteAgent) -> Iterator[tuple[str, str]]:
    """Yield the fields of an entry that are not what they should be, with what was expected."""
    if not SERVER.fullmatch(name):
        yield "", f"a name of 1 to {SERVER_CHARS_MAX} letters, digits, - and _, without two of these in a row"
    try:
        parts = urlsplit(agent.card)
        origin_of(parts)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        yield "card", "an address such as https://example.com/agent was expected, without a name, password or query"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and (agent.token or agent.headers):
        yield "card", "https was expected: with http, everybody on the way can read the secret that goes with it"
    for field, variables in (("token", [agent.token] if agent.token else []), ("headers", agent.headers.values())):
        if any(not KEY_NAME.fullmatch(variable) for variable in variables):
            yield field, "the name of an environment variable was expected, such as PARTNER_KEY"
    if not 0 < agent.call_s <= CALL_CAP_S or math.isnan(agent.call_s):
        yield "call_s", f"a number of seconds above 0, and at most {CALL_CAP_S:g}, was expected"
    if len(agent.description) > DESCRIPTION_CHARS_MAX:
        yield "description", f"at most {DESCRIPTION_CHARS_MAX:,} characters were expected"


def _fault(path: str, where: list[str], expected: str) -> BadInput:
    return BadInput(f"{path}: {'.'.join(filter(None, where))}: {expected}. Nothing was read of it.")


def check_new(root: Path, name: str, agent: RemoteAgent) -> None:
    """Raise BadInput for an entry that the file may not hold, or whose name is taken."""
    parse_agents(agent_text(name, agent), "the new entry")
    if name in remote_agents(root):
        raise _taken(name)


def add_agent(root: Path, name: str, agent: RemoteAgent) -> None:
    """Write an agent at the end of the file. All other lines stay. Raise BadInput as `check_new` does."""
    check_new(root, name, agent)
    path = root / FILE

    def added(content: bytes | None) -> bytes:
        before = text_in(content, path)
        if name in parse_agents(before, str(path)):  # another process was faster
            raise _taken(name)
        return with_table(before, agent_text(name, agent)).encode()

    change_whole(path, added)


def _taken(name: str) -> BadInput:
    return BadInput(f"There is a remote agent {name!r} already. Remove it first, or take another name.")


def remove_agent(root: Path, name: str) -> None:
    """Remove the table of an agent from the file. All other lines stay. Raise BadInput if there is none."""
    remote_agent(root, name)
    path = root / FILE

    def removed(content: bytes | None) -> bytes:
        after = without_table(text_in(content, path), [TABLE, name])
        if name in parse_agents(after, str(path)):
            raise BadInput(f"{path} names {name!r} in a form that everlog does not write. Remove it by hand.")
        return after.encode()

    change_whole(path, removed)


def agent_text(name: str, agent: RemoteAgent) -> str:
    """Return the table of an agent, as the file holds it."""
    before = msgspec.to_builtins(RemoteAgent(card=""))
    fields: dict[str, Any] = {key: value for key, value in msgspec.to_builtins(agent).items() if value != before[key]}
    lines = [f"[{TABLE}.{name}]", *(f"{key} = {toml_value(value)}" for key, value in fields.items())]
    return "\n".join(lines) + "\n"

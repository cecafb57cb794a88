"""Describe an MCP server as the operator names it, and the rules that the operator gives for its functions.

Part of the operator's file (`servers_toml.py`). Everything here can be pickled: a function that is lent to an agent
takes the description of its server along, to whichever process the agent runs in.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from everlog.events import McpError

CONNECT_S = 30.0
"""Default of `connect_s`: seconds in which a server starts, or answers for the first time."""
LIST_S = 30.0
"""Seconds in which a server lists what it offers, all pages together."""
CALL_S = 60.0
"""Default of `call_s`: seconds that a call may take without a sign of progress."""
CALL_CAP_S = 600.0
"""Seconds that a call may take with all its progress."""

ActingEffect = Literal["read_only", "idempotent", "at_most_once"]
"""Effect class of a function that reaches outside; see `tools.Effect`."""


class OperatorRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's word about functions of a server: it comes before what the server says of them."""

    effect: ActingEffect | None = None
    """Effect class; None: as the server's hints say."""
    approval: bool | None = None
    """True: calls wait for a person's approval; None: as the server's hints say."""


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server: a program that is started (`command`), or an address (`url`). Secrets are named, never written."""

    command: str = ""
    """Program that speaks MCP on its stdin and stdout."""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of environment variables that the program gets, besides those that every program needs, such as PATH."""
    folder: str = ""
    """Folder in which the program runs; empty: that of everlog."""
    url: str = ""
    """Address of a server that speaks MCP over HTTP."""
    token: str = ""
    """Name of the variable whose value is sent as `Authorization: Bearer VALUE`."""
    headers: Mapping[str, str] = {}
    """Names of variables by header, for servers that want another one."""
    connect_s: float = CONNECT_S
    call_s: float = CALL_S
    only: tuple[str, ...] = ()
    """Patterns of the functions that agents get, by the server's own names; empty: all."""
    effect: ActingEffect | None = None
    """Effect class of all functions; see `OperatorRule`."""
    approval: bool | None = None
    tools: Mapping[str, OperatorRule] = {}
    """Rules by pattern of the server's own names: the last one that fits decides."""

    def rule_of(self, tool: str) -> OperatorRule:
        """Return the operator's word about a function, by the server's own name for it."""
        effect, approval = self.effect, self.approval
        for pattern, rule in self.tools.items():
            if fnmatchcase(tool, pattern):
                effect = effect if rule.effect is None else rule.effect
                approval = approval if rule.approval is None else rule.approval
        return OperatorRule(effect, approval)

    def offers(self, tool: str) -> bool:
        """Return True if agents get a function, by the server's own name for it."""
        return not self.only or any(fnmatchcase(tool, pattern) for pattern in self.only)

    def check_variables(self, name: str, environment: Mapping[str, str]) -> None:
        """Raise McpError for a variable that the entry names and the environment lacks. `name`: the server's."""
        wanted = [*self.env, *self.headers.values(), *filter(None, [self.token])]
        missing = [variable for variable in wanted if variable not in environment]
        if missing:
            raise McpError(
                f"The MCP server {name!r} needs the environment variable {missing[0]}, which is not set here."
            )

    def place(self) -> str:
        """Return the address, or the command line, for a person."""
        return self.url or " ".join([self.command, *self.args])

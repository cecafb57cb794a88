"""MemGPT's functions that reach outside the log: files of one folder, the web, another model. An agent has them only if
its preset lists them (`presets`), and each function does only what the user grants.

Used by `local_system.py`, which gives agents the functions, and by `agent_setup.py` and reruns for their names; other
code imports the grants from here.

    grants.py           grants of the user, passed each time
    workspace.py        read_from_text_file, append_to_text_file: the one file that accesses the disk
    http_function.py    http_request; allowed_hosts.py: its hosts; network_addresses.py: their addresses;
                        http_transport.py: HTTP
    helper_model.py     message_chatgpt
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.functions.grants import NO_GRANTS, Grants
from everlog.actors.functions.helper_model import HelperCall, HelperModel, answer, no_helper
from everlog.actors.functions.http_function import WebAccess
from everlog.actors.functions.network_addresses import AddressFilter, HostResolver, is_public, resolved
from everlog.actors.functions.tools import Effect, Tool, tool
from everlog.actors.functions.workspace import Workspace
from everlog.events import FunctionError

__all__ = ["NAMES", "NO_GRANTS", "Grants", "HelperCall", "answer", "extras", "helper", "no_helper"]

_EFFECTS: Mapping[str, Effect] = {
    "message_chatgpt": "read_only",
    "read_from_text_file": "read_only",
    "append_to_text_file": "at_most_once",
    "http_request": "at_most_once",
}

NAMES = tuple(_EFFECTS)
"""Names of the extra functions, in the order in which the model sees them."""


def extras(
    grants: Grants, ask: HelperCall, resolve: HostResolver = resolved, admits: AddressFilter = is_public
) -> Sequence[Tool]:
    """Return all extra functions, each limited to what `grants` allow; `ask` asks the other model.

    `resolve` looks addresses up, and `admits` decides which of them may be connected to: only a test, which serves on
    its own machine, replaces them. Raises BadInput for an invalid host.
    """
    functions = _functions(grants, ask, resolve, admits)
    return [msgspec.structs.replace(_shape(name), function=function) for name, function in functions.items()]


def helper(ask: HelperCall) -> Tool:
    """Return the extra function that asks the other model by `ask`."""
    function = HelperModel(ask).message_chatgpt
    return msgspec.structs.replace(_shape(function.__name__), function=function)


def _functions(
    grants: Grants, ask: HelperCall, resolve: HostResolver, admits: AddressFilter
) -> Mapping[str, Callable[..., Any]]:
    files = Workspace(grants.workspace)
    functions: Sequence[Callable[..., Any]] = (
        HelperModel(ask).message_chatgpt,
        files.read_from_text_file,
        files.append_to_text_file,
        WebAccess(grants.hosts, resolve, admits).http_request,
    )
    return {function.__name__: function for function in functions}


@functools.cache
def _shape(name: str) -> Tool:
    """Return a tool without its grants: schema and arguments are computed once for all agents."""
    function = _functions(NO_GRANTS, no_helper, resolved, is_public)[name]
    made: Tool = tool(function, effect=_EFFECTS[name], faults=(FunctionError,), timeout_s=None)
    return made

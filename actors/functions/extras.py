"""MemGPT's functions that reach outside the log: files of one folder, the web, another model. Not every agent has them
(`presets` says which), and each does only what the person at the keyboard grants.

    grants.py       what the person allows, given each time
    workspace.py    read_from_text_file, append_to_text_file: the one file that speaks to the disk
    web.py          http_request; hosts.py: what may be asked for; addresses.py: what may be connected to; wire.py: HTTP
    helper.py       message_chatgpt
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

__all__ = ["NAMES", "NO_GRANTS", "Grants", "HelperCall", "answer", "extras", "no_helper"]

_EFFECTS: Mapping[str, Effect] = {
    "message_chatgpt": "read_only",
    "read_from_text_file": "read_only",
    "append_to_text_file": "at_most_once",
    "http_request": "at_most_once",
}

NAMES = tuple(_EFFECTS)
"""The functions of this folder, in the order in which the model is shown them."""


def extras(
    grants: Grants, ask: HelperCall, resolve: HostResolver = resolved, admits: AddressFilter = is_public
) -> Sequence[Tool]:
    """All of them, each doing what `grants` allow; `ask` asks the other model.

    `resolve` and `admits` are where addresses come from and which may be connected to: a test serves on its own
    machine, nobody else has a reason to. Raises BadInput for a host that is none.
    """
    functions = _functions(grants, ask, resolve, admits)
    return [msgspec.structs.replace(_shape(name), function=function) for name, function in functions.items()]


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
    """The tool without its grants: schema and arguments are made once, however many agents there are."""
    function = _functions(NO_GRANTS, no_helper, resolved, is_public)[name]
    made: Tool = tool(function, effect=_EFFECTS[name], faults=(FunctionError,))
    return made

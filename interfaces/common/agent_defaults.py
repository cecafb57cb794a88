"""Fill in the settings of a new agent that were not given, from the files of defaults.

Used by `bootstrap`. An agent that exists keeps the settings of its log: a default must never become an event in it.
"""

from argparse import Namespace
from collections.abc import Mapping

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import Placement
from everlog.events import UnknownAgent
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.defaults.default_files import DefaultValues
from everlog.interfaces.defaults.default_keys import KEYS
from everlog.store import CONFIGURATION, name_of

OF_A_SERVER = ("model", "zone", "preset")
"""Defaults of new agents that a server gives to those that are created through it."""


def placement_of(args: Namespace) -> Placement:
    """Return the placement of agents that a command creates: --placement, else that of the files of defaults."""
    defaults: DefaultValues | None = getattr(args, "defaults", None)
    named = getattr(args, "placement", None) or (defaults.of("placement") if defaults is not None else None)
    return "shared" if named == "shared" else "dedicated"


def settings_of_new_agents(args: Namespace) -> Mapping[str, str]:
    """Return the settings of new agents that the files of defaults have, for a server: those whose value is the same
    for every agent. A persona and a text about the user can be files, with the agent's name in them.
    """
    defaults: DefaultValues | None = getattr(args, "defaults", None)
    if defaults is None:
        return {}
    return {name: value for name in OF_A_SERVER if (value := defaults.of(name)) is not None}


def fill_in_defaults(args: Namespace, world: CommandEnvironment) -> None:
    """Set the arguments for a new agent that were not given to the values of the files of defaults.

    Nothing is set if the agent exists, or if it is on a server, where models have other names. Raises StoreError,
    CorruptLog.
    """
    defaults: DefaultValues | None = getattr(args, "defaults", None)
    if defaults is None or server_of(args) is not None:
        return
    found = {key.name: value for key in KEYS if key.new_agents and (value := defaults.of(key.name)) is not None}
    missing = [name for name in found if getattr(args, name, None) is None]
    if missing and is_new_agent(args, world):
        for name in missing:
            setattr(args, name, found[name])


def is_new_agent(args: Namespace, world: CommandEnvironment) -> bool:
    """Return True if there is no agent of the name in the arguments, or if it was deleted."""
    if not (root_of(args) / CONFIGURATION).exists():
        return True
    ports = Ports(clock=world.clock, ids=world.ids)
    try:
        view = LocalSystem(store_of(args, world), ports=ports).view(name_of(args.name))
    except UnknownAgent:
        return True
    try:
        return bool(view.rows("standing")[0]["deleted"])
    finally:
        view.close()

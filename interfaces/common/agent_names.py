"""Look up the agents that the words of a command line name: by a name that `everlog rename` gave, or else the newest
agent of the name.

Used by `cli.command_run` before a command runs, so that the command itself only meets names of streams. Patterns select
by the names of streams.
"""

from argparse import Namespace

from everlog.interfaces.common.front_end import CommandEnvironment

NAMING = ("name", "agent", "pattern")
"""Arguments that name an agent. A pattern that is the name of an agent means that agent."""


def look_up_names(args: Namespace, world: CommandEnvironment) -> None:
    """Replace each name of an agent in the arguments by the stream of that agent: NAME@genN if forks took the name of
    deleted agents.

    A name that no agent has stays as it is, and so do all if there is no store yet. Raises BadInput for an impossible
    name; StoreError, CorruptLog.
    """
    given = {key: getattr(args, key) for key in NAMING if isinstance(getattr(args, key, None), str)}
    several = args.names if isinstance(getattr(args, "names", None), list) else []
    if getattr(args, "command", "") in {"export", "search"} and args.all:  # NAME is a folder, or the query
        given = {}
    if not given and not several:
        return
    from everlog.interfaces.common.open_store import root_of, store_of
    from everlog.store import CONFIGURATION

    if not (root_of(args) / CONFIGURATION).exists():
        return
    store = store_of(args, world)
    for key, name in given.items():
        setattr(args, key, store.stream_of(name))
    several[:] = [store.stream_of(name) for name in several]

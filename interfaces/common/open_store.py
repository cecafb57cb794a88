"""Open the store that the arguments of a command name; warnings about it, and files that the user named.

Used by every command. A command that only reads the store imports nothing of the agents from here; `bootstrap` has
what opens agents.
"""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.actors.ports.loggers import logger_of
from everlog.actors.ports.real_clock import make_store
from everlog.events import BadInput, PartitionBusy
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.defaults.default_files import store_folder
from everlog.store import FileStore


def root_of(args: Namespace) -> Path:
    """Return the folder of the store: --store, else EVERLOG_STORE, else that of the user's file, else ~/.everlog.

    With --server: the folder of the copies of its agents.
    """
    server = server_of(args)
    if server is not None:
        return server.mirror.root
    return store_folder(args.store)


def store_of(args: Namespace, world: CommandEnvironment, *, create: bool = False) -> FileStore:
    """Open the store; with --server, copies of its agents. Raises StoreError if there is none and `create` is false."""
    server = server_of(args)
    if server is not None:
        return server.mirror
    if create:
        return make_store(root_of(args), world.clock, world.ids)
    return FileStore(root_of(args), world.clock.now)


def refresh_copy(args: Namespace, agent_id: str) -> None:
    """Download what an agent has got since it was read, if a server has it; a store that is here needs nothing."""
    server = server_of(args)
    if server is not None:
        server.mirror.fetch(agent_id)


def text_of(path: str) -> str:
    """Return the text of a file, without the line breaks at its end. Raises BadInput."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise BadInput(f"{path!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path!r} is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def lines_of(path: str) -> Iterator[bytes]:
    """Yield the lines of a file. Raises BadInput."""
    try:
        with Path(path).expanduser().open("rb") as file:
            yield from file
    except OSError as error:
        raise BadInput(f"{path!r} cannot be read: {error.strerror}.") from error


def warn(text: str) -> None:
    """Print a warning on stderr, and write it to the log of the program."""
    logger_of("note").warning("%s", text)
    complain(f"warning: {text}")


def warn_of_damage(damage: object) -> None:
    """Warn on stderr of damage that a read found after the last whole frame, see `TornTail`."""
    complain(f"warning: {damage}.")


def tell_deleted(agent_id: str) -> None:
    """Say on stderr that an agent was deleted, before anything of it is shown."""
    complain(f"{agent_id!r} was deleted; this is its state at the deletion.")


@contextmanager
def without_take_over() -> Iterator[None]:
    """Translate PartitionBusy for a command that takes over no log: the error does not offer a take-over."""
    try:
        yield
    except PartitionBusy as error:
        raise PartitionBusy(
            f"{str(error).rpartition('; ')[0]}. Close it there and run the command again. Nothing was changed.",
            error.pid,
        ) from error

"""What the logs of all agents of a store say is still to be done: unfinished turns, and timers."""

from collections.abc import Callable, Iterator

import duckdb
import msgspec

from events import EverlogError
from projections import Projections, activate
from store import Store

from .supervisor import Standing
from .timers import due_of


def standings(store: Store, note: Callable[[str], None]) -> Iterator[Standing]:
    """Every agent that has something to do. A log that cannot be read or makes no sense is noted; the others go on."""
    with Projections() as projections:
        for name in store.agents():
            try:
                activate(projections, store.reader(name), name)
                standing = next(iter(projections.rows("standing", name)), None)
                if standing is not None and not standing["deleted"]:
                    unfinished = bool(projections.rows("open_turns", name))
                    timers = [due_of(row) for row in projections.rows("timers", name)]
                    if unfinished or timers:
                        yield Standing(name, unfinished, timers)
            except (EverlogError, duckdb.Error, msgspec.MsgspecError, TypeError, ValueError, LookupError) as error:
                note(f"{name!r} cannot be read: {error}")
            finally:
                projections.forget(name)

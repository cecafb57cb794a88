"""The end of the suite: one in sixteen of the agents that the tests made is verified from the logs.

Which ones depends on the seed, the test and the agent's name alone: not on the order in which the tests ran.
"""

from collections.abc import Sequence

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import StoreError
from everlog.interfaces.client.mirror_store import MirrorStore
from everlog.projections import PROJECTIONS, Projections
from tests.support.seeds import chance

VERIFIED_OF = 16
"""One in this many agents is verified."""
REBUILT_OF = 4
"""One in this many verified agents is rebuilt too."""
QUERIED_OF = 4
"""One in this many rebuilt agents answers every projection: this takes as long as 20 verifications, and laws cover
every projection.
"""
MADE_BY = "made_by"
"""Attribute of a system that `tests/conftest.py` sets: the id of the test that made it."""
SAMPLE = 3
"""Number of model calls in a sample of an agent's calls."""


def verify_all(systems: Sequence[LocalSystem]) -> None:
    """Check that each request renders to the sent bytes, that each reply parses to the same meaning, and that each
    chain matches its log.

    Some agents are rebuilt and compared, and a sample of their calls must agree with the verification of all calls.
    Some of these answer every projection.
    """
    faults: list[str] = []
    agents = calls = 0
    seen: set[tuple[object, str]] = set()
    with Projections() as projections:
        for system in systems:
            if isinstance(system.store, MirrorStore):  # copies of agents that the store itself has
                continue
            place, test = made_for(system)
            for name in _names(system):
                if (place, name) in seen:
                    continue
                seen.add((place, name))
                made = f"{name} of {test}"
                drawn = chance(f"verified: {made}")
                if drawn.randrange(VERIFIED_OF) or not _readable(system, name):
                    continue
                view = system.view(name, projections)
                whole = verify(view, system.tools)
                faults += [f"{made}: {fault}" for fault in whole.faults]
                if not drawn.randrange(REBUILT_OF):
                    faults += [f"{made}: {fault}" for fault in rebuild(view).faults]
                    for projection in PROJECTIONS if not drawn.randrange(QUERIED_OF) else ():
                        view.rows(projection)
                    some = verify(view, system.tools, sample=SAMPLE).calls
                    if some.chosen > SAMPLE or not set(some.equal) <= set(whole.calls.equal):
                        faults.append(f"{made}: a sample says {some}, and all of it {whole.calls}")
                agents, calls = agents + 1, calls + len(view.rows("model_calls"))
                view.close()
    assert not faults, "\n".join(faults[:20])
    print(f"verified {calls} model calls of {agents} agents")


def made_for(system: LocalSystem) -> tuple[object, str]:
    """Return the place of a system's store, and the id of the test that made the system: each command of a test opens
    its store with a new object.
    """
    return getattr(system.store, "root", id(system.store)), getattr(system, MADE_BY)


def _names(system: LocalSystem) -> list[str]:
    """Return the names of a store's agents; none if a test has broken or removed the store."""
    try:
        return system.agents()
    except StoreError:
        return []


def _readable(system: LocalSystem, name: str) -> bool:
    """Return True if an agent has records, and no test has broken or removed it."""
    try:
        return bool(system.store.reader(name).head(name).seq)
    except StoreError:
        return False

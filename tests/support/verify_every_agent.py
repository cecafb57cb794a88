"""The suite ends by verifying a quarter of the agents that it made, drawn by the commit, from the logs of the tests."""

from collections.abc import Sequence

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import StoreError
from everlog.projections import Projections
from tests.support.seeds import chance

VERIFIED_OF = 4
"""Of so many agents one is verified: another one at each landing."""
REBUILT_OF = 8
"""Of so many of these one is rebuilt too: that takes as long as all the rest, and laws ask it of every projection."""
SAMPLE = 3
"""Model calls in a sample, which is taken of the same ones."""


def verify_all(systems: Sequence[LocalSystem]) -> None:
    """Each request renders to the bytes that were sent, each reply means the same, and each chain is that of its log;
    some are rebuilt, and equal, and a sample of their calls says what all of them say.
    """
    faults: list[str] = []
    agents = calls = 0
    seen: set[tuple[object, str]] = set()
    drawn = chance("agents that are verified")
    with Projections() as projections:
        for system in systems:
            place = getattr(system.store, "root", id(system.store))  # each command opens its store again
            for name in _names(system):
                if (place, name) in seen or not system.store.reader(name).head(name).seq:
                    continue
                seen.add((place, name))
                if drawn.randrange(VERIFIED_OF):
                    continue
                view = system.view(name, projections)
                whole = verify(view, system.tools)
                faults += [f"{name}: {fault}" for fault in whole.faults]
                if agents % REBUILT_OF == 0:
                    faults += [f"{name}: {fault}" for fault in rebuild(view).faults]
                    some = verify(view, system.tools, sample=SAMPLE).calls
                    if some.chosen > SAMPLE or not set(some.equal) <= set(whole.calls.equal):
                        faults.append(f"{name}: a sample says {some}, and all of it {whole.calls}")
                agents, calls = agents + 1, calls + len(view.rows("model_calls"))
                view.close()
    assert not faults, "\n".join(faults[:20])
    print(f"verified {calls} model calls of {agents} agents")


def _names(system: LocalSystem) -> list[str]:
    """The agents of a store; none of one that a test has broken or removed."""
    try:
        return [name for name in system.agents() if _readable(system, name)]
    except StoreError:
        return []


def _readable(system: LocalSystem, name: str) -> bool:
    try:
        system.store.reader(name).head(name)
    except StoreError:
        return False
    return True

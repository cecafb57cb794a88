"""Carry out a plan of an erasure: the logs first, then what holds copies: the search index, what people typed, and
results of jobs of servers.

Used by `AgentSystem.erase` and `everlog erase`. Agents of the plan must not be open in another process. The index is
brought up to date even if no record is left to erase: an interruption may have come between the logs and the index. The
same holds for the histories of prompts, which are removed whole: they hold questions and commands that no record holds.
The other names of an agent go with all of its records: a name may be that of a person.
"""

import msgspec

from everlog.actors.agent.erase_agent import COMMAND
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.archive.archive_index import catch_up
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.job_results import forget_results
from everlog.store import FileStore, Progress, SealReport, check_forgets, forget_typed, has_strays, is_agent


class ErasureReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an erasure."""

    erased: int
    """Number of records that lost their content."""
    left: int
    """Number of records that still say the same."""
    bytes_before: int
    bytes_after: int


def agents_to_unload(plan: ErasurePlan) -> list[str]:
    """Return the agents whose logs the erasure opens, the named one first."""
    others = [name for name in plan.spans if name != plan.agent_id and is_agent(name)]
    return list(dict.fromkeys([plan.agent_id, *plan.forks, *others]))


def _remove_strays(store: FileStore) -> list[str]:
    """Remove the replaced files that an interrupted erasure has left. Return the streams in these partitions.

    All partitions of the store are looked at: an agent whose copy of a shared block is erased already is in no plan.
    """
    strays = {name for name in store.partitions() if has_strays(store.partition(name))}
    for partition in sorted(strays):
        store.open_partition(partition, COMMAND).close()
    return [name for name, partition in store.assigned().items() if partition in strays]


def erase_planned(system: LocalSystem, plan: ErasurePlan, progress: Progress | None = None) -> ErasureReport:
    """Erase the records of a plan in every file of the store. Blocks.

    An interruption loses nothing: the same command again erases the rest. Raises PartitionBusy, StoreError,
    ArchiveError.
    """
    if isinstance(system.store, FileStore):
        check_forgets(system.store)
    done = system.erase_spans(plan.spans, progress) if plan.spans else SealReport()
    if isinstance(system.store, FileStore):
        swept = _remove_strays(system.store)
        catch_up(system.store, sorted({*plan.streams, *plan.forks, *swept}))
        forget_typed(system.store.root, agents_to_unload(plan))
        forget_results(system.store.root)
        if plan.everything:
            system.store.aliases.remove_of(plan.agent_id)
    return ErasureReport(
        erased=len(plan.taken), left=len(plan.left), bytes_before=done.bytes_before, bytes_after=done.bytes_after
    )

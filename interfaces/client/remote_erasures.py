"""Plan and carry out erasures in the store of a server. Used by `everlog erase` and `RemoteSystem`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.erasure.erase_planned import ErasureReport
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.selection import Selection
from everlog.actors.erasure.stream_scan import PlannedRecord
from everlog.events import RecordsErased
from everlog.events.times import since_epoch
from everlog.interfaces.client.mirror_store import MirrorStore
from everlog.interfaces.client.remote_jobs import finished
from everlog.interfaces.client.server_address import WireRequest, path_of
from everlog.interfaces.wire.memory import RecordPage
from everlog.interfaces.wire.transfer import ErasurePlanShape
from everlog.store import Progress


class RemoteEraser:
    """Erasures in the store of a server; see `StoreEraser`."""

    def __init__(self, mirror: MirrorStore, new_id: Callable[[], str]) -> None:
        """`new_id` makes the id of a request, so that a repeat erases once."""
        self._mirror, self._channel, self._new_id = mirror, mirror.channel, new_id

    def names(self) -> list[str]:
        """Return the names of all agents that have records, sorted."""
        return self._mirror.agents()

    def head(self, name: str) -> int:
        """Return the seq of the last record of an agent. Raises UnknownAgent."""
        return self._mirror.position(name).as_of

    def was_erased(self, name: str, since: int = 1) -> bool:
        """Return True if an agent has a record of an erasure, from a seq on."""
        query = [("after", str(since - 1)), ("type", RecordsErased.kind), ("limit", "1")]
        request = WireRequest("GET", f"/agents{path_of(name)}/records", query=query)
        return bool(self._channel.call(request, RecordPage).records)

    def plan(self, name: str, selection: Selection, *, derived: bool) -> ErasurePlan:
        """Return which records an erasure takes; see `plan_erasure`."""
        request = plan_request(f"/agents{path_of(name)}", selection, derived=derived)
        return plan_of(self._channel.call(request, ErasurePlanShape), selection)

    def erase(
        self, plan: ErasurePlan, selection: Selection, *, derived: bool, progress: Progress | None = None
    ) -> ErasureReport:
        """Erase what was planned, and wait until the server has done it."""
        request = erase_request(f"/agents{path_of(plan.agent_id)}", selection, derived=derived, id=self._new_id())
        return msgspec.convert(finished(self._channel, request, progress), ErasureReport)


def plan_request(path: str, selection: Selection, *, derived: bool) -> WireRequest:
    """Return the request for the plan of an erasure. `path`: of the agent."""
    return WireRequest("POST", f"{path}/erasures/plan", _body(selection, derived=derived))


def erase_request(path: str, selection: Selection, *, derived: bool, id: str) -> WireRequest:
    """Return the request that erases. `path`: of the agent, source or shared block."""
    return WireRequest("POST", f"{path}/erasures", _body(selection, derived=derived), id)


def plan_of(shape: ErasurePlanShape, selection: Selection) -> ErasurePlan:
    """Return the plan that a server made of a selection. It names the streams that lose records, and no others."""
    return ErasurePlan(
        agent_id=shape.agent, everything=selection.everything, taken=_records(shape.records), left=_records(shape.left),
        spans={stream: [(first, last) for first, last in spans] for stream, spans in shape.spans.items()},
        forks=shape.forks, losses=shape.losses, above=shape.ancestor_seqs, streams=sorted(shape.spans),
        unsought=shape.unsought,
    )  # fmt: skip


def _body(selection: Selection, *, derived: bool) -> dict[str, Any]:
    return {
        "everything": selection.everything, "seqs": selection.seqs, "match": selection.match, "turns": selection.turns,
        "persons": selection.persons, "derived": derived,
    }  # fmt: skip


def _records(shapes: Sequence[Mapping[str, Any]]) -> list[PlannedRecord]:
    return [
        PlannedRecord(**{**shape, "recorded_at": since_epoch(datetime.fromisoformat(shape["recorded_at"]))})
        for shape in shapes
    ]

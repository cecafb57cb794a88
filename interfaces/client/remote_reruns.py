"""Have a server rerun inputs in a fork, and read its comparison of the two. Used by `RemoteSystem`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.ports.ports import Ports
from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome, TurnPairCallback
from everlog.actors.rerun.rerun_comparison import CallCosts, Divergence, RerunComparison, TurnPair, TurnTrace
from everlog.actors.rerun.rerun_effects import RerunDiverged
from everlog.events import ModelError, Record
from everlog.events.times import MICROSECONDS, since_epoch
from everlog.interfaces.client.command_routes import settings_shape
from everlog.interfaces.client.remote_jobs import looks
from everlog.interfaces.client.server_address import WireRequest, path_of
from everlog.interfaces.client.server_channel import ServerChannel
from everlog.interfaces.wire.jobs import CompareShape, RerunBody
from everlog.interfaces.wire.records import HttpRecord, record_of

JsonMapping = Mapping[str, Any]
COSTS = {
    "model_calls": "steps", "function_calls": "calls", "prompt_tokens": "prompt", "completion_tokens": "completion",
    "tokens": "tokens", "cost": "cost",
}  # fmt: skip
"""Fields of `CallCosts` under their names in JSON, besides the latency."""


async def rerun(
    channel: ServerChannel, what: RerunOptions, notify: TurnPairCallback, *, id: str, ports: Ports
) -> RerunOutcome:
    """Rerun inputs as a job, and return its outcome. `notify` gets each turn when the server says that it has ended."""
    at = what.from_seq.isoformat() if isinstance(what.from_seq, datetime) else what.from_seq
    body = RerunBody(
        fork=what.fork, at=at, settings=settings_shape(what.settings), turns=what.turns, recorded=what.recorded,
        live_tools=what.live_tools,
    )  # fmt: skip
    told = 0
    result: JsonMapping | None = None
    request = WireRequest("POST", f"/agents{path_of(what.agent_id)}/reruns", body, id)
    async for job in looks(channel, request, ports):
        result = job.result
        if result is None and job.progress.done > told:
            compared = await compare(channel, what.agent_id, what.fork)
            for pair in compared.turns[told : job.progress.done]:
                notify(pair)
            told = job.progress.done
    assert result is not None, "a job that is done has a result"
    compared = comparison_of(result)
    for pair in compared.turns[told:]:
        notify(pair)
    left_out = [await _record(channel, what.agent_id, one["seq"]) for one in result["left_out"]]
    return RerunOutcome(
        comparison=compared, left_out=left_out, diverged=_divergence(result["diverged"]),
        renumbered=result["renumbered"],
        error=None if result["error"] is None else ModelError(result["error"], kind="unreachable"),
    )  # fmt: skip


async def compare(channel: ServerChannel, name: str, fork: str) -> RerunComparison:
    """Return the comparison of an agent with its fork. Raises UnknownAgent, BadInput."""
    request = WireRequest("GET", f"/agents{path_of(name)}/compare", query=[("fork", fork)])
    return comparison_of((await channel.call(request, CompareShape)).comparison)


def comparison_of(shape: JsonMapping) -> RerunComparison:
    """Return the comparison that `everlog rerun --json` prints."""
    first = shape["first_difference"]
    return RerunComparison(
        agent_id=shape["agent"], fork=shape["fork"], cut=shape["parent_seq"],
        turns=[_pair(one) for one in shape["turns"]], baseline=_costs(shape["totals"]["then"]),
        variant=_costs(shape["totals"]["now"]), answered=shape["answered"],
        diverged=None if first is None
        else Divergence(first["turn"], first["then_seq"], first["now_seq"], first["parts"]),
    )  # fmt: skip


def _pair(shape: JsonMapping) -> TurnPair:
    return TurnPair(
        turn=shape["turn"], input=shape["input"], said=shape["said"],
        at=since_epoch(datetime.fromisoformat(shape["at"])), baseline=_side(shape["then"]),
        variant=_side(shape["now"]), differs=shape["differs"],
    )  # fmt: skip


def _side(shape: JsonMapping | None) -> TurnTrace | None:
    return None if shape is None else msgspec.convert({**shape, "costs": _costs(shape)}, TurnTrace)


def _costs(shape: JsonMapping) -> CallCosts:
    fields = {field: shape[name] for name, field in COSTS.items()}
    return CallCosts(**fields, latency_us=round(shape["latency_s"] * MICROSECONDS))


def _divergence(shape: JsonMapping | None) -> RerunDiverged | None:
    if shape is None:
        return None
    text = shape["text"].removeprefix(f"diverged at seq {shape['seq']}: ").removeprefix("diverged: ")
    return RerunDiverged(shape["seq"], text, shape["difference"])


async def _record(channel: ServerChannel, name: str, seq: int) -> Record:
    request = WireRequest("GET", f"/agents{path_of(name)}/records/{seq}")
    return record_of(await channel.call(request, HttpRecord))

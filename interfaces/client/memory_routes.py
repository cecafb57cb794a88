"""Translate the commands on archival memory, timers, sources and derived memories into requests. Pure.

Used by `command_routes`; a part of its table.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.agent import commands
from everlog.actors.agent.commands import Command
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.deriving import memory_commands
from everlog.events.times import moment
from everlog.interfaces.client.command_route import CommandRoute, changes, is_changed, is_done
from everlog.interfaces.client.server_address import path_of
from everlog.interfaces.wire import archive as archive_shapes
from everlog.interfaces.wire import derived as derived_shapes
from everlog.interfaces.wire import timers as timer_shapes
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.runs import Changed


def _time(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


def _timer(sent: commands.SetTimer) -> CommandRoute:
    if sent.cron:
        body = timer_shapes.SetTimerBody(timer=sent.timer, text=sent.text, cron=sent.cron, zone=sent.zone)
    else:
        body = timer_shapes.SetTimerBody(
            timer=sent.timer, text=sent.text, at=moment(sent.due_at), every_s=sent.every_s or None
        )
    return CommandRoute("POST", "/timers", body, timer_shapes.TimerShape, lambda answer: answer.timer)


def _derivation(sent: memory_commands.DeriveMemories) -> CommandRoute:
    body = {
        "kinds": [sent.derivation], "generation": sent.generation, "model": sent.model,
        "batches_max": sent.batches_max,
    }  # fmt: skip
    return CommandRoute("POST", "/derivations", body, derived_shapes.DerivationsShape, _report)


def _report(answer: derived_shapes.DerivationsShape) -> DerivationReport:
    return DerivationReport(**msgspec.structs.asdict(answer.derivations[0]))


def _fact(sent: memory_commands.NoteFact) -> CommandRoute:
    body = {**changes(sent), "valid_from": _time(sent.valid_from)}
    return CommandRoute("POST", "/facts", body, derived_shapes.NotedSeq, _seq)


def _fact_end(sent: memory_commands.EndFact) -> CommandRoute:
    body = {**changes(sent, "fact"), "valid_to": _time(sent.valid_to)}
    return CommandRoute("POST", f"/facts/{sent.fact}/end", body, Changed, is_changed)


def _plan(sent: memory_commands.MakePlan) -> CommandRoute:
    items = [{**msgspec.structs.asdict(item), "start": moment(item.start)} for item in sent.items]
    body = {"title": sent.text, "items": items, "level": sent.level, "sources": sent.sources}
    return CommandRoute("POST", "/plans", body, derived_shapes.NotedSeq, _seq)


def _plan_change(sent: memory_commands.ChangePlan) -> CommandRoute:
    body = {**changes(sent, "plan", "deriver"), "start": moment(sent.start) if sent.start else None}
    return CommandRoute("POST", f"/plans/{sent.plan}/changes", body, derived_shapes.NotedSeq, _seq)


def _seq(answer: derived_shapes.NotedSeq) -> int:
    return answer.seq


MEMORY_ROUTES: Mapping[type[Command], Callable[[Any], CommandRoute]] = {
    commands.InsertMemory: lambda sent: CommandRoute(
        "POST", "/archive", changes(sent), archive_shapes.StoredText, lambda answer: answer.memory
    ),
    commands.InsertMemories: lambda sent: CommandRoute(
        "POST", "/archive/batch", changes(sent), archive_shapes.StoredTexts, lambda answer: list(answer.memories)
    ),
    commands.UpdateMemory: lambda sent: CommandRoute(
        "PUT", f"/archive{path_of(sent.memory_id)}", changes(sent, "memory_id"), Done
    ),
    commands.DeleteMemory: lambda sent: CommandRoute("DELETE", f"/archive{path_of(sent.memory_id)}", None, Done),
    commands.SetTimer: _timer,
    commands.CancelTimer: lambda sent: CommandRoute(
        "DELETE", f"/timers{path_of(sent.timer)}", None, Done, is_done, missing=False
    ),
    commands.AttachSource: lambda sent: CommandRoute(
        "PUT", f"/sources{path_of(sent.source)}", None, Changed, is_changed
    ),
    commands.DetachSource: lambda sent: CommandRoute(
        "DELETE", f"/sources{path_of(sent.source)}", None, Changed, is_changed
    ),
    commands.FollowBlock: lambda sent: CommandRoute(
        "PUT", f"/shared{path_of(sent.block)}", {"label": sent.label}, Changed, is_changed
    ),
    commands.UnfollowBlock: lambda sent: CommandRoute(
        "DELETE", f"/shared{path_of(sent.block)}", None, Changed, is_changed
    ),
    memory_commands.DeriveMemories: _derivation,
    memory_commands.NoteFact: _fact,
    memory_commands.EndFact: _fact_end,
    memory_commands.NameEntity: lambda sent: CommandRoute("POST", "/names", changes(sent), Changed, is_changed),
    memory_commands.WithdrawMemories: lambda sent: CommandRoute(
        "POST", "/withdrawals", changes(sent), Changed, is_changed
    ),
    memory_commands.ChooseGeneration: lambda sent: CommandRoute(
        "PUT", "/generation", changes(sent), Changed, is_changed
    ),
    memory_commands.MakePlan: _plan,
    memory_commands.ChangePlan: _plan_change,
}
"""Requests for commands on memories."""

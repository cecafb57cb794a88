"""Translate each command for an agent into a request of the native API, and its answer into the command's value. Pure.

Used by `RemoteRuntime`. A command whose answer is a run is streamed; its value is the record of its input.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, OpenReport
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.rules.approvals import Decision
from everlog.events import BadInput, Event, Heartbeat, SystemAlert, UserLogin, UserMessage
from everlog.interfaces.client.command_route import CommandRoute, changes, is_changed, is_done
from everlog.interfaces.client.memory_routes import MEMORY_ROUTES
from everlog.interfaces.client.server_address import path_of
from everlog.interfaces.wire import agents as agent_shapes
from everlog.interfaces.wire import approvals as approval_shapes
from everlog.interfaces.wire import memory as memory_shapes
from everlog.interfaces.wire import runs as run_shapes


def route_of(command: Command) -> CommandRoute:
    """Return the route of a command. Raises BadInput for one that a server does not take."""
    make = _ROUTES.get(type(command))
    if make is None:
        raise BadInput(f"A server does not take the command {type(command).__name__}. Nothing was sent.")
    return make(command)


def settings_shape(settings: Settings) -> dict[str, Any]:
    """Return the settings that were given, by name."""
    default = Settings()
    given = {name: getattr(settings, name) for name in settings.__struct_fields__}
    shape: dict[str, Any] = msgspec.to_builtins(
        {name: value for name, value in given.items() if value != getattr(default, name)}
    )
    return shape


def lines_of(said: Sequence[ImportedMessage]) -> list[dict[str, Any]]:
    """Return the messages of a past conversation as lines of an import."""
    return [
        {
            "role": "user" if isinstance(one.event, UserMessage) else "assistant", "content": one.event.text or "",
            "time": one.said_at.isoformat(), "name": getattr(one.event, "name", "") or None,
            "ref": getattr(one.event, "ref", "") or None,
        }
        for one in said
    ]  # fmt: skip


def opened_of(report: agent_shapes.AgentReport) -> OpenReport:
    """Return the report of an agent that a server opened."""
    return OpenReport(
        born=report.created, model=report.model, zone=report.zone, head=report.head, turn=report.turn,
        waiting=report.waiting,
    )  # fmt: skip


def _input(command: commands.SendInput) -> CommandRoute:
    event = command.event
    body: Any
    if type(event) is UserMessage:
        body = run_shapes.SendMessageBody(
            text=event.text or "", speaker=event.name, conversation=event.conversation, stream=True
        )
        _check_same(event, UserMessage(text=event.text, name=event.name, conversation=event.conversation))
        return CommandRoute("POST", "/messages", body)
    if type(event) is Heartbeat:
        body = run_shapes.SendInputBody(type="heartbeat", text=event.text or "", stream=True)
        _check_same(event, Heartbeat(text=event.text, reason="manual"))
    elif type(event) is UserLogin:
        body = run_shapes.SendInputBody(
            type="user_login", text=event.text or "", last_login=event.last_login, stream=True
        )
    elif type(event) is SystemAlert:
        body = run_shapes.SendInputBody(type="system_alert", text=event.text or "", source=event.source, stream=True)
    else:
        raise BadInput(f"{event!r} is no input that a server takes. Nothing was sent.")
    return CommandRoute("POST", "/inputs", body)


def _check_same(event: Event, sent: Event) -> None:
    if event != sent:
        raise BadInput(f"A server does not take every field of {event!r}. Nothing was sent.")


def _decision(decision: Decision) -> approval_shapes.DecisionBody:
    return approval_shapes.DecisionBody(
        decision="approve" if decision.approve else "refuse",
        arguments=msgspec.json.decode(decision.arguments) if decision.arguments else None,
        reason=decision.reason, always=decision.always, stream=True,
    )  # fmt: skip


def _turns(answer: run_shapes.TurnNumbers) -> list[int]:
    return list(answer.turns)


_STREAM = run_shapes.RunOptionsBody(stream=True)
_ROUTES: Mapping[type[Command], Callable[[Any], CommandRoute]] = {
    commands.SendInput: _input,
    commands.ResumeTurns: lambda _: CommandRoute("POST", "/resume", _STREAM),
    commands.DecideApproval: lambda sent: CommandRoute(
        "POST", f"/approvals/{sent.decision.request}", _decision(sent.decision)
    ),
    commands.RetryTurn: lambda _: CommandRoute("POST", "/retry", _STREAM),
    commands.CancelTurn: lambda sent: CommandRoute(
        "POST", "/cancel", run_shapes.CancelBody(all=sent.every), run_shapes.TurnNumbers, _turns
    ),
    commands.HideTurns: lambda sent: CommandRoute(
        "POST", "/undo", run_shapes.UndoBody(turns=sent.turns), run_shapes.TurnNumbers, _turns
    ),
    commands.RethinkReply: lambda sent: CommandRoute(
        "POST", "/thought", run_shapes.RewriteThoughtBody(text=sent.text), run_shapes.Changed, is_changed
    ),
    commands.SummarizeContext: lambda _: CommandRoute("POST", "/summarize", None, run_shapes.Changed, is_changed),
    commands.ExpandSummary: lambda _: CommandRoute("POST", "/undo_summary", None, run_shapes.Changed, is_changed),
    commands.ConfigureAgent: lambda sent: CommandRoute(
        "PATCH", "", agent_shapes.ConfigureBody(settings=settings_shape(sent.settings)), agent_shapes.AgentReport,
        opened_of,
    ),
    commands.AddBlock: lambda sent: CommandRoute(
        "POST", "/blocks", memory_shapes.AddBlockBody(**changes(sent)), agent_shapes.Done, is_done
    ),
    commands.ChangeBlock: lambda sent: CommandRoute(
        "PATCH", f"/blocks{path_of(sent.label)}", changes(sent, "label"), run_shapes.Changed, is_changed
    ),
    commands.RemoveBlock: lambda sent: CommandRoute(
        "DELETE", f"/blocks{path_of(sent.label)}", None, agent_shapes.Done, is_done
    ),
    commands.MoveAgent: lambda sent: CommandRoute(
        "POST", "/move", agent_shapes.MoveBody(placement="shared" if sent.shared else "dedicated"),
        agent_shapes.Done, is_done,
    ),
    **MEMORY_ROUTES,
    commands.DeleteAgent: lambda _: CommandRoute("DELETE", "", None, agent_shapes.DeletedAgents),
}  # fmt: skip

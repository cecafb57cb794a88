"""Read the turns of a log, and say what breaks the rules about functions: a plain model of them, written apart.

It knows the log alone, and folds nothing: for each call it looks at the list of all calls of the turn before it.
"""

import json
from collections.abc import Sequence
from itertools import groupby

from everlog.events import (
    AgentConfigured,
    Call,
    FunctionResult,
    FunctionRule,
    ModelReply,
    Record,
    TurnAbandoned,
    TurnCancelled,
    event_of,
)

REFUSALS = ("The rules of this agent do not allow", "Not run: the turn ends", "No function named")
Made = list[tuple[str, str]]
"""Calls that were made in a turn, with their results."""


def faults(records: Sequence[Record]) -> list[str]:
    """Return in words which calls and ends of turns break the rules of the agent's last configuration."""
    configured = [event for event in map(event_of, records) if isinstance(event, AgentConfigured)][-1]
    turns = [list(turn) for number, turn in groupby(records, key=lambda record: record.turn) if number]
    return [fault for turn in turns for fault in _faults_of_turn(configured, turn)]


def _faults_of_turn(config: AgentConfigured, records: Sequence[Record]) -> list[str]:
    found: list[str] = []
    made: Made = []
    names: dict[str, str] = {}
    replied: list[str] = []
    over = False
    for record in records:
        event = event_of(record)
        if isinstance(event, ModelReply):
            if over:
                found.append(f"turn {record.turn}: a reply after its end")
            names = {call.id: call.name for call in event.calls}
            replied = []
        elif isinstance(event, FunctionResult) and names[event.call_id] in functions(config):
            name, allowed = event.name, permitted(config, made, replied)
            if event.text.startswith(REFUSALS):
                if name in allowed:
                    found.append(f"turn {record.turn}: {name} was refused after {made}")
                continue
            if name not in allowed:
                found.append(f"turn {record.turn}: {name} was made after {made}")
            made.append((name, event.text))
            replied.append(name)
        over = over or _has_ended(config, made, replied)
    last = event_of(records[-1])
    if not isinstance(last, TurnAbandoned | TurnCancelled) and missing(config, made):
        found.append(f"turn {records[0].turn}: ended without {missing(config, made)}")
    return found


def functions(config: AgentConfigured) -> list[str]:
    return [function.name for function in config.functions]


def permitted(config: AgentConfigured, made: Made, replied: Sequence[str] = ()) -> set[str]:
    """Return the functions that may be called after these calls."""
    if _has_ended(config, made, replied):
        return set()
    begins = {rule.function for rule in config.rules if rule.kind == "init"}
    if begins and not made:
        return begins
    allowed = set(functions(config))
    for rule in config.rules:
        allowed &= _permitted_by(rule, made, set(functions(config)))
    return allowed


def _permitted_by(rule: FunctionRule, made: Made, every: set[str]) -> set[str]:
    follows = bool(made) and made[-1][0] == rule.function
    if rule.kind == "children" and follows:
        return set(rule.children)
    if rule.kind == "parent":
        return set(rule.children) if follows else every - set(rule.children)
    if rule.kind == "max_count" and [name for name, _ in made].count(rule.function) >= rule.limit:
        return every - {rule.function}
    if rule.kind == "conditional" and follows:
        for key, name in rule.outputs.items():
            if made[-1][1] in (key, json.dumps(key)):
                return {name}
        return {rule.default} if rule.default else set() if rule.strict else every
    return every


def missing(config: AgentConfigured, made: Made) -> set[str]:
    """Return the required functions that these calls lack."""
    return {rule.function for rule in config.rules if rule.kind == "required"} - {name for name, _ in made}


def _has_ended(config: AgentConfigured, made: Made, replied: Sequence[str]) -> bool:
    ends = {rule.function for rule in config.rules if rule.kind == "terminal"}
    return bool(replied) and replied[-1] in ends and not missing(config, made)


def calls_of(records: Sequence[Record]) -> list[Call]:
    """Return all calls that the model asked for."""
    return [call for event in map(event_of, records) if isinstance(event, ModelReply) for call in event.calls]

"""Say by the rules of an agent which functions may be called at a place of a turn. Pure.

The rules are part of the configuration, and the state is the event `rules_applied`: so the log says at each step which
functions the model was offered, and `verify` computes the same again. Used by `actors/formats`, which offer only
functions that may be called, and by `actors/rules/turn_rules.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.events import AgentConfigured, FunctionRef, FunctionRule, RulesApplied

_CALLED = {"": 1}
"""Counts of a turn that has begun, and in which no limit is reached."""


SCALAR_CHARS_MAX = 40
"""Characters of a result that is compared as a number or truth value; a longer one is compared as text."""


def begun(config: AgentConfigured) -> RulesApplied:
    """Return the state at the beginning of a turn."""
    return RulesApplied(allowed=_allowed(config, {}, "", ""))


def after(config: AgentConfigured, state: RulesApplied, name: str, result: str) -> RulesApplied:
    """Return the state after a call of `name` that had the result `result`."""
    counts = counted(state.counts, name)
    return RulesApplied(allowed=_allowed(config, counts, name, result), counts=counts, last=name)


def offered(config: AgentConfigured, state: RulesApplied | None) -> Sequence[FunctionRef]:
    """Return the functions that the model may call next. `state` None: the turn begins."""
    if not config.rules:
        return config.functions
    allowed = (state or begun(config)).allowed
    return [function for function in config.functions if function.name in allowed]


def may_follow(config: AgentConfigured, last: str) -> set[str]:
    """Return the functions that may follow `last`, with some result and few calls; empty `last`: that begin a turn."""
    if not last:
        return set(_allowed(config, {}, "", ""))
    results = [key for rule in config.rules if rule.function == last for key in rule.outputs]
    other = "".join(results) + "?"
    return {name for result in (*results, other) for name in _allowed(config, _CALLED, last, result)}


def within_limits(config: AgentConfigured, names: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return those of the functions whose limit of calls is not reached."""
    limits = [rule for rule in config.rules if rule.kind == "max_count"]
    return [name for name in names if all(_allows(rule, name, counts, "", "") for rule in limits)]


def has_children(config: AgentConfigured, name: str) -> bool:
    """Return True if a rule says which functions follow the function `name`."""
    return any(rule.function == name and rule.kind in ("children", "conditional") for rule in config.rules)


def counted(counts: Mapping[str, int], name: str) -> dict[str, int]:
    """Return the counts after another call of `name`."""
    return {**counts, name: counts.get(name, 0) + 1}


def _allowed(config: AgentConfigured, counts: Mapping[str, int], last: str, result: str) -> list[str]:
    """Return the functions that all rules allow, in the order of the configuration."""
    names = [function.name for function in config.functions]
    first = {rule.function for rule in config.rules if rule.kind == "init"}
    if first and not counts:
        return [name for name in names if name in first]
    return [name for name in names if all(_allows(rule, name, counts, last, result) for rule in config.rules)]


def _allows(rule: FunctionRule, name: str, counts: Mapping[str, int], last: str, result: str) -> bool:
    is_next = last == rule.function
    match rule.kind:
        case "children":
            return name in rule.children if is_next else True
        case "parent":
            return (name in rule.children) == is_next
        case "max_count":
            return name != rule.function or counts.get(name, 0) < rule.limit
        case "conditional" if is_next:
            follower = next((to for key, to in rule.outputs.items() if _same(key, result)), rule.default)
            return name == follower if follower else not rule.strict
    return True


def _same(key: str, result: str) -> bool:
    """Return True if a result is the one that a rule names: as text, or as the same number or truth value."""
    return key == result or (_scalar(key) is not None and _scalar(key) == _scalar(result))


def _scalar(text: str) -> tuple[type, Any] | None:
    """Return the number or truth value that a text is, with its type; None for any other text, and for a long one."""
    if len(text) > SCALAR_CHARS_MAX:  # it may be a number that no float holds, or too deep to read
        return None
    try:
        value = msgspec.json.decode(text.strip().lower())
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    if isinstance(value, bool):
        return bool, value
    return (float, float(value)) if isinstance(value, int | float) else None

"""Apply the rules about functions to the calls of a reply: refuse some, and continue or end the turn. Pure.

Used by `actors/agent/decide.py`, and by `verify` through it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.functions.memgpt_functions import ALIASES
from everlog.actors.prompt import function_rules
from everlog.events import AgentConfigured, FunctionResult, RulesApplied

CONTINUES = "[This is an automated system message hidden from the user] A rule of this agent continues the turn. {}"


class TurnRules:
    """The rules of an agent, applied to the calls of one reply in their order. Without rules everything is allowed."""

    __slots__ = ("_called", "_config", "_state")

    def __init__(self, config: AgentConfigured, state: RulesApplied | None) -> None:
        """`state`: newest `rules_applied` of the turn; None: the turn begins."""
        self._config = config
        self._state = (state or function_rules.begun(config)) if config.rules else None
        self._called: list[str] = []

    def fault(self, name: str) -> str | None:
        """Return why a function may not be called now, in words for the model; None if it may."""
        state, name = self._state, ALIASES.get(name, name)
        if state is None:
            return None
        if self.ended:
            return f"Not run: the turn ends with the call of {state.last}."
        if name in state.allowed:
            return None
        return f"The rules of this agent do not allow a call of {name} here. Allowed now: {_names(state.allowed)}."

    def arguments_of(self, name: str) -> Mapping[str, Any]:
        """Return the arguments that rules give to a call of the function now, in place of the model's."""
        found: dict[str, Any] = {}
        name = ALIASES.get(name, name)
        for rule in self._config.rules:
            begins = rule.kind == "init" and self._state is not None and not self._state.counts
            follows = rule.kind == "children" and self._state is not None and self._state.last == rule.function
            if (begins or follows) and name in rule.arguments:
                found |= msgspec.json.decode(rule.arguments[name], type=dict[str, Any])
        return found

    def called(self, result: FunctionResult) -> None:
        """Count a call that was allowed, with its result."""
        if self._state is not None:
            name = ALIASES.get(result.name, result.name)
            self._called.append(name)
            self._state = function_rules.after(self._config, self._state, name, result.text)

    def waits(self, name: str) -> None:
        """Count a call that waits for an approval. No rule about what follows it applies: its turn is over."""
        if self._state is not None:
            counts = function_rules.counted(self._state.counts, ALIASES.get(name, name))
            allowed = function_rules.within_limits(self._config, self._state.allowed, counts)
            self._state = msgspec.structs.replace(self._state, counts=counts, allowed=allowed)

    @property
    def ended(self) -> bool:
        """True if the last call of the reply ends the turn, and no function is still required."""
        last = self._called[-1] if self._called else ""
        is_last = any(rule.kind == "terminal" and rule.function == last for rule in self._config.rules)
        return bool(last) and is_last and not self._missing()

    def reason_to_continue(self) -> str:
        """Return why the turn may not end now, in words for the model; empty if it may."""
        state = self._state
        if state is None or self.ended:
            return ""
        if missing := self._missing():
            return CONTINUES.format(f"Still to be called before it ends: {_names(missing)}.")
        forced = any(rule.kind == "continue" and rule.function in self._called for rule in self._config.rules)
        if forced or (self._called and function_rules.has_children(self._config, self._called[-1])):
            return CONTINUES.format(f"Allowed now: {_names(state.allowed)}.")
        return ""

    def applied(self) -> Sequence[RulesApplied]:
        """Return the event that says what the next step may call; none without rules."""
        return [] if self._state is None else [self._state]

    def _missing(self) -> Sequence[str]:
        """Return the required functions that were not called in this turn."""
        counts = {} if self._state is None else self._state.counts
        has = {function.name for function in self._config.functions}
        required = [rule.function for rule in self._config.rules if rule.kind == "required" and rule.function in has]
        return [name for name in required if name not in counts]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"

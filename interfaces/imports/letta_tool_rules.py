"""Read and write the tool rules of Letta: rules about functions, and those about approvals. Pure.

Used by the import and export of agent files, and by the server's surface for Letta's clients.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from everlog.events import AgentConfigured, ApprovalRule, BadInput, FunctionRule

_KINDS = {
    "run_first": "init", "constrain_child_tools": "children", "parent_last_tool": "parent",
    "conditional": "conditional", "max_count_per_step": "max_count", "continue_loop": "continue",
    "exit_loop": "terminal", "required_before_exit": "required",
}  # fmt: skip
_TYPES = {kind: name for name, kind in _KINDS.items()}
_APPROVAL = "requires_approval"


class LettaArguments(msgspec.Struct, frozen=True):
    """Arguments that a rule gives to a child."""

    name: str
    args: dict[str, Any] | None = None


class LettaToolRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool rule of any type. Templates of prompts are ignored: Letta ignores them too."""

    tool_name: str
    type: str
    children: list[str] = []
    child_arg_nodes: list[LettaArguments] | None = None
    child_output_mapping: dict[str, str] = {}
    default_child: str | None = None
    require_output_mapping: bool | None = None
    max_count_limit: int = 0
    args: dict[str, Any] | None = None


class AgentRules(NamedTuple):
    """The rules of an agent."""

    functions: list[FunctionRule]
    approvals: list[ApprovalRule]
    """Functions that wait for an approval, by name."""


def rules_of(given: Sequence[object]) -> AgentRules:
    """Return the rules that tool rules of Letta stand for. Raises BadInput for an unknown type or a missing field."""
    try:
        rules = msgspec.convert(list(given), list[LettaToolRule])
    except msgspec.ValidationError as error:
        raise BadInput(f"A tool rule is not what it should be: {error}.") from error
    for rule in rules:
        if rule.type not in _KINDS and rule.type != _APPROVAL:
            known = ", ".join([*_KINDS, _APPROVAL])
            raise BadInput(f"A tool rule has one of the types {known}, not {rule.type[:80]!r}.")
    return AgentRules(
        [_function_rule(rule) for rule in rules if rule.type != _APPROVAL],
        [ApprovalRule(rule.tool_name) for rule in rules if rule.type == _APPROVAL],
    )


def _function_rule(rule: LettaToolRule) -> FunctionRule:
    given: dict[str, Mapping[str, Any] | None] = {node.name: node.args for node in rule.child_arg_nodes or ()}
    if rule.args:
        given = {rule.tool_name: rule.args}
    return msgspec.convert(
        {
            "kind": _KINDS[rule.type], "function": rule.tool_name, "children": rule.children,
            "outputs": rule.child_output_mapping, "default": rule.default_child or "",
            "strict": bool(rule.require_output_mapping) and not rule.default_child, "limit": rule.max_count_limit,
            "arguments": {name: msgspec.json.encode(args).decode() for name, args in given.items() if args},
        },
        FunctionRule,
    )  # fmt: skip


def letta_rules(config: AgentConfigured) -> list[LettaToolRule]:
    """Return the rules of a configuration as tool rules of Letta. Rules about approvals of patterns are left out."""
    found = [_letta_rule(rule) for rule in config.rules]
    return found + [LettaToolRule(rule.function, _APPROVAL) for rule in config.approvals if is_plain(rule)]


def _letta_rule(rule: FunctionRule) -> LettaToolRule:
    arguments = {name: msgspec.json.decode(text) for name, text in rule.arguments.items()}
    nodes = [LettaArguments(name, args) for name, args in arguments.items()] if rule.kind == "children" else None
    return LettaToolRule(
        rule.function, _TYPES[rule.kind], children=rule.children, child_arg_nodes=nodes or None,
        child_output_mapping=rule.outputs, default_child=rule.default or None,
        require_output_mapping=rule.strict or None, max_count_limit=rule.limit,
        args=arguments.get(rule.function) if rule.kind == "init" else None,
    )  # fmt: skip


def is_plain(rule: ApprovalRule) -> bool:
    """Return True if a rule says that one function waits for an approval, whatever its arguments."""
    return rule.decision == "ask" and not rule.arguments and not any(mark in rule.function for mark in "*?[")

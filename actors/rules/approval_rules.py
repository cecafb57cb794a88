"""Decide by rule which calls wait for a person's approval, and which are refused. Pure.

Used by `actors/agent/decide.py`, and by `verify` through it. The rules are part of the agent's configuration, so that
the log says for each call which rules held.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

import msgspec

from everlog.events import AgentConfigured, ApprovalRequested, ApprovalRule, BadInput, Call
from everlog.events.times import MICROSECONDS

ApprovalAction = Literal["ask", "allow", "refuse"]

REFUSED = "The rules of this agent do not allow this call."
NOT_RUN = (
    "Not run, because an earlier call of the same reply waits for an approval. Call the function again when that call "
    "is decided."
)
RULES_MAX = 100


def waiting_text(name: str) -> str:
    """Return the result of a call that waits, in words for the model."""
    return (
        f"The call of {name} waits for the approval of a person, and has not run. You are told the decision and the "
        "result later: do not call it again for this."
    )


def request(call: Call, name: str, config: AgentConfigured, now: int) -> ApprovalRequested:
    """Return the request for the approval of a call of the function `name`. `now`: microseconds UTC."""
    expires_at = now + config.approval_s * MICROSECONDS if config.approval_s else 0
    return ApprovalRequested(call_id=call.id, name=name, arguments=call.arguments, expires_at=expires_at)


def action_for(config: AgentConfigured, name: str, arguments: Mapping[str, Any]) -> ApprovalAction:
    """Return what happens with a call: the last rule that fits decides, else the function's own declaration."""
    for rule in reversed(config.approvals):
        if fnmatchcase(name, rule.function) and all(
            key in arguments and fnmatchcase(text_of(arguments[key]), pattern)
            for key, pattern in rule.arguments.items()
        ):
            return rule.decision
    return "ask" if name in config.asks else "allow"


def text_of(value: object) -> str:
    """Return an argument as the text that patterns are compared with: a text itself, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def check_rules(rules: Sequence[ApprovalRule]) -> None:
    """Raise BadInput for a rule without a function, and for more than RULES_MAX rules."""
    if len(rules) > RULES_MAX:
        raise BadInput(f"There are at most {RULES_MAX} rules about approvals, not {len(rules)}. Nothing was changed.")
    if any(not rule.function.strip() for rule in rules):
        raise BadInput("A rule about approvals names a function, or a pattern such as `delete_*`. Nothing was changed.")


def with_rule(rules: Sequence[ApprovalRule], rule: ApprovalRule) -> list[ApprovalRule]:
    """Return the rules with `rule` as the last one. Rules that it replaces, for the same calls, are left out."""
    return [*(one for one in rules if (one.function, one.arguments) != (rule.function, rule.arguments)), rule]


def rule_of(text: str) -> ApprovalRule:
    """Parse a rule: a decision, a function, and patterns of arguments as NAME=PATTERN. Raise BadInput."""
    decision, _, rest = text.strip().partition(" ")
    function, *patterns = rest.split() or [""]
    arguments = dict(pattern.partition("=")[::2] for pattern in patterns)
    if decision not in ("ask", "allow", "refuse") or not function or not all(arguments.values()):
        raise BadInput(
            f"A rule about approvals is `ask`, `allow` or `refuse`, a function, and patterns of arguments, such as "
            f"'ask delete_*' or 'refuse pay to=*casino*', not {text[:80]!r}. Nothing was changed."
        )
    return ApprovalRule(function, cast("ApprovalAction", decision), arguments)


def rule_text(rule: ApprovalRule) -> str:
    """Return a rule as `rule_of` parses it."""
    return " ".join([rule.decision, rule.function, *(f"{key}={pattern}" for key, pattern in rule.arguments.items())])

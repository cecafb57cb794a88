"""Check the rules about functions when they are set, and read and write them as text. Pure.

A rule set that would leave an agent without a function to call, or that demands a function that it never allows, is
refused here, and not found out in a turn. Used by `agent_setup.py` and the command line.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec

from everlog.actors.models.model_types import GROUP
from everlog.actors.prompt.function_rules import has_children, may_follow
from everlog.actors.rules import approval_rules
from everlog.actors.rules.first_message import FIRST_FUNCTIONS
from everlog.events import AgentConfigured, BadInput, FunctionRule

RULES_MAX = 100
ARGUMENTS_BYTES_MAX = 10_000
KINDS = get_args(msgspec.structs.fields(FunctionRule)[0].type)
UNCHANGED = "Nothing was changed."
FORMS = (
    "`init F`, `continue F`, `terminal F`, `required F`, `children F A,B`, `parent F A,B`, `max_count F 2` or "
    "`conditional F yes=A no=B *=C`"
)


def check(config: AgentConfigured) -> None:
    """Raise BadInput for a rule that is incomplete or names an unknown function, for rules that contradict each other,
    and for a group that cannot work.
    """
    if config.members or config.manager or config.model.startswith(GROUP):
        from everlog.actors.groups.membership import check_group  # most agents are no groups

        check_group(config)
    approval_rules.check_rules(config.approvals)
    rules = config.rules
    if not rules:
        return
    if len(rules) > RULES_MAX:
        raise BadInput(f"There are at most {RULES_MAX} rules about functions, not {len(rules)}. {UNCHANGED}")
    known = {function.name for function in config.functions}
    for rule in rules:
        _check_one(rule, known)
    for (kind, name), number in Counter((rule.kind, rule.function) for rule in rules).items():
        if number > 1:
            raise BadInput(f"There are {number} rules `{kind} {name}`: one says it all. {UNCHANGED}")
    _check_ends(config)
    _check_reachable(config)


def functions_of(rule: FunctionRule) -> list[str]:
    """Return the functions that a rule names."""
    return [rule.function, *rule.children, *rule.outputs.values(), *([rule.default] if rule.default else [])]


def _check_one(rule: FunctionRule, known: set[str]) -> None:
    """Raise BadInput for a rule that lacks a part or has one of another kind, or names an unknown function."""
    text = f"The rule `{rule_text(rule)}`"
    if missing := [name for name in functions_of(rule) if name not in known]:
        raise BadInput(f"{text} names {missing[0]!r}, which is no function of this agent. {UNCHANGED}")
    parts = {
        "children": bool(rule.children), "outputs": bool(rule.outputs), "default": bool(rule.default),
        "strict": rule.strict, "limit": rule.limit != 0, "arguments": bool(rule.arguments),
    }  # fmt: skip
    allowed = {
        "children": {"children", "arguments"}, "parent": {"children"}, "max_count": {"limit"}, "init": {"arguments"},
        "conditional": {"outputs", "default", "strict"},
    }.get(rule.kind, set())  # fmt: skip
    if wrong := [part for part, given in parts.items() if given and part not in allowed]:
        raise BadInput(f"{text} cannot have `{wrong[0]}`: rules are {FORMS}. {UNCHANGED}")
    if rule.kind in ("children", "parent") and not rule.children:
        raise BadInput(f"{text} names no function that follows. {UNCHANGED}")
    if rule.kind == "max_count" and rule.limit < 1:
        raise BadInput(f"{text} needs a number of calls from 1. {UNCHANGED}")
    if rule.kind == "conditional" and not rule.outputs:
        raise BadInput(f"{text} names no result, such as `yes=A`. {UNCHANGED}")
    if rule.strict and rule.default:
        raise BadInput(f"{text} cannot have both a default and `strict`. {UNCHANGED}")
    targets = {rule.function} if rule.kind == "init" else set(rule.children)
    for name, arguments in rule.arguments.items():
        if name not in targets or not _is_object(arguments):
            raise BadInput(
                f"{text} has arguments for {name!r}: they are a JSON object of at most {ARGUMENTS_BYTES_MAX:,} bytes, "
                f"for {', '.join(sorted(targets))}. {UNCHANGED}"
            )


def _is_object(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return False
    return len(text.encode()) <= ARGUMENTS_BYTES_MAX


def _check_ends(config: AgentConfigured) -> None:
    """Raise BadInput for a function that ends the turn and is followed by another one, by the same rules."""
    kinds = {(rule.kind, rule.function) for rule in config.rules}
    for kind, name in sorted(kinds):
        if kind != "terminal":
            continue
        if ("continue", name) in kinds or has_children(config, name):
            raise BadInput(f"The rules say that a turn ends with {name}, and that it continues. {UNCHANGED}")


def _check_reachable(config: AgentConfigured) -> None:
    """Raise BadInput if after some function nothing may be called, or a required function can never be called."""
    rules = config.rules
    first = may_follow(config, "")
    if not first:
        raise BadInput(f"With these rules no function may be called at the beginning of a turn. {UNCHANGED}")
    if config.verify_first and not first & set(FIRST_FUNCTIONS):
        raise BadInput(
            f"The first message is verified: it calls {' or '.join(FIRST_FUNCTIONS)}, which the rules do not allow at "
            f"the beginning of a turn. Switch it off with --no-verify-first. {UNCHANGED}"
        )
    reached, waiting = set(first), list(first)
    while waiting:
        name = waiting.pop()
        following = may_follow(config, name)
        if not following and has_children(config, name):
            raise BadInput(f"With these rules no function may be called after {name}. {UNCHANGED}")
        waiting += following - reached
        reached |= following
    for rule in rules:
        if rule.kind == "required" and rule.function not in reached:
            raise BadInput(f"{rule.function} is required, and the rules never allow it. {UNCHANGED}")


def rule_of(text: str) -> FunctionRule:
    """Parse a rule: its kind, a function, and what the kind needs, as in FORMS. Raise BadInput."""
    kind, _, rest = text.strip().partition(" ")
    function, *words = rest.split() or [""]
    if kind not in KINDS or not function or not _has_words(kind, words):
        raise BadInput(f"A rule about functions is {FORMS}, not {text[:80]!r}. {UNCHANGED}")
    given: dict[str, Any] = {}
    if kind in ("children", "parent"):
        given["children"] = [name for word in words for name in word.split(",") if name]
    elif kind == "max_count":
        given["limit"] = int(words[0])
    elif kind == "conditional":
        outputs = dict(word.partition("=")[::2] for word in words if word != "strict")
        given = {"default": outputs.pop("*", ""), "outputs": outputs, "strict": "strict" in words}
    return FunctionRule(cast("Any", kind), function, **given)


def _has_words(kind: str, words: Sequence[str]) -> bool:
    """Return True if the words after the function are those that the kind needs."""
    match kind:
        case "children" | "parent":
            return bool(words)
        case "max_count":
            return len(words) == 1 and words[0].isascii() and words[0].isdigit() and len(words[0]) < 7
        case "conditional":
            pairs = [word.partition("=") for word in words if word != "strict"]
            return bool(pairs) and all(key and name for key, _, name in pairs)
    return not words


def rule_text(rule: FunctionRule) -> str:
    """Return a rule as `rule_of` parses it. Arguments are left out: the text has no words for them."""
    words = [rule.kind, rule.function]
    words += [",".join(rule.children)] if rule.children else []
    words += [str(rule.limit)] if rule.kind == "max_count" else []
    words += [f"{key}={name}" for key, name in rule.outputs.items()]
    words += [f"*={rule.default}"] if rule.default else []
    words += ["strict"] if rule.strict else []
    return " ".join(words)

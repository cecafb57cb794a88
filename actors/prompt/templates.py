"""Render a section of the system prompt as a template: Jinja in its sandbox.

The allowed constructs are listed here, and everything else is refused before it runs: no macro, no include, no import,
no call but `range`, no filter of Jinja's own. Memory is bounded: texts, ranges and output have limits. Every template
ends, because loops nest only so deep; the time is up to its author, who could run Python as well. Pure. Used by
`prompt_sections.py` alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from traceback import extract_tb
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from everlog.actors.ports.agent_constants import (
    RANGE_MAX,
    SECTION_CHARS_MAX,
    TEMPLATE_LOOPS_MAX,
    TEMPLATE_NODES_MAX,
    TEXT_CHARS_MAX,
)
from everlog.events import BadInput, Section

_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign, nodes.With, nodes.Name,
    nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.CondExpr, nodes.Getattr, nodes.Getitem,
    nodes.Slice, nodes.Filter, nodes.Test, nodes.Call, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not,
    nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Keyword,
)  # fmt: skip
_TESTS = (
    "defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "even", "odd",
    "divisibleby", "eq", "equalto", "ne", "lt", "le", "gt", "ge", "in", "true", "false", "boolean",
)  # fmt: skip
_NUMBER_MAX = 10**15
INDENT_MAX = 40
_FAULTS = (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, NameError,
           RecursionError, SyntaxError)  # fmt: skip
"""Exceptions that a wrong template may raise while it is parsed or rendered."""


class _Refused(ValueError):
    """A limit or rule that the template broke."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with bounded arithmetic."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def call_binop(self, context: Any, sign: str, left: Any, right: Any) -> Any:
        if sign == "+" and isinstance(left, str) and isinstance(right, str):
            return _check_text_length(left + right)
        for number in (left, right):
            if not isinstance(number, int | float) or abs(number) > _NUMBER_MAX:
                raise _Refused(f"{sign} is for numbers up to {_NUMBER_MAX:,}, and + for two texts")
        return super().call_binop(context, sign, left, right)


def rendered(section: Section, facts: Mapping[str, Any]) -> str:
    """Render the template of a section. Raise BadInput, naming the section and the line."""
    sandbox = _Sandbox(
        undefined=StrictUndefined, optimized=False, finalize=_finalized, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    sandbox.filters = dict(_FILTERS)
    sandbox.tests = {name: sandbox.tests[name] for name in _TESTS}
    sandbox.globals = {"range": _range}
    try:
        tree = sandbox.parse(section.text)
        _check(tree)
        code = sandbox.compile(tree, name=section.name, filename=_FILE)
        template = sandbox.template_class.from_code(sandbox, code, dict(sandbox.globals))
        return "".join(_bounded(template.generate(**facts)))
    except _FAULTS as error:
        _raise_template_error(section, error)


_FILE = "<section>"
_TOO_LONG = f"a text in an expression has more than {TEXT_CHARS_MAX:,} characters"


def _raise_template_error(section: Section, error: BaseException) -> NoReturn:
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == _FILE]
    line = error.lineno if isinstance(error, TemplateSyntaxError) else lines[-1] if lines else None
    where = f", line {line}" if line else ""
    if isinstance(error, RecursionError | SyntaxError):
        reason = "it is nested too deeply"
    else:
        reason = str(getattr(error, "message", None) or error).rstrip(".")
    raise BadInput(
        f"The section {section.name!r}{where}: {reason}. Nothing was changed; docs/reference/prompts.md says what "
        "a template may hold."
    ) from None


def _bounded(pieces: Iterable[str]) -> Iterator[str]:
    chars = 0
    for piece in pieces:
        chars += len(piece)
        if chars > SECTION_CHARS_MAX:
            raise _Refused(f"it gives more than {SECTION_CHARS_MAX:,} characters")
        yield piece


def _check(tree: nodes.Template) -> None:
    """Raise TemplateSyntaxError for a construct that is not allowed."""
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    count = 0
    while waiting:
        node, loops = waiting.pop()
        count += 1
        loops += isinstance(node, nodes.For)
        fault = _fault(node)
        if count > TEMPLATE_NODES_MAX:
            fault = f"it is longer than {TEMPLATE_NODES_MAX:,} parts; plain text is one part"
        elif loops > TEMPLATE_LOOPS_MAX:
            fault = f"loops stand in loops, {TEMPLATE_LOOPS_MAX} deep at most"
        if fault:
            raise TemplateSyntaxError(fault, node.lineno)
        waiting.extend((inner, loops) for inner in node.iter_child_nodes())


def _fault(node: nodes.Node) -> str:
    """Return why a node is refused; empty if it is allowed."""
    if not isinstance(node, _ALLOWED):
        return f"a template has no {type(node).__name__.lower()}"
    match node:
        case nodes.Call(node=nodes.Name(name="range")):
            return ""
        case nodes.Call():
            return "only range(...) can be called; for the rest there are filters"
        case nodes.Const(value=str(text)) if len(text) > TEXT_CHARS_MAX:
            return _TOO_LONG
        case nodes.Filter(name=name) if name not in _FILTERS:
            return f"there is no filter {name!r}; there are {', '.join(sorted(_FILTERS))}"
        case nodes.Test(name=name) if name not in _TESTS:
            return f"there is no test {name!r}; there are {', '.join(_TESTS)}"
        case nodes.For(recursive=True):
            return "a loop cannot be recursive"
        case nodes.Getattr(attr=name) | nodes.Name(name=name) if name.startswith("_"):
            return f"{name} is not for templates"
        case nodes.List() | nodes.Tuple(ctx="load") | nodes.Dict() if any(node.find_all(_CHANGING)):
            return "a list holds constants only"
        case _:
            return ""


_CHANGING = (nodes.Name, nodes.Call, nodes.Filter, nodes.BinExpr)
"""Nodes that make a list of computed values: with lists of lists, memory would double with each line."""


def _range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > RANGE_MAX:
        raise _Refused(f"a range has {RANGE_MAX:,} numbers at most")
    return made


@pass_context
def _finalized(_: object, value: Any) -> Any:
    """Check a value that is written out. It takes the context so that Jinja computes nothing while it parses."""
    return _shown(value)


def _shown(value: Any) -> Any:
    """Return a value that may be written out: text and numbers only. An undefined value raises its own error."""
    if isinstance(value, str | int | float | Undefined):
        return value
    raise _Refused(
        f"{{{{ }}}} shows text and numbers, not {_kind(value)}; a loop, or the filter join, shows what is in it"
    )


def _kind(value: Any) -> str:
    if value is None:
        return "nothing (none)"
    return "a function" if callable(value) else "a list"


def _check_text_length(text: str) -> str:
    if len(text) > TEXT_CHARS_MAX:
        raise _Refused(_TOO_LONG)
    return text


def _join(things: Iterable[Any], between: str = "", attribute: str = "") -> str:
    reason = [str(_shown(thing[attribute] if attribute else thing)) for thing in things]
    if sum(map(len, reason)) + len(between) * (len(reason) - 1) > TEXT_CHARS_MAX:
        raise _Refused(_TOO_LONG)
    return between.join(reason)


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        raise _Refused("replace has something to replace")
    if len(text) + text.count(old) * len(new) > TEXT_CHARS_MAX:
        raise _Refused(_TOO_LONG)
    return text.replace(old, new)


def _default(value: Any, other: Any = "") -> Any:
    return other if isinstance(value, Undefined) else value


def _indent(text: str, spaces: int = 4) -> str:
    if not 0 <= spaces <= INDENT_MAX:
        raise _Refused(f"indent takes 0 to {INDENT_MAX} spaces")
    return _replace(text, "\n", "\n" + " " * spaces)


def _truncate(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: max(0, chars - 1)] + "…"


def _length(value: Sequence[Any]) -> int:
    return len(value)


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "upper": str.upper, "lower": str.lower, "title": str.title, "capitalize": str.capitalize, "trim": str.strip,
    "length": _length, "join": _join, "replace": _replace, "default": _default, "indent": _indent,
    "truncate": _truncate, "int": int, "string": lambda value: str(_shown(value)), "abs": abs,
    "round": lambda number, digits=0: round(number, max(0, min(digits, 15))), "first": lambda things: things[0],
    "last": lambda things: things[-1], "sort": lambda things, attribute="": sorted(
        things, key=lambda thing: thing[attribute] if attribute else thing),
}  # fmt: skip
"""All available filters."""

"""A section of the system prompt as a template: Jinja in its sandbox, and only what comes to an end soon.

What a template may hold is listed here, and everything else is refused before it runs: no macro, no include, no import,
no call but `range`, no filter of Jinja's own. Each thing that it does costs work: a loop what is in it, for every time;
a filter and a comparison the length of what they are given. When the work is used up it is refused: neither time nor
memory can run away. Pure.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from traceback import extract_tb
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, nodes, pass_context, pass_environment
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from everlog.actors.ports.constants import (
    RANGE_MAX,
    SECTION_CHARS_MAX,
    TEMPLATE_NODES_MAX,
    TEMPLATE_WORK_MAX,
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
_CHARS_FOR_WORK = 64
"""Characters that cost as much as one thing that a template does."""
_SEARCH_FOR_WORK = _CHARS_FOR_WORK**2
"""Where a text is looked for in another, the product of their lengths that costs as much."""
_FAULTS = (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, NameError,
           RecursionError, SyntaxError)  # fmt: skip
"""What a template that is wrong may raise while it is read or rendered."""


class _Refused(ValueError):
    """What a template does not come through with."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox of one rendering: it counts what is done."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})
    work = 0

    def spend(self, work: int) -> None:
        """Count work. Raises _Refused where it is more than a template may do."""
        self.work += work
        if self.work > TEMPLATE_WORK_MAX:
            raise _Refused("it does too much: a loop is too long, or loops stand in loops")

    def call_binop(self, context: Any, sign: str, left: Any, right: Any) -> Any:
        if sign == "+" and isinstance(left, str) and isinstance(right, str):
            self.spend(1 + (len(left) + len(right)) // _CHARS_FOR_WORK)
            return _fitting(left + right)
        for number in (left, right):
            if not isinstance(number, int | float) or abs(number) > _NUMBER_MAX:
                raise _Refused(f"{sign} is for numbers up to {_NUMBER_MAX:,}, and + for two texts")
        return super().call_binop(context, sign, left, right)


def rendered(section: Section, facts: Mapping[str, Any]) -> str:
    """What the template of a section gives. Raises BadInput, with the section and the line."""
    sandbox = _Sandbox(
        undefined=StrictUndefined, optimized=False, finalize=_finalized, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    sandbox.filters = {name: _filter(function) for name, function in _FILTERS.items()}
    sandbox.filters |= {"each": _each, "compared": _compared}
    sandbox.tests = {name: _test(name, sandbox.tests[name]) for name in _TESTS}
    sandbox.globals = {"range": _range}
    try:
        tree = sandbox.parse(section.text)
        _check(tree)
        _Counted(sandbox).visit(tree)
        _count_loops(tree, sandbox)
        code = sandbox.compile(tree, name=section.name, filename=_FILE)
        template = sandbox.template_class.from_code(sandbox, code, dict(sandbox.globals))
        return "".join(_bounded(template.generate(**facts)))
    except _FAULTS as error:
        _refuse(section, error)


_FILE = "<section>"
_TOO_LONG = f"a text in an expression has more than {TEXT_CHARS_MAX:,} characters"


def _refuse(section: Section, error: BaseException) -> NoReturn:
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == _FILE]
    line = error.lineno if isinstance(error, TemplateSyntaxError) else lines[-1] if lines else None
    where = f", line {line}" if line else ""
    if isinstance(error, RecursionError | SyntaxError):
        told = "it is nested too deeply"
    else:
        told = str(getattr(error, "message", None) or error).rstrip(".")
    raise BadInput(
        f"The section {section.name!r}{where}: {told}. Nothing was changed; docs/prompts.md says what a template may "
        "hold."
    ) from None


def _bounded(pieces: Iterable[str]) -> Iterator[str]:
    chars = 0
    for piece in pieces:
        chars += len(piece)
        if chars > SECTION_CHARS_MAX:
            raise _Refused(f"it gives more than {SECTION_CHARS_MAX:,} characters")
        yield piece


def _check(tree: nodes.Template) -> None:
    """Raises TemplateSyntaxError for what a template may not hold."""
    waiting: list[nodes.Node] = [tree]
    for count, node in enumerate(_taken(waiting)):
        fault = "" if isinstance(node, _ALLOWED) else f"a template has no {type(node).__name__.lower()}"
        if count > TEMPLATE_NODES_MAX:
            fault = f"it is longer than {TEMPLATE_NODES_MAX:,} parts; plain text is one part"
        raise_for = fault or _fault(node)
        if raise_for:
            raise TemplateSyntaxError(raise_for, node.lineno)
        waiting.extend(node.iter_child_nodes())


def _taken(waiting: list[nodes.Node]) -> Iterator[nodes.Node]:
    while waiting:
        yield waiting.pop()


def _fault(node: nodes.Node) -> str:
    """Why a node of an allowed kind is refused; empty if it is not."""
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
"""What makes a list of things that are not written down: of lists of lists it would double with each line."""


def _count_loops(tree: nodes.Template, sandbox: _Sandbox) -> None:
    """Let each loop count, for every time, what is in it."""
    for loop in list(tree.find_all(nodes.For)):
        parts = [*loop.body, *loop.else_, *([loop.test] if loop.test is not None else [])]
        weight = 1 + sum(1 + sum(1 for _ in part.find_all(nodes.Node)) for part in parts)
        counted = nodes.Filter(loop.iter, "each", [nodes.Const(weight)], [], None, None, lineno=loop.lineno)
        counted.set_environment(sandbox)
        loop.iter = counted


@pass_environment
def _each(sandbox: _Sandbox, things: Iterable[Any], weight: int) -> Iterator[Any]:
    for thing in things:
        sandbox.spend(weight)
        yield thing


class _Counted(NodeTransformer):
    """Has each comparison counted."""

    def __init__(self, sandbox: _Sandbox) -> None:
        self._sandbox = sandbox

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # Jinja's name  # noqa: N802  # Jinja's name
        """As a filter of everlog's own, which no template can name."""
        self.generic_visit(node)
        given = [part for operand in node.ops for part in (nodes.Const(operand.op), operand.expr)]
        counted = nodes.Filter(node.expr, "compared", given, [], None, None, lineno=node.lineno)
        counted.set_environment(self._sandbox)
        return counted


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "equalto": operator.eq, "ne": operator.ne, "lt": operator.lt, "lteq": operator.le,
    "le": operator.le, "gt": operator.gt, "gteq": operator.ge, "ge": operator.ge,
    "in": lambda left, right: left in right, "notin": lambda left, right: left not in right,
}  # fmt: skip
"""By the words of Jinja's operators and tests."""


@pass_environment
def _compared(sandbox: _Sandbox, left: Any, *rest: Any) -> Any:
    """A comparison, or a chain of them: signs and things in turn."""
    result: Any = True
    for sign, right in zip(rest[::2], rest[1::2], strict=True):
        sandbox.spend(1 + _size(left) + _size(right))
        if sign in ("in", "notin"):
            _spend_search(sandbox, left, right)
        result = _COMPARISONS[sign](left, right)
        if not result:
            break
        left = right
    return result


def _test(name: str, function: Any) -> Any:
    """A test that compares costs what a comparison does."""
    if name not in _COMPARISONS:
        return function

    @pass_environment
    def spending(sandbox: _Sandbox, left: Any, right: Any) -> Any:
        return _compared(sandbox, left, name, right)

    return spending


def _spend_search(sandbox: _Sandbox, wanted: Any, place: Any) -> None:
    if isinstance(wanted, str) and isinstance(place, str):
        sandbox.spend(len(wanted) * len(place) // _SEARCH_FOR_WORK)
    elif isinstance(place, list | tuple | dict | range):
        sandbox.spend(len(place) * _size(wanted))


def _size(value: Any) -> int:
    """What it costs to look at the whole of a value."""
    if isinstance(value, str):
        return len(value) // _CHARS_FOR_WORK
    if isinstance(value, Mapping):
        return sum(1 + _size(key) + _size(value[key]) for key in value)
    if isinstance(value, list | tuple):
        return sum(1 + _size(thing) for thing in value)
    return len(value) if isinstance(value, range) else 0


def _range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > RANGE_MAX:
        raise _Refused(f"a range has {RANGE_MAX:,} numbers at most")
    return made


@pass_context
def _finalized(_: object, value: Any) -> Any:
    """What is written of a value. It asks for the context so that nothing is worked out while a template is read."""
    return _shown(value)


def _shown(value: Any) -> Any:
    """What is written of a value: text and numbers only. An undefined one says so itself."""
    if isinstance(value, str | int | float | Undefined):
        return value
    raise _Refused(
        f"{{{{ }}}} shows text and numbers, not {_kind(value)}; a loop, or the filter join, shows what is in it"
    )


def _kind(value: Any) -> str:
    if value is None:
        return "nothing (none)"
    return "a function" if callable(value) else "a list"


def _filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that costs the length of what it is given."""

    @pass_environment
    def spending(sandbox: _Sandbox, value: Any, *more: Any, **named: Any) -> Any:
        sandbox.spend(1 + sum(map(_size, (value, *more, *named.values()))))
        if isinstance(value, str) and function in (_join, _FILTERS["sort"]):
            sandbox.spend(len(value))
        if function is _replace and more:
            _spend_search(sandbox, more[0], value)
        return function(value, *more, **named)

    return spending


def _fitting(text: str) -> str:
    if len(text) > TEXT_CHARS_MAX:
        raise _Refused(_TOO_LONG)
    return text


def _join(things: Iterable[Any], between: str = "", attribute: str = "") -> str:
    told = [str(_shown(thing[attribute] if attribute else thing)) for thing in things]
    if sum(map(len, told)) + len(between) * (len(told) - 1) > TEXT_CHARS_MAX:
        raise _Refused(_TOO_LONG)
    return between.join(told)


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
"""All filters that there are."""

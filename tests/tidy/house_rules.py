"""The rules as functions from sources to problems, so that `test_rules_bite.py` can test each with an offender."""

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch

from tests.tidy.parsed_source import ROOMS, Source

LINES_MAX = 399  # "under 400"
FUNCTION_LINES_MAX = 69  # "under 70"
FUNCTION_LINES_MEDIAN_MAX = 9  # "median under 10"; asked once there are enough functions to have a median
FUNCTIONS_FOR_A_MEDIAN = 30

IMPURE = {"pyarrow", "duckdb", "lancedb", "ray", "openai", "time", "random", "uuid", "secrets"}
PURE_IN_ACTORS = ("actors/agent/decide*.py", "actors/formats/*.py")
HEAVY = {
    "ray": "actors",
    "openai": "actors",
    "jinja2": "actors",
    "lancedb": "store",
    "prompt_toolkit": "interfaces",
}  # library -> the room that holds its one file
PAGES = "interfaces/http/pages/"
"""Folder of the server's pages, the only other place where templates are rendered, with jinja2."""

CHANCE = re.compile(
    r"time\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?|time\.sleep"
    r"|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today"
    r"|uuid\.(uuid[0-9]|getnode)|os\.(urandom|getrandom)|secrets\..+"
    r"|random\.(?!Random$)\w+"
)


def wrong_way(files: Iterable[Source]) -> Iterator[str]:
    """Yield imports against the order of the rooms, and imports of the tests or benchmarks from a room."""
    for source in files:
        allowed = ROOMS[: ROOMS.index(source.room) + 1]
        for imported in source.imports:
            if imported.top in (*ROOMS, "tests", "bench") and imported.top not in allowed:
                yield f"{source.path}:{imported.line} imports {imported.name}"


def is_pure(path: str) -> bool:
    return path.startswith("events/") or any(fnmatch(path, pattern) for pattern in PURE_IN_ACTORS)


def files_of(name: str, known: dict[str, Source]) -> Iterator[str]:
    """Return the possible files of an imported name: the module `a.b`, or `a` if `b` is a name inside it."""
    parts = name.split(".")
    for cut in (len(parts), len(parts) - 1):
        stem = "/".join(parts[:cut])
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in known:
                yield path
                return


def impure(files: Iterable[Source]) -> Iterator[str]:
    """Yield pure modules that import an impure module, directly or through other modules of this project."""
    known = {source.path: source for source in files}
    for start in filter(is_pure, known):
        queue, seen = [(start,)], {start}
        while queue:
            chain = queue.pop()
            for imported in known[chain[-1]].imports:
                if imported.top in IMPURE and (not imported.lazy or len(chain) == 1):
                    yield f"{' -> '.join(chain)}:{imported.line} imports {imported.top}"
                if imported.lazy and len(chain) > 1:
                    continue
                for path in files_of(imported.place, known):
                    if path not in seen:
                        seen.add(path)
                        queue.append((*chain, path))


def foreign_to_events(files: Iterable[Source], stdlib: frozenset[str]) -> Iterator[str]:
    """Yield imports of events/ other than the standard library, msgspec and itself."""
    for source in files:
        for imported in source.imports if source.room == "events" else ():
            if imported.top not in stdlib | {"msgspec", "events"}:
                yield f"{source.path}:{imported.line} imports {imported.name}"


def heavy_imports(files: Iterable[Source]) -> Iterator[str]:
    """Yield imports of ray, openai, jinja2 and lancedb beyond the one file of each, or outside its room."""
    users = defaultdict(set)
    for source in files:
        for imported in source.imports:
            if imported.top in HEAVY and not (imported.top == "jinja2" and source.path.startswith(PAGES)):
                users[imported.top].add(source.path)
    for library, paths in sorted(users.items()):
        strangers = sorted(path for path in paths if not path.startswith(f"{HEAVY[library]}/"))
        yield from (f"{path} imports {library}, which belongs to {HEAVY[library]}/" for path in strangers)
        if len(paths) > 1:
            yield f"{library} is imported in {len(paths)} files: {', '.join(sorted(paths))}"


def chance(files: Iterable[Source]) -> Iterator[str]:
    """Yield reads of the wall clock, new ids and random numbers outside actors/ports/real_clock.py."""
    for source in files:
        if source.path != "actors/ports/real_clock.py":
            found = {(line, name) for name, line in source.uses if CHANCE.fullmatch(name)}
            yield from (f"{source.path}:{line} uses {name}" for line, name in sorted(found))


def sleeping(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        found = {(line, name) for name, line in source.uses if name == "time.sleep"}
        yield from (f"{source.path}:{line} sleeps" for line, _ in sorted(found))


def long_files(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        if (lines := len(source.text.splitlines())) > LINES_MAX:
            yield f"{source.path} has {lines} lines"


def long_functions(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        for function in source.functions:
            if (lines := function.end_lineno - function.lineno + 1) > FUNCTION_LINES_MAX:
                yield f"{source.path}:{function.lineno} {function.name} has {lines} lines"


def median_too_long(files: Iterable[Source]) -> Iterator[str]:
    """Yield a problem if the median function is too long; docstrings are not counted, so documentation costs
    nothing.
    """
    lengths = []
    for function in (function for source in files for function in source.functions):
        lines = function.end_lineno - function.lineno + 1
        if ast.get_docstring(function):
            lines -= function.body[0].end_lineno - function.body[0].lineno + 1
        lengths.append(lines)
    if len(lengths) >= FUNCTIONS_FOR_A_MEDIAN and (median := statistics.median(lengths)) > FUNCTION_LINES_MEDIAN_MAX:
        yield f"half of our {len(lengths)} functions have {median:g} lines or more"


def broad_excepts(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        for node in source.nodes:
            if isinstance(node, ast.ExceptHandler):
                kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                names = {ast.unparse(kind) if kind else "" for kind in kinds}
                if names & {"", "Exception", "BaseException"}:
                    yield f"{source.path}:{node.lineno} catches everything"


def without_docstring(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        if not ast.get_docstring(source.tree):
            yield f"{source.path} does not begin with a docstring"


def _exports(source: Source) -> list[str] | None:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def _defined(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from _defined([*node.body, *node.orelse])


def _in_order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Return names in the linter's order: CONSTANTS, Classes, functions; numbers by value. `ruff check --fix` sorts
    like this.
    """
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def bad_exports(files: Iterable[Source]) -> Iterator[str]:
    """Yield names in `__all__` that are undefined, repeated, or out of order."""
    for source in files:
        exported = _exports(source)
        if exported is None:
            continue
        missing = set(exported) - set(_defined(source.tree.body))
        yield from (f"{source.path} exports {name}, which is not there" for name in sorted(missing))
        if exported != sorted(set(exported), key=_in_order):
            yield f"{source.path}: __all__ is not sorted, or has a name twice"

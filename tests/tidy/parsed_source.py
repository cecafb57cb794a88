"""Parsed files, their imports as dotted names, and their functions, for the rules. Nothing is written."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "everlog"  # the one import name; its rooms are links to the folders at the top
ROOMS = ("events", "store", "projections", "actors", "interfaces")  # each may import those before it


@dataclass(frozen=True)
class Import:
    """One imported dotted name: `from a.b import c` is `a.b.c`, written in the file's line."""

    name: str
    line: int
    lazy: bool  # inside a function, or under TYPE_CHECKING: not run when the module is imported

    @property
    def place(self) -> str:
        """The dotted name below `everlog`, like the folders: `everlog.store.base` is `store.base`."""
        return self.name.removeprefix(f"{PACKAGE}.")

    @property
    def top(self) -> str:
        """The room, or the external package, with which the name begins."""
        return self.place.partition(".")[0]


@dataclass(frozen=True)
class Source:
    """A parsed file of the repository."""

    path: str  # relative to the root, with forward slashes
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        gc.disable()  # trees are millions of objects, and stay: each collection meanwhile would traverse all of them
        try:
            return ast.parse(self.text, self.path)
        finally:
            gc.enable()
            gc.freeze()

    @property
    def room(self) -> str:
        return self.path.partition("/")[0]

    @property
    def package(self) -> str:
        return ".".join(Path(self.path).parent.parts)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(_imports(self.tree, self.package, lazy=False))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the file, collected once for all rules."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The meaning of each imported name in this file."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{_absolute(node, self.package)}.{alias.name}"
        return found

    @property
    def uses(self) -> Iterator[tuple[str, int]]:
        """Return every use of an imported name as (dotted name, line), also under an alias."""
        for imported in self.imports:
            yield imported.name, imported.line
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and (chain := _chain(node)):
                head, _, rest = chain.partition(".")
                if head in self.aliases:
                    yield f"{self.aliases[head]}.{rest}", node.lineno


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _chain(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := _chain(node.value)):
        return f"{base}.{node.attr}"
    return ""


def _imports(node: ast.AST, package: str, *, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, package)
            yield from (Import(f"{base}.{alias.name}", child.lineno, lazy) for alias in child.names)
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _imports(child, package, lazy=lazy or function or typing)


@lru_cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Return every Python file in the folders (default: the five rooms), in order of path."""
    found = []
    for folder in folders or ROOMS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.append(_source(path))
    return tuple(found)


@cache
def _source(path: Path) -> Source:
    """Return a file, which is read and parsed once for all selections of folders."""
    return Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def everything() -> tuple[Source, ...]:
    """Return the files of the rooms, the tests and the benchmarks."""
    return sources(*ROOMS, "tests", "bench")


def report(problems: list[str], cure: str) -> None:
    """Fail with every problem and the cure."""
    assert not problems, "\n".join(["", *problems, f"Cure: {cure}"])

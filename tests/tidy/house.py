"""The rules of the layout: which sub-room may import which, and that a name means one thing. Functions from sources to
problems, as in `house_rules.py`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.tidy.house_rules import files_of
from tests.tidy.parsed_source import PACKAGE, ROOMS, Import, Source

FILES_MAX = 20
"""Maximum number of files in a folder, `__init__.py` not counted."""

SUB_ROOMS: Mapping[str, Sequence[str]] = {
    "store": (
        "base", "partition", "sealed", "log", "streams", "backup", "object", "stores", "check", "copy", "embedding",
        "archive",
    ),
    "projections": ("search", "hot", "fleet"),
    "actors": (
        "ports", "models", "prompt", "formats", "recollection", "memory", "derivation", "functions", "mail", "groups",
        "mcp", "a2a", "rules", "agent", "deriving", "postbox", "replay", "rerun", "reports", "feed", "archive",
        "erasure", "gateway", "sharding", "hosting", "scaling",
        "cluster",
    ),
    "interfaces": (
        "defaults", "wire", "client", "common", "line_editor", "output", "documents", "imports", "show", "talk",
        "manage", "memories", "replay_console", "fleet", "operate", "mcp", "a2a", "http", "explain", "cli", "tour",
        "testing",
    ),
}  # fmt: skip
"""The sub-rooms of each room, lowest first: a sub-room may import itself and those before it. The top of a room comes
last.
"""

BROAD = {"Exception", "BaseException"}
GUARDS: Mapping[str, str] = {
    "actors/agent/decide.py": "runs functions of users",
    "actors/agent/turn_runner.py": "runs functions of users",
    "actors/functions/processes/function_process.py": "pickles functions of users",
    "actors/functions/processes/process_child.py": "runs functions of users",
    "actors/functions/run_function.py": "runs functions of users",
    "actors/mcp/server_owner.py": "runs the client of servers of others, whose answers may make it raise anything",
    "actors/ports/function_threads.py": "runs functions of users",
    "actors/cluster/pickling.py": "pickles and unpickles objects of users",
    "interfaces/common/bootstrap.py": "loads files of users",
}
"""Files that may catch everything, because the code of users runs there: its faults are reported to its author."""


def sub_room(path: str) -> str:
    """Return the sub-room of a file; empty for one at the top of its room."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def _rank(path: str) -> int:
    room, own = path.partition("/")[0], sub_room(path)
    order = SUB_ROOMS.get(room, ())
    return order.index(own) if own in order else len(order)


def without_place(files: Iterable[Source]) -> Iterator[str]:
    """Yield folders of a room that the order of sub-rooms does not contain."""
    for source in files:
        own = sub_room(source.path)
        if source.room in SUB_ROOMS and own and own not in SUB_ROOMS[source.room]:
            yield f"{source.path}: {own} has no place among the sub-rooms of {source.room}"


def against_sub_rooms(files: Iterable[Source]) -> Iterator[str]:
    """Yield imports of a later sub-room, or of the top of the same room."""
    known = {source.path: source for source in files}
    for source in known.values():
        for imported in source.imports:
            for path in files_of(imported.place, known):
                if path.partition("/")[0] == source.room and _rank(path) > _rank(source.path):
                    yield f"{source.path}:{imported.line} imports {path}, which comes later"


def crowded(files: Iterable[Source]) -> Iterator[str]:
    """Yield folders with more than FILES_MAX files."""
    counts: dict[str, int] = defaultdict(int)
    for source in files:
        folder, _, name = source.path.rpartition("/")
        counts[folder] += name != "__init__.py"
    yield from (f"{folder} has {count} files" for folder, count in sorted(counts.items()) if count > FILES_MAX)


def _types(tree: ast.Module) -> Iterator[str]:
    """Return the public types that a file defines: classes, and aliases in the form of types."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and not target.id.isupper():
                    yield target.id


def doubled_types(files: Iterable[Source]) -> Iterator[str]:
    """Yield public type names that several files define."""
    found = defaultdict(list)
    for source in files:
        for name in set(_types(source.tree)):
            if name[:1].isupper():
                found[name].append(source.path)
    yield from (f"{name}: {', '.join(paths)}" for name, paths in sorted(found.items()) if len(paths) > 1)


def circles(files: Iterable[Source]) -> Iterator[str]:
    """Yield files that import each other: at run time, inside functions or for the type checker only."""
    known = {source.path: source for source in files}
    graph = {
        path: sorted({target for imported in source.imports for target in files_of(imported.place, known)} - {path})
        for path, source in known.items()
    }
    left = dict(graph)
    while free := [path for path, targets in left.items() if not any(target in left for target in targets)]:
        for path in free:
            del left[path]
    if left:
        yield _circle(left)


def _circle(graph: Mapping[str, Sequence[str]]) -> str:
    """Return one cycle of a graph in which every file imports another."""
    path = [min(graph)]
    while (following := next(target for target in graph[path[-1]] if target in graph)) not in path:
        path.append(following)
    return " -> ".join([*path[path.index(following) :], following])


def not_absolute(files: Iterable[Source]) -> Iterator[str]:
    """Yield imports of this project's files that do not begin with the package's name."""
    for source in files:
        nodes = source.nodes
        relative = {node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level}
        yield from (f"{source.path}:{line} imports relative to itself" for line in sorted(relative))
        bare = (imported for imported in source.imports if _bare(imported) and imported.line not in relative)
        yield from (f"{source.path}:{imported.line} imports {imported.name}" for imported in bare)


def _bare(imported: Import) -> bool:
    return imported.name.partition(".")[0] in ROOMS


def hidden_broad_excepts(files: Iterable[Source]) -> Iterator[str]:
    """Yield handlers that catch everything through a constant or an attribute, in files where no code of users runs."""
    for source in files:
        if source.path in GUARDS:
            continue
        broad = {name for name, value in _constants(source.tree) if BROAD & _names(value)}
        for node in source.nodes:
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                foreign = isinstance(node.type, ast.Attribute) and not _names(node.type) & set(source.aliases)
                if foreign or _names(node.type) & broad:
                    yield f"{source.path}:{node.lineno} catches {ast.unparse(node.type)}"


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _names(node: ast.expr) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def unmentioned(files: Iterable[Source], text: str) -> Iterator[str]:
    """Yield sub-rooms that have no row of three cells in a page about the layout."""
    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ") and line.count("|") == 4}
    rooms = {f"{source.room}/{sub_room(source.path)}" for source in files if sub_room(source.path)}
    yield from (f"{room}/" for room in sorted(rooms) if f"`{room}/`" not in rows)


assert PACKAGE not in ROOMS, "the package holds the rooms and is none"

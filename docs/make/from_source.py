"""Make the reference of Python from the source: signatures, docstrings, fields. Nothing is imported, only parsed."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from docs.make.blocks import ROOT, UnknownBlock, escaped, table

MODULES = {
    "open_system": "actors/api.py",
    "ServiceOptions": "actors/api.py",
    "open": "actors/sync_api.py",
    "SyncSystem": "actors/sync_api.py",
    "SyncAgent": "actors/sync_api.py",
    "SyncRun": "actors/sync_api.py",
    "AgentSystem": "actors/agent_system.py",
    "AgentRef": "actors/agent_ref.py",
    "ArchivalMemory": "actors/agent_memory.py",
    "AgentMemories": "actors/derived_memories.py",
    "MemoryViews": "actors/memory_views.py",
    "MemoryItem": "actors/recollection/memory_items.py",
    "RankedMemories": "actors/recollection/memory_ranking.py",
    "ScoredMemory": "actors/recollection/memory_ranking.py",
    "SummaryLimits": "actors/recollection/memory_levels.py",
    "LeveledText": "actors/recollection/memory_levels.py",
    "KnownSummaries": "actors/recollection/memory_levels.py",
    "MemoryTree": "actors/recollection/memory_tree.py",
    "TreeNode": "actors/recollection/memory_tree.py",
    "DerivationReport": "actors/derivation/conclusions.py",
    "AgentState": "actors/agent_state.py",
    "Run": "actors/runtime.py",
    "Reply": "actors/reply.py",
    "TokenCount": "actors/reply.py",
    "CallMade": "actors/reply.py",
    "SendOutcome": "actors/reply.py",
    "OpenReport": "actors/agent/commands.py",
    "ImportedMessage": "actors/agent/conversation_import.py",
    "ImportReport": "actors/agent/conversation_import.py",
    "Section": "events/lifecycle.py",
    "Sampling": "events/lifecycle.py",
    "Record": "events/base.py",
    "Hit": "actors/ports/effects.py",
    "TurnPair": "actors/rerun/rerun_comparison.py",
    "TurnTrace": "actors/rerun/rerun_comparison.py",
    "CallCosts": "actors/rerun/rerun_comparison.py",
    "LoadReport": "actors/memory/document_load.py",
    "SharedBlock": "actors/memory/shared_block_rules.py",
    "BlockVersion": "actors/memory/shared_block_service.py",
    "DocumentSources": "actors/store_services.py",
    "SharedBlocks": "actors/store_services.py",
    "Settings": "actors/agent/agent_setup.py",
    "InitialBlock": "actors/agent/agent_setup.py",
    "NewFork": "actors/agent/fork_agent.py",
    "RerunOptions": "actors/rerun/rerun.py",
    "RerunOutcome": "actors/rerun/rerun.py",
    "RerunComparison": "actors/rerun/rerun_comparison.py",
    "Selection": "actors/erasure/selection.py",
    "ErasurePlan": "actors/erasure/erasure_plan.py",
    "ErasureReport": "actors/erasure/erase_planned.py",
    "PlannedRecord": "actors/erasure/stream_scan.py",
    "Document": "actors/memory/document_load.py",
    "Memory": "actors/memory/core_memory.py",
    "Page": "actors/ports/effects.py",
    "Filters": "actors/ports/effects.py",
    "Ports": "actors/ports/ports.py",
    "Grants": "actors/functions/grants.py",
    "cancelled": "actors/ports/function_call.py",
    "progress": "actors/ports/function_call.py",
    "GatewayLimits": "actors/gateway/gateway_limits.py",
    "tool": "actors/functions/tools.py",
    "Tool": "actors/functions/tools.py",
}
"""The file in which each thing of the page is defined."""

LINE = 100
"""Characters of a signature on one line."""

Def = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), path)


def found_definition(name: str) -> ast.ClassDef | Def:
    """Return the definition of a thing in MODULES. Raise UnknownBlock if there is none."""
    if name not in MODULES:
        raise UnknownBlock(f"{name!r} is not in docs/make/from_source.py: add the file that defines it to MODULES")
    # The last definition counts: those before it are overloads, whose parts the last one has all.
    for node in reversed(_tree(MODULES[name]).body):
        if isinstance(node, ast.ClassDef | Def) and node.name == name:
            return node
    raise UnknownBlock(f"{MODULES[name]} defines no {name!r}: correct the file in MODULES")


def _annotation(node: ast.expr) -> str:
    """Return a type as source, without the quotes of a type that is imported for the type checker only."""
    quoted = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if quoted and isinstance(node, ast.Constant) else ast.unparse(node)


def _signature(node: Def, *, method: bool) -> str:
    """Return a function as it is called: its name, its parameters without `self`, and what it returns."""
    words = _parameters(node.args)
    if method:
        words = words[1:]
    words = words[1:] if words[:1] == ["/"] else words
    returns = f" -> {_annotation(node.returns)}" if node.returns is not None else ""
    line = f"{_prefix(node)}{node.name}({', '.join(words)}){returns}"
    if len(line) <= LINE:
        return line
    return f"{_prefix(node)}{node.name}(\n" + "".join(f"    {word},\n" for word in words) + f"){returns}"


def _prefix(node: Def) -> str:
    """Return the keyword before a call, if there is one."""
    marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
    if "contextmanager" in marks:
        return "with "
    if "asynccontextmanager" in marks:
        return "async with "
    return "await " if isinstance(node, ast.AsyncFunctionDef) and not _yields(node) else ""


def _parameters(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a function, each as `name: type = default`, with `/`, `*` and `**` between them."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    words = [_parameter(argument, default) for argument, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        words.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        words.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        words.append("*")
    words += [_parameter(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [*words, f"**{_parameter(arguments.kwarg, None)}"] if arguments.kwarg else words


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {_annotation(argument.annotation)}"
    return f"{argument.arg}{annotation}" + ("" if default is None else f" = {ast.unparse(default)}")


def _yields(node: Def) -> bool:
    return any(isinstance(inner, ast.Yield) for inner in ast.walk(node))


def _prose(text: str | None) -> str:
    """Return a docstring as Markdown: paragraphs on one line, indented parts as code."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        lines = part.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            parts.append("```python\n" + "\n".join(line[4:] for line in lines) + "\n```")
        elif lines and all(re.match(r"(-|  )", line) for line in lines):
            parts.append("\n".join(escaped(line) for line in lines))
        else:
            parts.append(escaped(" ".join(part.split())))
    return "\n\n".join(parts)


def _public(node: ast.stmt) -> bool:
    return isinstance(node, Def) and not node.name.startswith("_") and bool(ast.get_docstring(node))


def fields(node: ast.ClassDef) -> list[tuple[str, str, str, str]]:
    """Return the fields of a class: name, type, default, and the text that stands below the field."""
    found = []
    for statement, below in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if statement.target.id.startswith("_") or "ClassVar" in ast.unparse(statement.annotation):
            continue
        text = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            text = below.value.value
        default = "" if statement.value is None else ast.unparse(statement.value)
        default = re.sub(r"^msgspec\.field\(default_factory=(\w+)\)$", r"\1()", default)
        annotation = re.sub(r"Annotated\[(\w+)(?:[^\[\]]|\[[^\]]*\])*\]", r"\1", ast.unparse(statement.annotation))
        found.append((statement.target.id, annotation, default, text))
    return found


def fields_table(node: ast.ClassDef) -> str:
    """Return the fields of a class as a table; the columns that would be empty are left out."""
    rows = [
        (f"`{name}`", f"`{kind}`", f"`{default}`" if default else "", escaped(text))
        for name, kind, default, text in fields(node)
    ]
    keep = [n for n in range(4) if n < 2 or any(row[n] for row in rows)]
    head = ("field", "type", "default", "meaning")
    return table(tuple(head[n] for n in keep), [tuple(row[n] for n in keep) for row in rows])


def definition_block(name: str, _: str) -> str:
    """Return the reference of a function, or of a class with its fields and public methods."""
    node = found_definition(name)
    if isinstance(node, Def):
        return f"```python\n{_signature(node, method=False)}\n```\n\n{_prose(ast.get_docstring(node))}"
    parts = [_prose(ast.get_docstring(node))]
    if any(base.id in ("Struct", "NamedTuple") for base in node.bases if isinstance(base, ast.Name)) or fields(node):
        parts.append(fields_table(node))
    parts.append(table(("attribute", "meaning"), list(_attributes(node))))
    for inner in node.body:
        if isinstance(inner, Def) and _public(inner):
            parts.append(_member(name, inner))
    return "\n\n".join(part for part in parts if part)


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the public attributes that the constructor sets and describes: name, and the text below."""
    for inner in node.body:
        if isinstance(inner, Def) and inner.name == "__init__":
            for statement, below in pairwise(inner.body):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                target = statement.target if isinstance(statement, ast.AnnAssign) else target
                text = below.value if isinstance(below, ast.Expr) else None
                if isinstance(target, ast.Attribute) and isinstance(text, ast.Constant) and target.attr[0] != "_":
                    yield f"`{target.attr}`", escaped(str(text.value))


def _member(owner: str, node: Def) -> str:
    heading = f"#### {owner}.{node.name}"
    if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list):
        returns = f": {ast.unparse(node.returns)}" if node.returns is not None else ""
        return f"{heading}\n\n```python\n{node.name}{returns}\n```\n\n{_prose(ast.get_docstring(node))}"
    return f"{heading}\n\n```python\n{_signature(node, method=True)}\n```\n\n{_prose(ast.get_docstring(node))}"


def events_block(name: str, _: str) -> str:
    """Return every type of event of one file below `events/`: its tag, its docstring and its fields."""
    path = f"events/{name}"
    if not (ROOT / path).is_file():
        raise UnknownBlock(f"there is no file {path}")
    parts = []
    for node in _tree(path).body:
        tag = _tag(node) if isinstance(node, ast.ClassDef) else None
        if isinstance(node, ast.ClassDef) and tag is not None:
            parts += [f"### {tag}", f"`{node.name}`. {_prose(ast.get_docstring(node))}", fields_table(node)]
    return "\n\n".join(part for part in parts if part)


def _tag(node: ast.ClassDef) -> str | None:
    """Return the type that a record of this event has; None if the class is no event."""
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner.target.id == "kind":
            return str(inner.value.value) if isinstance(inner.value, ast.Constant) else None
    return None

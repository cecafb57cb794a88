"""Every error type has a page, and every page belongs to an error type."""

import ast

from everlog.interfaces.explain.explain_command import PAGES
from tests.tidy.parsed_source import report, sources


def parents() -> dict[str, str]:
    """Return the public error types of all rooms by name, each with its base type."""
    classes = [node for source in sources() for node in source.tree.body if isinstance(node, ast.ClassDef)]
    bases = {node.name: [base.id for base in node.bases if isinstance(base, ast.Name)] for node in classes}
    found = {"EverlogError": ""}
    while more := {name: base for name, of in bases.items() for base in of if base in found and name not in found}:
        found |= more
    return {name: base for name, base in found.items() if not name.startswith("_")}


def test_every_error_type_has_a_page() -> None:
    """interfaces/explain has one page for each public type below EverlogError, with the right base type, and no other
    page.
    """
    paged = {page.name: page.parent for page in PAGES}
    assert len(paged) == len(PAGES)
    cure = "add or correct its ErrorPage in interfaces/explain, then run `python -m docs.make_errors`"
    report([name for name, _ in sorted(parents().items() ^ paged.items())], cure)

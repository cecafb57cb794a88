"""What `import everlog` offers: every name is there, costs nothing until it is used, and is known to type checkers."""

import ast
import subprocess
import sys

import everlog
from tests.tidy.source import ROOT

HEAVY = ("ray", "lancedb", "openai", "duckdb", "pyarrow")


def test_every_public_name_is_there() -> None:
    """Each name of `everlog.__all__` can be imported, and no other name is offered."""
    assert all(getattr(everlog, name) is not None for name in everlog.__all__)
    assert set(everlog.__all__) <= set(dir(everlog))


def test_type_checkers_know_the_same_names() -> None:
    """The imports under TYPE_CHECKING name what `__all__` names: an editor completes what a program gets."""
    tree = ast.parse((ROOT / "everlog" / "__init__.py").read_text(encoding="utf-8"))
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    imported = {alias.name for node in ast.walk(checked[0]) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(everlog.__all__)


def test_importing_everlog_imports_nothing_heavy() -> None:
    """`import everlog` loads no module of ours but itself, and none of the libraries that take seconds."""
    probe = (
        "import sys, everlog\n"
        f"print([name for name in sys.modules if name.split('.')[0] in {HEAVY} or name.startswith('everlog.')])"
    )
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]", "Cure: import it where a name is first used, in `everlog.__getattr__`"

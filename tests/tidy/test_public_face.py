"""The names of `import everlog`: each exists, is loaded on first use, and is known to type checkers."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import everlog
from tests.tidy.parsed_source import ROOT

HEAVY = ("ray", "lancedb", "openai", "duckdb", "pyarrow")


def test_every_public_name_is_there() -> None:
    """Each name of `everlog.__all__` can be imported, and there is no other name."""
    assert all(getattr(everlog, name) is not None for name in everlog.__all__)
    assert set(everlog.__all__) <= set(dir(everlog))


def test_type_checkers_know_the_same_names() -> None:
    """The imports under TYPE_CHECKING have the names of `__all__`, so that editors complete what a program gets."""
    tree = ast.parse((ROOT / "everlog" / "__init__.py").read_text(encoding="utf-8"))
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    imported = {alias.name for node in ast.walk(checked[0]) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(everlog.__all__)


def test_importing_everlog_imports_nothing_heavy() -> None:
    """`import everlog` loads only its own module, and no library that takes seconds."""
    probe = (
        "import sys, everlog\n"
        f"print([name for name in sys.modules if name.split('.')[0] in {HEAVY} or name.startswith('everlog.')])"
    )
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]", "Cure: import it where a name is first used, in `everlog.__getattr__`"


PROGRAM = """
import actors, events, interfaces, projections, store
import everlog
from everlog.events import UserMessage

assert {actors.mine, events.mine, interfaces.mine, projections.mine, store.mine} == {True}
with everlog.open("agents") as system:
    print(system.agent("sam").ask(UserMessage(text="Hi, my name is Chad")))
"""


def test_modules_of_a_user_change_nothing(tmp_path: Path) -> None:
    """Next to a program with its own `events.py`, `store/`, `actors.py` and so on, everlog works, and so do these
    modules.
    """
    for name in ("actors", "events", "interfaces", "projections"):
        (tmp_path / f"{name}.py").write_text("mine = True\n")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "__init__.py").write_text("mine = True\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py"]
    environment = {**os.environ, "EVERLOG_RUNTIME": "local"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Chad" in run.stdout

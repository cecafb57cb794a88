"""Rooms import one way; pure modules stay pure; heavy libraries have one file each and are not imported at the
start.
"""

import subprocess
import sys
from pathlib import Path

from everlog.store import FileStore
from tests.tidy import house_rules
from tests.tidy.parsed_source import ROOT, report, sources

SQL_MODULES_MAX = 180
"""Modules of everlog that `everlog sql` may import."""


def test_rooms_import_one_way() -> None:
    """A room imports only itself and the rooms before it: events <- store <- projections <- actors <- interfaces."""
    cure = "pass the thing as an argument, or move it to the room on the left; never point an arrow back"
    report(list(house_rules.wrong_way(sources())), cure)


def test_pure_modules_stay_pure() -> None:
    """All of events/, and decide, render and parse in actors/, can be tested without a fixture."""
    cure = "take a clock, ids, chance or plain rows as arguments; move shared types to a module that is pure itself"
    report(list(house_rules.impure(sources())), cure)


def test_events_imports_nothing_of_ours() -> None:
    """events/ imports only the standard library and msgspec, so a log can be read wherever Python runs."""
    cure = "move what needs the import to store/ or further right; events/ only says what can be true"
    report(list(house_rules.foreign_to_events(sources(), sys.stdlib_module_names)), cure)


def test_each_heavy_library_has_one_file() -> None:
    """ray, openai, jinja2 and lancedb are each imported in one file of one room."""
    cure = "call the file that already imports it; anything else speaks to its class, not to the library"
    report(list(house_rules.heavy_imports(sources())), cure)


def test_the_command_starts_thin() -> None:
    """Importing the command line loads no ray, openai, jinja2, lancedb or httpx2, which most commands never use."""
    heavy = sorted({*house_rules.HEAVY, "httpx2"})
    probe = f"import sys, everlog.interfaces.cli.main;print(*[name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    cure = "import it inside the function that uses it"
    report([f"import everlog.interfaces.cli.main loads {name}" for name in run.stdout.split()], cure)


def test_a_query_over_the_fleet_starts_thin(tmp_path: Path) -> None:
    """`everlog sql` imports DuckDB, Arrow, the store and the fleet's views: nothing that runs agents, and for programs
    nothing that draws tables. The number of modules is what a process pays before it reads a record.
    """
    FileStore.create(tmp_path / "store", lambda: 0, "s", shards=1)
    probe = f"""import sys
from everlog.interfaces.cli.main import main
assert main(["sql", "SELECT count(*) FROM messages", "--json", "--store", {str(tmp_path / "store")!r}]) == 0
print(*sys.modules, file=sys.stderr)"""
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = run.stderr.split()[run.stderr.split().index("sys") :]
    unwanted = ("rich", "pandas", "pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset", "lancedb")
    unwanted += ("everlog.actors.agent", "everlog.actors.hosting", "everlog.actors.functions", "everlog.actors.api")
    cure = "import it inside the function that uses it"
    report([f"everlog sql loads {name}" for name in unwanted if name in loaded], cure)
    ours = [name for name in loaded if name.split(".")[0] == "everlog"]
    assert len(ours) <= SQL_MODULES_MAX, f"{len(ours)} modules of everlog. Cure: {cure}"


def test_agents_start_thin() -> None:
    """An agent's process starts without an HTTP client, because most agents never use one."""
    probe = "import sys, everlog.actors.agent.agent, everlog.actors.api, everlog.actors.functions.extras\n"
    probe += "print('httpx2' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n", "Cure: import the file that speaks HTTP inside the function that asks"

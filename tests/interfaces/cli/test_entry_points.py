"""everlog is one package: it runs as a module, and tells its version."""

import gc
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import everlog
from everlog.interfaces.cli.main import GARBAGE_THRESHOLDS
from tests.support.cli.command_line import Line

ROOT = Path(__file__).parents[3]


def test_python_runs_the_package() -> None:
    """`python -m everlog` is the command line."""
    run = subprocess.run(
        [sys.executable, "-m", "everlog", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("usage: everlog")


def test_the_package_tells_its_version() -> None:
    """`everlog.__version__` is the version of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert everlog.__version__ == project["version"]


def test_only_a_process_of_its_own_sets_up_its_memory(cli: Line) -> None:
    """The command sets the collector's thresholds and Arrow's allocator in its process, and not in that of a program
    which calls `main`.
    """
    before = gc.get_threshold(), os.environ.get("ARROW_DEFAULT_MEMORY_POOL")
    assert cli("--version")[0] == 0
    assert (gc.get_threshold(), os.environ.get("ARROW_DEFAULT_MEMORY_POOL")) == before
    code = (
        "import atexit, gc, sys\n"
        "from everlog.interfaces.cli.main import main\n"
        "def report():\n"
        "    import pyarrow\n"
        "    print(gc.get_threshold(), pyarrow.default_memory_pool().backend_name)\n"
        "atexit.register(report)\n"
        "sys.argv[1:] = ['--version']\n"
        "main()\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == f"{GARBAGE_THRESHOLDS} system"

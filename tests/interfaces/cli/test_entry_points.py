"""everlog is one package: it runs as a module, and tells its version."""

import subprocess
import sys
import tomllib
from pathlib import Path

import everlog

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

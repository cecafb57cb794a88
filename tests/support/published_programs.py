"""Published programs of other people, installed by pip or npm into a folder of their own.

Where a package cannot be installed, its test is skipped and says so.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def installed(folder: Path, package: str) -> Path:
    """Install a package of Python into an environment of its own, and return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", package], capture_output=True, text=True, check=False
    )
    if pip.returncode:
        pytest.skip(f"{package} cannot be installed here: {pip.stderr[-200:]}")
    return folder / "bin"


def installed_for_node(folder: Path, *packages: str) -> Path:
    """Install packages for Node into a folder, and return the folder of their programs."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on this machine")
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    made = subprocess.run(
        [npm, "install", "--silent", *packages], cwd=folder, capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"{packages} cannot be installed here: {made.stderr[-200:]}")
    return folder / "node_modules" / ".bin"

"""The content of the wheel, the claims of the README, and the commands of .ci/run."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tidy.parsed_source import PACKAGE, ROOMS, ROOT, report

FIRST_SCREEN_LINES = 40


def setup_commands() -> list[str]:
    """Return the commands of the README's first screen that use the local environment."""
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]
    return [line for line in first_screen if ".venv/bin/" in line and not line.startswith((" ", "#", "`", "-"))]


def top_level_folders() -> list[str]:
    """Return the repository's folders, without hidden folders and those that .gitignore excludes."""
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    return sorted(path.name for path in folders if path.name not in made and not path.name.endswith(".egg-info"))


def build(kind: str, tree: Path, into: Path) -> Path:
    """Build a wheel or an sdist of the tree without a network. Return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    run = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}\nCure: install the dev extra; it brings the build backend"
    (made,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_one_package(wheel: Path) -> None:
    """The wheel's only top-level name is `everlog`, with the five rooms and the data that they read."""
    names = set(contents(wheel))
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {PACKAGE}, f"the wheel holds {sorted(tops)}\nCure: set packages in pyproject.toml to {PACKAGE}"
    held = {f"{PACKAGE}/{path.relative_to(ROOT).as_posix()}" for room in ROOMS for path in data_files(room)}
    report(sorted(held - names), "include the file in [tool.hatch.build.targets.wheel], or delete it")


def test_a_wheel_of_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    """A wheel built from the sdist equals the wheel of the tree, file for file."""
    with tarfile.open(build("sdist", ROOT, tmp_path)) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    again = tmp_path / "again"
    assert contents(build("wheel", tree, again)) == contents(wheel)


def data_files(room: str) -> list[Path]:
    """Return the files other than Python that the room reads at run time: SQL, JSON, prompts."""
    found = [path for pattern in ("*.sql", "*.json", "presets/**/*.*") for path in (ROOT / room).rglob(pattern)]
    return [path for path in found if path.suffix != ".pyc"]


def test_the_readme_mentions_every_folder() -> None:
    """README.md explains each folder of the repository."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [folder for folder in top_level_folders() if f"`{folder}/`" not in readme]
    report(missing, "name the folder, as `folder/`, in README.md's table with what lives in it; or delete the folder")


def test_two_commands_are_enough() -> None:
    """The README's first screen has exactly two commands: one installs and runs, the other runs the tests."""
    commands = setup_commands()
    assert len(commands) == 2, f"found {commands}\nCure: keep one command for the job and one for the tests"
    job, tests = commands
    assert "pip install" in job, "Cure: the first command installs from a fresh clone"
    assert ".venv/bin/everlog " in job, "Cure: the first command ends by doing the main job"
    assert "-m pytest" in tests, "Cure: the second command passes the tests"


def test_ci_runs_the_readme_commands() -> None:
    """.ci/run takes its install and test commands from the README, so the two cannot differ."""
    run = subprocess.run([ROOT / ".ci" / "run", "--show"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    job, tests = setup_commands()
    install = job.partition(" && .venv/bin/everlog")[0]
    cure = "let .ci/run read both commands from README.md's first screen"
    assert run.stdout.splitlines() == [install, tests], f"{run.stdout}Cure: {cure}"


def test_changelog_knows_the_version() -> None:
    """CHANGELOG.md has an Unreleased section, and pyproject.toml states the version once."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog, "Cure: add `## [Unreleased]` and say there what changed"
    versions = re.findall(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(versions) == 1, "Cure: state the version once, under [project]"

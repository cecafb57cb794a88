"""What the wheel holds, what the README says, and that .ci/run runs what the README says."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tidy.source import ROOMS, ROOT, report

FIRST_SCREEN_LINES = 40


def setup_commands() -> list[str]:
    """The commands in the fenced blocks of the README's first screen that stand in the local environment."""
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]
    return [line for line in first_screen if ".venv/bin/" in line and not line.startswith((" ", "#", "`", "-"))]


def top_level_folders() -> list[str]:
    """The repository's folders, without hidden ones and without what .gitignore calls made."""
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    return sorted(path.name for path in folders if path.name not in made and not path.name.endswith(".egg-info"))


def test_the_wheel_holds_the_five_rooms(tmp_path: Path) -> None:
    """The wheel holds the five rooms and its own metadata: no tests, no benchmarks, no stray top-level names."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    run = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}\nCure: install the dev extra; it brings the build backend"
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(ROOMS), f"the wheel holds {sorted(tops)}\nCure: set packages in pyproject.toml to the rooms"
    held = {f"{room}/{path.relative_to(ROOT / room).as_posix()}" for room in ROOMS for path in data_files(room)}
    report(sorted(held - set(names)), "include the file in [tool.hatch.build.targets.wheel], or delete it")


def data_files(room: str) -> list[Path]:
    """The files that are not Python but that the room reads at run time: SQL, JSON, prompts."""
    found = [path for pattern in ("*.sql", "*.json", "presets/**/*.*") for path in (ROOT / room).rglob(pattern)]
    return [path for path in found if path.suffix != ".pyc"]


def test_the_readme_mentions_every_folder() -> None:
    """Whoever lists the repository finds each folder explained in README.md."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [folder for folder in top_level_folders() if f"`{folder}/`" not in readme]
    report(missing, "name the folder, as `folder/`, in README.md's table with what lives in it; or delete the folder")


def test_two_commands_are_enough() -> None:
    """The README's first screen holds exactly two commands: one installs and does the job, one runs the tests."""
    commands = setup_commands()
    assert len(commands) == 2, f"found {commands}\nCure: keep one command for the job and one for the tests"
    job, tests = commands
    assert "pip install" in job, "Cure: the first command installs from a fresh clone"
    assert ".venv/bin/everlog " in job, "Cure: the first command ends by doing the main job"
    assert "-m pytest" in tests, "Cure: the second command passes the tests"


def test_ci_runs_the_readme_commands() -> None:
    """.ci/run takes its install and test commands from the README, so that the two cannot disagree."""
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

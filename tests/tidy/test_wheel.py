"""The content of the wheel, the claims of the README, and the commands of .ci/run."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.tidy.parsed_source import PACKAGE, ROOMS, ROOT, report

FIRST_SCREEN_LINES = 40


def setup_commands() -> list[str]:
    """Return the commands of the README's first screen that use the local environment."""
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]
    return [
        line for line in first_screen if ".venv/bin/" in line and not line.startswith((" ", "#", "`", "-", "source"))
    ]


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
    """Return the files other than Python that the room reads at run time: SQL, JSON, prompts, and parts of pages."""
    patterns = ("*.sql", "*.json", "presets/**/*.*", "*.html", "*.js", "*.css", "*.svg")
    found = [path for pattern in patterns for path in (ROOT / room).rglob(pattern)]
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
    assert "pip install -q -e '.[dev]'" in tests, "Cure: the second command installs what the tests need"
    assert "-m pytest" in tests, "Cure: the second command passes the tests"


def test_ci_runs_the_readme_commands() -> None:
    """.ci/run takes its two commands from the README, so the two cannot differ."""
    run = subprocess.run([ROOT / ".ci" / "run", "--show"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    cure = "let .ci/run read both commands from README.md's first screen"
    assert run.stdout.splitlines() == setup_commands(), f"{run.stdout}Cure: {cure}"


def test_a_plain_installation_brings_nothing_for_tests_or_single_file_types() -> None:
    """pytest, linters, pandas, test models and readers of documents come with extras only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = {re.split(r"[\[<>=]", need)[0] for need in project["dependencies"]}
    extras = project["optional-dependencies"]
    apart = {re.split(r"[\[<>=]", need)[0] for extra in extras.values() for need in extra}
    assert plain & apart == set(), "name a package once: as a dependency, or in an extra"
    assert {"pytest", "pandas", "mypy", "ruff", "pypdf", "python-docx", "xllamacpp"} <= apart
    readers = "everlog[a2a,documents,local,mcp,object,object-check,serve]"
    assert readers in extras["dev"], "the tests read documents and model files"


def test_the_version_is_stated_once() -> None:
    """pyproject.toml states the version once."""
    versions = re.findall(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(versions) == 1, "Cure: state the version once, under [project]"


@pytest.fixture(scope="module")
def user_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(wheel, tmp_path_factory.mktemp("user"))


def environment_with(wheel: Path, folder: Path) -> Path:
    """Make an environment with a wheel and no file of this tree. Its dependencies are those of this process."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # After the environment's own folder on the path: an everlog that is installed here comes second.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return folder


def in_user_environment(environment: Path, *command: str) -> str:
    """Run a program of this machine in an empty folder of the environment. Return what it printed."""
    empty = environment / "empty"
    empty.mkdir(exist_ok=True)
    known = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    known |= {"EVERLOG_RUNTIME": "local", "MYPY_CACHE_DIR": str(environment / "mypy")}
    run = subprocess.run(command, cwd=empty, env=known, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
    return run.stdout


def test_the_wheel_says_that_it_is_typed(wheel: Path) -> None:
    """Type checkers read the types of an installed everlog: the wheel has the file `py.typed`."""
    assert f"{PACKAGE}/py.typed" in contents(wheel)


def test_an_installed_everlog_is_imported_fast(user_environment: Path) -> None:
    """`import everlog` from the wheel loads one module of everlog, and fewer than a hundred in all."""
    probe = "import sys; before = len(sys.modules); import everlog; print(len(sys.modules) - before, everlog.__file__)"
    loaded, _, file = in_user_environment(user_environment, f"{user_environment}/bin/python", "-c", probe).partition(
        " "
    )
    assert Path(file.strip()).is_relative_to(user_environment), "another everlog was imported"
    assert int(loaded) < 100


@pytest.mark.long
@pytest.mark.commands
def test_the_examples_are_a_strictly_typed_project_of_a_user(user_environment: Path, tmp_path: Path) -> None:
    """With the wheel alone, `mypy --strict` accepts the example programs, and each of them runs."""
    project = tmp_path / "project"
    project.mkdir()
    for example in sorted((ROOT / "docs" / "examples").glob("*.py")):
        shutil.copy(example, project)
    python = f"{user_environment}/bin/python"
    options = ("--strict", "--python-executable", python)
    checked = in_user_environment(user_environment, sys.executable, "-m", "mypy", *options, str(project))
    assert "no issues found in 4 source files" in checked
    for name in ("own_tool", "fifty_agents", "rerun"):
        assert in_user_environment(user_environment, python, str(project / f"{name}.py"), str(tmp_path / name))


@pytest.mark.long
@pytest.mark.commands
def test_a_wrong_use_is_found_by_mypy(user_environment: Path, tmp_path: Path) -> None:
    """A user's type checker knows the parameters and results of both forms, and of functions with `@tool`."""
    (tmp_path / "wrong.py").write_text(
        "import everlog\n"
        "with everlog.open('store') as system:\n"
        "    agent = system.agent('sam', settings={'model': 'x'})\n"
        "    agent.ask(5)\n"
        "    number: int = agent.ask('Hi').text\n"
        "    agent.set_timer('tea', due_at=5)\n"
        "everlog.open('store', tools=[print])\n"
    )
    options = ("--strict", "--python-executable", f"{user_environment}/bin/python", str(tmp_path / "wrong.py"))
    with pytest.raises(AssertionError) as found:
        in_user_environment(user_environment, sys.executable, "-m", "mypy", *options)
    lines = re.findall(r"wrong\.py:(\d): error", str(found.value))
    assert lines == ["3", "4", "5", "6", "7"], found.value

"""The files of a release and of the project page agree with the code: workflows, forms, citation, changelog."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.release.check_tag import differences
from tests.support.parts import PARTS
from tests.tidy.parsed_source import ROOT, report

GITHUB = ROOT / ".github"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SCHEMAS = {
    "CITATION.cff": "vendor.citation-file-format",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/feature.yml": "vendor.github-issue-forms",
    ".github/workflows/test.yml": "vendor.github-workflows",
    ".github/workflows/release.yml": "vendor.github-workflows",
}
"""The schema of each file, by the name that check-jsonschema gives it."""


def checked(schema: str, file: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "--force-filetype", "yaml", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def workflow(name: str) -> dict[str, Any]:
    return yaml.safe_load((GITHUB / "workflows" / name).read_text(encoding="utf-8"))


def commands(name: str) -> list[str]:
    """Return every shell command of a workflow's steps."""
    return [step["run"] for job in workflow(name)["jobs"].values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_follows_its_schema(name: str) -> None:
    """Citation, issue forms and workflows have the keys and values that their published schemas allow."""
    run = checked(SCHEMAS[name], ROOT / name)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"


def test_every_file_of_the_page_has_a_schema() -> None:
    """No form and no workflow is left out of the comparison with schemas."""
    found = {path.relative_to(ROOT).as_posix() for path in GITHUB.rglob("*.yml")}
    assert found == {name for name in SCHEMAS if name.startswith(".github/")}


def test_a_wrong_key_is_found(tmp_path: Path) -> None:
    """The comparison with a schema refuses a workflow with a step that is neither a command nor an action."""
    text = (GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8")
    (tmp_path / "test.yml").write_text(text.replace("- run: .ci/run", "- ran: .ci/run"))
    assert checked("vendor.github-workflows", tmp_path / "test.yml").returncode == 1


def test_the_workflow_tests_the_pythons_of_the_classifiers() -> None:
    """The matrix of the test workflow has the versions of pyproject.toml's classifiers, from requires-python on."""
    prefix = "Programming Language :: Python :: 3."
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith(prefix)]
    assert workflow("test.yml")["jobs"]["checks"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    minors = [int(version.removeprefix("3.")) for version in named]
    assert minors == list(range(minors[0], minors[-1] + 1)), "a version between the first and the last is missing"


def test_the_workflow_runs_every_part_of_the_deep_suite() -> None:
    """The weekly job has one run for each part of the deep suite."""
    assert workflow("test.yml")["jobs"]["deep"]["strategy"]["matrix"]["part"] == list(PARTS)


def test_every_job_that_tests_installs_the_emulator_of_azure() -> None:
    """No job of the test workflow skips the tests of az:// for want of Azurite."""
    for name, job in workflow("test.yml")["jobs"].items():
        steps = [step.get("run", "") for step in job["steps"]]
        first = next(number for number, run in enumerate(steps) if ".ci/run" in run or "pytest" in run)
        assert any(run.startswith("npm install") and "azurite@" in run for run in steps[:first]), name


@pytest.mark.parametrize("name", ["test.yml", "release.yml"])
def test_a_workflow_names_files_and_extras_that_exist(name: str) -> None:
    """Every script that a step runs is a file here, and every extra that it installs is one of pyproject.toml."""
    text = "\n".join(commands(name))
    scripts = set(re.findall(r"(?:^|\s)(\.ci/\w+|[\w/]+\.py)\b", text))
    assert scripts, "the expression finds no script: it would find no wrong one"
    report(sorted(script for script in scripts if not (ROOT / script).is_file()), "name a script that exists")
    extras = {extra for found in re.findall(r"'\.\[([\w,]+)\]'", text) for extra in found.split(",")}
    assert extras <= set(PROJECT["optional-dependencies"])


def test_a_workflow_may_do_only_what_it_needs() -> None:
    """Every workflow begins with the right to read alone; only the two jobs that sign and publish have an identity."""
    for name in ("test.yml", "release.yml"):
        assert workflow(name)["permissions"] == {"contents": "read"}
        assert all("timeout-minutes" in job for job in workflow(name)["jobs"].values())
    rights = {name: job.get("permissions", {}) for name, job in workflow("release.yml")["jobs"].items()}
    assert rights == {
        "build": {"contents": "read", "id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff has the name, version, licence and description of pyproject.toml."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    found = [citation[key] for key in ("title", "version", "license", "abstract", "keywords")]
    assert found == [PROJECT[key] for key in ("name", "version", "license", "description", "keywords")]


def test_the_changelog_is_in_order() -> None:
    """CHANGELOG.md begins with Unreleased; released versions follow with their day, newest first, in known parts."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    first, *released = [line for line in lines if line.startswith("## ")]
    assert first == "## [Unreleased]"
    found = [re.fullmatch(r"## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", line) for line in released]
    assert all(found), "write a released version as `## [1.2.3] - 2030-01-31`"
    versions = [tuple(map(int, match.groups()[:3])) for match in found if match]
    assert versions == sorted(set(versions), reverse=True)
    parts = {line.removeprefix("### ") for line in lines if line.startswith("### ")}
    assert parts <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_page_of_versions_names_each_golden_store() -> None:
    """The table of docs/reference/versions.md has the golden stores of tests/golden, and no other."""
    page = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
    golden = {path.parent.name for path in (ROOT / "tests" / "golden").glob("*/expected.json")}
    assert set(re.findall(r"(?m)^\| `([\w.-]+)` \|", page)) == golden
    assert "store 1" in page, "a format of the store is named"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that is ready for the tag v0.3.0."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [0.3.0] - 2030-01-31\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.3.0\n")
    return tmp_path


def test_a_tag_of_the_stated_version_is_released(project: Path) -> None:
    """A tag that pyproject.toml, CHANGELOG.md and CITATION.cff name has no differences."""
    assert list(differences("v0.3.0", project)) == []


def test_a_tag_of_another_version_is_refused_by_each_file(project: Path) -> None:
    """A tag of another version is refused once for each file, with what was found there and what to do."""
    found = list(differences("v0.4.0", project))
    assert [line.split()[0] for line in found] == ["pyproject.toml", "CHANGELOG.md", "CITATION.cff"]
    assert "0.3.0" in found[0]
    assert "## [0.4.0]" in found[1]


@pytest.mark.parametrize("tag", ["0.3.0", "v0.3", "v0.3.0-final", "main", "v0.3.0\n"])
def test_a_tag_of_another_form_is_refused(project: Path, tag: str) -> None:
    """A tag that is not of the form v1.2.3 or v1.2.3rc1 is refused alone, before the files are compared."""
    (problem,) = differences(tag, project)
    assert "not of the form v1.2.3" in problem


def test_the_program_says_what_is_missing() -> None:
    """check_tag.py ends with 1 for a tag of another version, and with 2 without a tag; nothing is printed on stdout."""
    for arguments, code in ((("v9.9.9",), 1), ((), 2)):
        command = [sys.executable, ROOT / "deploy" / "release" / "check_tag.py", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (code, "")
        assert run.stderr

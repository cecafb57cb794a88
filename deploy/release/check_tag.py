"""Check before a release that the tag, pyproject.toml, CHANGELOG.md and CITATION.cff name one version.

    python3 deploy/release/check_tag.py v0.1.0

The exit code is 0 if they do; else it is 1, and stderr names each file that differs, what was expected and what to do.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[2]
SECTION = r"(?m)^## \[{}\] - \d{{4}}-\d{{2}}-\d{{2}}$"


def differences(tag: str, root: Path) -> Iterator[str]:
    """Yield a sentence, with a cure, for each file of the project at `root` that does not name the tag's version."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        yield f"the tag is '{tag}', not of the form v1.2.3 or v1.2.3rc1: delete it, and tag the commit again"
        return
    version = tag.removeprefix("v")
    stated = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if stated != version:
        yield f"pyproject.toml states version {stated}, the tag {version}: set `version` and commit before the tag"
    if not re.search(SECTION.format(re.escape(version)), (root / "CHANGELOG.md").read_text(encoding="utf-8")):
        yield f"CHANGELOG.md has no line `## [{version}] - YYYY-MM-DD`: move what Unreleased has below such a line"
    cited = re.search(r"(?m)^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"))
    if cited is None or cited[1] != version:
        yield f"CITATION.cff has version {cited[1] if cited else 'none'}, the tag {version}: set `version` there"


def main() -> int:
    """Check the tag that is the only argument. Return the exit code."""
    if len(sys.argv) != 2:
        print("expected one argument, the tag: check_tag.py v0.1.0", file=sys.stderr)
        return 2
    found = list(differences(sys.argv[1], HERE))
    for one in found:
        print(one, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Check the installation and the machine: Python, packages, variables, files of defaults, zones, limits.

Used by `everlog doctor`. A check changes nothing, and names variables but never shows their values.
"""

import platform
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import metadata

from everlog.actors.gateway.gateway_limits import limits_from
from everlog.events import BadInput
from everlog.events.times import iso, moment
from everlog.interfaces.common.installed import NOT_INSTALLED, installed_version
from everlog.interfaces.defaults import variables
from everlog.interfaces.defaults.default_files import DefaultValues, read_defaults
from everlog.interfaces.operate.findings import Finding
from everlog.projections.time_zones import zone_of

PYTHON = (3, 11)
OPEN_FILES_MIN = 1024
"""Open files that a process should be allowed: each log takes some, and a query over all agents one for each file."""
NOT_FOR_USERS = ("dev", "docs", "bench")
"""Extras that only developers install."""
YEAR_MIN = 2020
"""A clock that shows an earlier year was never set."""

_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")


def check_machine(now: int, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the findings about this machine. `now`: microseconds UTC."""
    yield _python()
    yield from _packages()
    yield _clock(now)
    yield _open_files()
    yield from _variables(environment)


def check_defaults(store: str | None, environment: Mapping[str, str]) -> tuple[Finding, DefaultValues | None]:
    """Return the finding about the files of defaults, and their values; None if a file has a mistake."""
    try:
        found = read_defaults(store, environment)
    except BadInput as error:
        return Finding("defaults", "fail", str(error), "Every command refuses to run until the file is correct."), None
    files = [str(file) for file in (found.store_file, found.user_file) if file is not None and file.exists()]
    return Finding("defaults", "ok", ", ".join(files) or "no file of defaults"), found


def check_zone(defaults: DefaultValues) -> Finding:
    """Return the finding about the time zone of new agents."""
    zone = defaults.of("zone") or "UTC"
    try:
        zone_of(zone)
    except BadInput as error:
        return Finding(
            "zone", "fail", str(error), "Correct `zone` in the file of defaults (`everlog config` names it)."
        )
    return Finding("zone", "ok", f"new agents get {zone} (tzdata {installed_version('tzdata')})")


def _python() -> Finding:
    said = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < PYTHON:
        return Finding("python", "fail", said, "Install Python 3.11 or later.")
    return Finding("python", "ok", f"everlog {installed_version()}, {said}")


def _packages() -> Iterator[Finding]:
    """Yield a finding for the required packages, and one for each extra that users install."""
    try:
        requirements = metadata.requires("everlog") or []
    except metadata.PackageNotFoundError:
        yield Finding("packages", "warn", "everlog runs from its source: what it requires is not known",
                      "Install it: pip install .")  # fmt: skip
        return
    needed: dict[str, list[str]] = {}
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is not None:
            needed.setdefault(found[2] or "", []).append(found[1])
    for extra, names in sorted(needed.items()):
        if extra in NOT_FOR_USERS:
            continue
        missing = [name for name in names if installed_version(name) == NOT_INSTALLED]
        if extra:
            said = f"not installed: {', '.join(missing)}" if missing else "installed"
            yield Finding(f"extra {extra}", "ok", said, f"pip install 'everlog[{extra}]'" if missing else "")
        elif missing:
            yield Finding("packages", "fail", f"missing: {', '.join(missing)}", "Install everlog again with pip.")
        else:
            yield Finding("packages", "ok", f"all {len(names)} required packages are installed")


def _clock(now: int) -> Finding:
    if moment(now).year < YEAR_MIN:
        return Finding("clock", "fail", f"the clock shows {iso(now)}", "Set the clock: records get these times.")
    return Finding("clock", "ok", f"{iso(now)[:19]}Z")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft:,}"
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_MIN:
        cure = f"Raise the limit before you start everlog: `ulimit -n {OPEN_FILES_MIN}`"
        most = "" if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_MIN else ", as root"
        return Finding("open files", "warn", f"the limit is {shown}", f"{cure}{most}.")
    return Finding("open files", "ok", f"the limit is {shown}")


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each variable of everlog that it does not read, and for limits that cannot be used."""
    known = [one.name for one in (*variables.VARIABLES, *variables.DEVELOPERS)]
    ours = sorted(name for name in environment if name.startswith(variables.PREFIX))
    for name in ours:
        if name not in known and not name.startswith(variables.GATEWAY_PREFIX):
            near = get_close_matches(name, known, 1, 0.7)
            cure = f"Did you mean {near[0]}?" if near else "Unset it. docs/reference/variables.md lists all variables."
            yield Finding("variables", "warn", f"{name} is set, and everlog does not read it", cure)
    try:
        limits_from(environment)
    except BadInput as error:
        yield Finding("variables", "fail", str(error), "Correct or unset the variable.")
    yield Finding("variables", "ok", f"set: {', '.join(ours) or 'none'}")

"""The page of variables: every variable that the code reads is listed, and every listed one is read."""

import re
from pathlib import Path

from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.interfaces.defaults.default_keys import KEYS
from everlog.interfaces.defaults.variables import DEVELOPERS, GATEWAY_PREFIX, VARIABLES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "variables.md").read_text(encoding="utf-8")
LITERAL = re.compile(r"""["'](EVERLOG_[A-Z_]*[A-Z])["']""")
TABLE = ROOT / "interfaces" / "defaults" / "variables.py"


def read_in(*folders: str) -> set[str]:
    """Return the names of variables that stand as literals in the Python files of some folders."""
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py") if file != TABLE)
    return {name for file in files for name in LITERAL.findall(file.read_text(encoding="utf-8"))}


def test_the_table_has_the_variables_that_the_code_reads() -> None:
    """A variable that is read and not listed, or listed and not read, is named here."""
    assert read_in("events", "store", "projections", "actors", "interfaces") == {one.name for one in VARIABLES}
    assert {one.name for one in DEVELOPERS} <= read_in("tests", "bench")


def test_the_page_has_every_variable_and_key() -> None:
    """docs/reference/variables.md names each variable, each limit of the gateway, and each key."""
    limits = [f"{GATEWAY_PREFIX}{name.upper()}" for name in GatewayLimits.__struct_fields__]
    for name in (*(one.name for one in (*VARIABLES, *DEVELOPERS)), *limits, *(key.name for key in KEYS)):
        assert f"`{name}`" in PAGE, name


def test_keys_and_variables_agree() -> None:
    """A variable and its key name each other."""
    mine = {(one.name, one.key) for one in VARIABLES if one.key}
    assert mine == {(key.variable, key.name) for key in KEYS if key.variable.startswith("EVERLOG_")}

"""Names of servers' functions for models: in the characters of endpoints, stable, and never shared."""

import re

from hypothesis import strategies as st

from everlog.actors.mcp.function_names import NAME_CHARS_MAX, SERVER, function_name
from tests.support.law import law

MODEL = re.compile(r"[A-Za-z0-9_-]{1,64}")
SERVERS = st.lists(st.text("aZ9", min_size=1, max_size=7), min_size=1, max_size=3).map("_".join)
TOOLS = st.one_of(st.text(min_size=1, max_size=80), st.text("ab._ -", min_size=1, max_size=70))


def test_a_usual_name_is_readable() -> None:
    """A name that endpoints take stays as it is, behind the server's."""
    assert function_name("time", "get_current_time") == "time__get_current_time"


@law(st.tuples(SERVERS, TOOLS), st.tuples(SERVERS, TOOLS), few=100, many=5000)
def test_two_functions_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Every name fits, and is that of one function only, also if a server takes the name that another one got."""
    assert SERVER.fullmatch(one[0])
    name = function_name(*one)
    assert MODEL.fullmatch(name)
    if one != other:
        assert function_name(*other) != name
    own = name.partition("__")[2]
    if (one[0], own) != one and len(name) <= NAME_CHARS_MAX:
        assert function_name(one[0], own) != name

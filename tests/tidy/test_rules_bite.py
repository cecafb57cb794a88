"""A rule that cannot fail holds nothing: each is shown a small offender, and a neighbour that is in order."""

import sys

import pytest

from tests.tidy import house_rules
from tests.tidy.parsed_source import Source


def events_only(files: list[Source]) -> list[str]:
    return list(house_rules.foreign_to_events(files, sys.stdlib_module_names))


LONG = "x = 1\n" * 400
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 69
MANY_NINE_LINE_FUNCTIONS = "".join(f"def f{n}():\n" + "    x = 1\n" * 9 for n in range(30))

OFFENDERS = [
    (house_rules.wrong_way, "events/a.py", "import store"),
    (house_rules.wrong_way, "store/a.py", "def f():\n    from everlog.actors.hosting.host import Host"),
    (house_rules.wrong_way, "actors/a.py", "from tests.bdd import given"),
    (house_rules.impure, "events/a.py", "import random"),
    (house_rules.impure, "actors/agent/decide.py", "def f():\n    import duckdb"),
    (house_rules.impure, "actors/formats/parse_reply.py", "from uuid import UUID"),
    (house_rules.impure, "actors/formats/chatml.py", "import pyarrow as pa"),
    (events_only, "events/a.py", "import rich"),
    (events_only, "events/a.py", "from everlog.store.log import Log"),
    (house_rules.heavy_imports, "store/a.py", "import ray"),
    (house_rules.heavy_imports, "interfaces/a.py", "def f():\n    import openai"),
    (house_rules.chance, "store/a.py", "import time\nx = time.time()"),
    (house_rules.chance, "store/a.py", "from time import monotonic_ns"),
    (house_rules.chance, "actors/a.py", "from datetime import datetime as d\nx = d.now(None)"),
    (house_rules.chance, "actors/a.py", "import datetime\nx = datetime.date.today()"),
    (house_rules.chance, "actors/a.py", "import random\nx = random.choice([1])"),
    (house_rules.chance, "actors/a.py", "import uuid as u\nx = u.uuid4"),
    (house_rules.sleeping, "tests/test_a.py", "import time\ntime.sleep(1)"),
    (house_rules.sleeping, "tests/test_a.py", "from time import sleep as nap"),
    (house_rules.long_files, "store/a.py", LONG),
    (house_rules.long_functions, "store/a.py", LONG_FUNCTION),
    (house_rules.median_too_long, "store/a.py", MANY_NINE_LINE_FUNCTIONS),
    (house_rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept:\n    pass"),
    (house_rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept (OSError, Exception):\n    pass"),
    (house_rules.without_docstring, "store/a.py", "x = 1"),
    (house_rules.bad_exports, "store/a.py", "__all__ = ['gone']"),
    (house_rules.bad_exports, "store/a.py", "__all__ = ['b', 'a']\na = b = 1"),
]

IN_ORDER = [
    (house_rules.wrong_way, "interfaces/a.py", "import events, store, projections, actors"),
    (house_rules.impure, "actors/hosting/host.py", "import duckdb, time"),
    (house_rules.impure, "actors/agent/decide.py", "import json\nfrom datetime import datetime"),
    (events_only, "events/a.py", "import msgspec, json\nfrom everlog.events.codec import encode\nfrom . import codec"),
    (house_rules.heavy_imports, "actors/cluster/ray_runtime.py", "import ray\ndef f():\n    import ray.util"),
    (house_rules.chance, "actors/ports/real_clock.py", "import time\nx = time.time()"),
    (house_rules.chance, "actors/a.py", "import random\ndef f(chance: random.Random): chance.choice([1])"),
    (house_rules.long_files, "store/a.py", LONG.removesuffix("x = 1\n")),
    (house_rules.long_functions, "store/a.py", LONG_FUNCTION.removesuffix("    x = 1\n")),
    (house_rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept (OSError, ValueError):\n    pass"),
    (house_rules.without_docstring, "store/a.py", '"""What may live here."""'),
    (
        house_rules.bad_exports,
        "store/a.py",
        "__all__ = ['MAX', 'Log', 'f']\nMAX: int = 1\nclass Log: ...\ndef f(): ...",
    ),
    (house_rules.bad_exports, "store/__init__.py", "from everlog.store.log import P2, P10\n__all__ = ['P2', 'P10']"),
]


@pytest.mark.parametrize(("rule", "path", "text"), OFFENDERS)
def test_a_rule_sees_its_offender(rule, path: str, text: str) -> None:
    """The rule reports the file."""
    assert list(rule([Source(path, text)]))


@pytest.mark.parametrize(("rule", "path", "text"), IN_ORDER)
def test_a_rule_leaves_good_code_alone(rule, path: str, text: str) -> None:
    """The rule reports nothing."""
    assert not list(rule([Source(path, text)]))


def test_purity_is_seen_through_our_own_modules() -> None:
    """A pure module cannot reach an impure one by way of a third."""
    files = [
        Source("actors/agent/decide.py", "from everlog.actors.helper import f"),
        Source("actors/helper.py", "import duckdb"),
    ]
    assert list(house_rules.impure(files)) == ["actors/agent/decide.py -> actors/helper.py:1 imports duckdb"]


def test_a_second_file_with_a_heavy_library_is_seen() -> None:
    """One file may import ray; the second is one too many."""
    files = [Source("actors/a.py", "import ray"), Source("actors/b.py", "import ray")]
    assert list(house_rules.heavy_imports(files)) == ["ray is imported in 2 files: actors/a.py, actors/b.py"]

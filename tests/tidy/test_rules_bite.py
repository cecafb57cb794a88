"""A rule that cannot fail holds nothing: each is shown a small offender, and a neighbour that is in order."""

import sys

import pytest

from tests.tidy import rules
from tests.tidy.source import Source


def events_only(files: list[Source]) -> list[str]:
    return list(rules.foreign_to_events(files, sys.stdlib_module_names))


LONG = "x = 1\n" * 400
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 69
MANY_NINE_LINE_FUNCTIONS = "".join(f"def f{n}():\n" + "    x = 1\n" * 9 for n in range(30))

OFFENDERS = [
    (rules.wrong_way, "events/a.py", "import store"),
    (rules.wrong_way, "store/a.py", "def f():\n    from everlog.actors.hosting.host import Host"),
    (rules.wrong_way, "actors/a.py", "from tests.bdd import given"),
    (rules.impure, "events/a.py", "import random"),
    (rules.impure, "actors/agent/decide.py", "def f():\n    import duckdb"),
    (rules.impure, "actors/formats/parse_reply.py", "from uuid import UUID"),
    (rules.impure, "actors/formats/chatml.py", "import pyarrow as pa"),
    (events_only, "events/a.py", "import rich"),
    (events_only, "events/a.py", "from everlog.store.log import Log"),
    (rules.heavy_imports, "store/a.py", "import ray"),
    (rules.heavy_imports, "interfaces/a.py", "def f():\n    import openai"),
    (rules.chance, "store/a.py", "import time\nx = time.time()"),
    (rules.chance, "store/a.py", "from time import monotonic_ns"),
    (rules.chance, "actors/a.py", "from datetime import datetime as d\nx = d.now(None)"),
    (rules.chance, "actors/a.py", "import datetime\nx = datetime.date.today()"),
    (rules.chance, "actors/a.py", "import random\nx = random.choice([1])"),
    (rules.chance, "actors/a.py", "import uuid as u\nx = u.uuid4"),
    (rules.sleeping, "tests/test_a.py", "import time\ntime.sleep(1)"),
    (rules.sleeping, "tests/test_a.py", "from time import sleep as nap"),
    (rules.long_files, "store/a.py", LONG),
    (rules.long_functions, "store/a.py", LONG_FUNCTION),
    (rules.median_too_long, "store/a.py", MANY_NINE_LINE_FUNCTIONS),
    (rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept:\n    pass"),
    (rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept (OSError, Exception):\n    pass"),
    (rules.without_docstring, "store/a.py", "x = 1"),
    (rules.bad_exports, "store/a.py", "__all__ = ['gone']"),
    (rules.bad_exports, "store/a.py", "__all__ = ['b', 'a']\na = b = 1"),
]

IN_ORDER = [
    (rules.wrong_way, "interfaces/a.py", "import events, store, projections, actors"),
    (rules.impure, "actors/hosting/host.py", "import duckdb, time"),
    (rules.impure, "actors/agent/decide.py", "import json\nfrom datetime import datetime"),
    (events_only, "events/a.py", "import msgspec, json\nfrom everlog.events.codec import encode\nfrom . import codec"),
    (rules.heavy_imports, "actors/cluster/cluster.py", "import ray\ndef f():\n    import ray.util"),
    (rules.chance, "actors/ports/real.py", "import time\nx = time.time()"),
    (rules.chance, "actors/a.py", "import random\ndef f(chance: random.Random): chance.choice([1])"),
    (rules.long_files, "store/a.py", LONG.removesuffix("x = 1\n")),
    (rules.long_functions, "store/a.py", LONG_FUNCTION.removesuffix("    x = 1\n")),
    (rules.broad_excepts, "store/a.py", "try:\n    f()\nexcept (OSError, ValueError):\n    pass"),
    (rules.without_docstring, "store/a.py", '"""What may live here."""'),
    (rules.bad_exports, "store/a.py", "__all__ = ['MAX', 'Log', 'f']\nMAX: int = 1\nclass Log: ...\ndef f(): ..."),
    (rules.bad_exports, "store/__init__.py", "from everlog.store.log import P2, P10\n__all__ = ['P2', 'P10']"),
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
    assert list(rules.impure(files)) == ["actors/agent/decide.py -> actors/helper.py:1 imports duckdb"]


def test_a_second_file_with_a_heavy_library_is_seen() -> None:
    """One file may import ray; the second is one too many."""
    files = [Source("actors/a.py", "import ray"), Source("actors/b.py", "import ray")]
    assert list(rules.heavy_imports(files)) == ["ray is imported in 2 files: actors/a.py, actors/b.py"]

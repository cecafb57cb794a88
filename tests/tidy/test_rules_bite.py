"""Each rule is tested with a small offender and with correct code: a rule that cannot fail protects nothing."""

import sys

import pytest

from tests.tidy import house, house_rules, prose_rules
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
    (prose_rules.riddles, "store/a.py", 'def f():\n    """Whether it was."""'),
    (prose_rules.riddles, "tests/a.py", 'X = 1\n"""Where the store is."""'),
    (prose_rules.archaic, "store/a.py", "x = 1  # made anew"),
    (prose_rules.archaic, "store/a.py", 'class A:\n    """Lets go of the agent."""'),
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
    (house_rules.without_docstring, "store/a.py", '"""Files of the log."""'),
    (
        house_rules.bad_exports,
        "store/a.py",
        "__all__ = ['MAX', 'Log', 'f']\nMAX: int = 1\nclass Log: ...\ndef f(): ...",
    ),
    (prose_rules.riddles, "store/a.py", 'def f():\n    """Return True if what was asked for exists."""'),
    (prose_rules.archaic, "store/a.py", 'x = "a message that nobody reads is no docstring"'),
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
    """A pure module cannot reach an impure module through a third one."""
    files = [
        Source("actors/agent/decide.py", "from everlog.actors.helper import f"),
        Source("actors/helper.py", "import duckdb"),
    ]
    assert list(house_rules.impure(files)) == ["actors/agent/decide.py -> actors/helper.py:1 imports duckdb"]


def test_a_second_file_with_a_heavy_library_is_seen() -> None:
    """One file may import ray; a second file is reported."""
    files = [Source("actors/a.py", "import ray"), Source("actors/b.py", "import ray")]
    assert list(house_rules.heavy_imports(files)) == ["ray is imported in 2 files: actors/a.py, actors/b.py"]


HOUSE_OFFENDERS = [
    (
        house.against_sub_rooms,
        {"store/base/a.py": "from everlog.store.log.b import c", "store/log/b.py": "c = 1"},
        "store/base/a.py:1 imports store/log/b.py, which comes later",
    ),
    (
        house.against_sub_rooms,
        {"store/log/b.py": "from everlog.store import c", "store/__init__.py": "c = 1"},
        "store/log/b.py:1 imports store/__init__.py, which comes later",
    ),
    (
        house.without_place,
        {"store/attic/a.py": ""},
        "store/attic/a.py: attic has no place among the sub-rooms of store",
    ),
    (house.crowded, {f"store/base/a{n}.py": "" for n in range(21)}, "store/base has 21 files"),
    (
        house.doubled_types,
        {"store/a.py": "class Told: ...", "actors/b.py": "Told = int"},
        "Told: store/a.py, actors/b.py",
    ),
    (
        house.circles,
        {
            "store/a.py": "if TYPE_CHECKING:\n    from everlog.store.b import x",
            "store/b.py": "def f():\n    from everlog.store import a",
        },
        "store/a.py -> store/b.py -> store/a.py",
    ),
    (house.not_absolute, {"store/a.py": "from . import b"}, "store/a.py:1 imports relative to itself"),
    (house.not_absolute, {"tests/a.py": "from store import b"}, "tests/a.py:1 imports store.b"),
    (
        house.hidden_broad_excepts,
        {"store/a.py": "ALL = (OSError, Exception)\ntry:\n    f()\nexcept ALL:\n    pass"},
        "store/a.py:4 catches ALL",
    ),
    (
        house.hidden_broad_excepts,
        {"store/a.py": "try:\n    f()\nexcept tool.faults:\n    pass"},
        "store/a.py:3 catches tool.faults",
    ),
]


@pytest.mark.parametrize(("rule", "files", "problem"), HOUSE_OFFENDERS)
def test_a_rule_of_the_house_sees_its_offender(rule, files: dict[str, str], problem: str) -> None:
    """Each rule of the layout reports the offender, and nothing else."""
    assert list(rule([Source(path, text) for path, text in files.items()])) == [problem]


def test_a_sub_room_that_the_page_does_not_name_is_seen() -> None:
    """For a page that names one of two sub-rooms, the other is reported."""
    files = [Source("store/base/a.py", ""), Source("store/log/b.py", "")]
    assert list(house.unmentioned(files, "| `store/base/` | Which? | none |\n`store/log/`")) == ["store/log/"]

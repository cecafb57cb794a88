"""The layout of the house: sub-rooms import one way, folders stay small, a name means one thing."""

from tests.tidy import house
from tests.tidy.parsed_source import ROOT, everything, report, sources


def test_sub_rooms_import_one_way() -> None:
    """A sub-room imports itself and those before it in its room, for the type checker too."""
    cure = "move what both need to the lower sub-room, or pass it as an argument; the order is in tests/tidy/house.py"
    report([*house.without_place(sources()), *house.against_sub_rooms(sources())], cure)


def test_no_file_imports_itself_by_way_of_others() -> None:
    """There is no cycle of imports, not even of imports in functions or for the type checker."""
    report(list(house.circles(sources())), "move what both need into a file that imports neither")


def test_folders_can_be_taken_in() -> None:
    """A folder of the rooms, the tests or the benchmarks has at most 20 files."""
    report(list(house.crowded(everything())), "find the second question that the folder answers, and give it a folder")


def test_a_type_name_means_one_thing() -> None:
    """No public type name is defined in two files of the rooms."""
    report(list(house.doubled_types(sources())), "name each for what it is; the more public one keeps the name")


def test_imports_begin_with_everlog() -> None:
    """Imports of this project are absolute and in one form: `from everlog.store import FileStore`."""
    cure = "write `from everlog.ROOM import NAME`: bare names are other people's, and a user may have their own"
    report(list(house.not_absolute([*everything(), *sources("docs", "everlog")])), cure)


def test_nothing_catches_everything_behind_a_name() -> None:
    """A constant or an attribute that stands for all exceptions is caught only in files where code of users runs."""
    cure = "catch the types that can be answered; code of users is guarded in the files of house.GUARDS"
    report(list(house.hidden_broad_excepts(sources())), cure)


def test_the_architecture_names_every_sub_room() -> None:
    """docs/ARCHITECTURE.md says of each sub-room which question it answers."""
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    report(list(house.unmentioned(sources(), page)), "add a row: `room/sub_room/`, its question, its imports")

"""A contract that is run a second time leaves to the deep suite what its class names in `LONG`."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in getattr(getattr(item, "cls", None), "LONG", ()):
            item.add_marker("long")
            item.add_marker("contract")

"""Move the tests that a contract class lists in `LONG` to the deep suite, because another class runs them as well."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(item, "originalname", "") in getattr(getattr(item, "cls", None), "LONG", ()):
            item.add_marker("long")
            item.add_marker("contract")

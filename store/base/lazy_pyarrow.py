"""Parts of pyarrow that are imported when they are first used: 5 MB and 50 ms that a short log never needs."""

import importlib
from typing import Any


class _Lazy:
    """Stands for a module, and imports it when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


pc: Any = _Lazy("pyarrow.compute")
pq: Any = _Lazy("pyarrow.parquet")

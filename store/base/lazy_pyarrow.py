"""Import parts of pyarrow on first use: 5 MB and 50 ms that a short log never needs.

Used by `store`, `projections` and hosts in place of `import pyarrow.compute` and `import pyarrow.parquet` at the top of
a module.
"""

import importlib
from typing import Any


class _Lazy:
    """Proxy of a module that is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


pc: Any = _Lazy("pyarrow.compute")
pq: Any = _Lazy("pyarrow.parquet")

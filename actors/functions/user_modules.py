"""Tell modules of a user from those that every process has. Used where functions are sent to another process."""

import sysconfig
from pathlib import Path
from types import ModuleType

_OURS = __name__.partition(".")[0]
"""Package that every process has."""
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_of_user(module: ModuleType) -> bool:
    """Return True for a module of the user: neither everlog's nor installed. cloudpickle sends `__main__` by itself."""
    name = module.__name__
    if name == "__main__" or name.partition(".")[0] == _OURS or not getattr(module, "__file__", None):
        return False
    path = Path(str(module.__file__)).resolve()
    return not any(path.is_relative_to(folder) for folder in _INSTALLED)

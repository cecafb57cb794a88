"""Ways to break a guard of the store: an attribute is replaced while a context is open."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from everlog.store.base import disk as real

Break = Callable[[], AbstractContextManager[object]]
BREAKS: dict[str, tuple[str, Break]] = {}
"""By name: the purpose of the guard, and a way to break it."""


class Changed:
    """An object with some of its attributes replaced."""

    def __init__(self, inner: Any, **changes: Any) -> None:
        self._inner = inner
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return self._changes[name] if name in self._changes else getattr(self._inner, name)


def nothing(*_: object, **__: object) -> None:
    """Do nothing, for any arguments."""


def guard(name: str, why: str) -> Callable[[Break], Break]:
    """Add a way to break the guard `name` to the list."""

    def add(breaks: Break) -> Break:
        BREAKS[name] = (why, breaks)
        return breaks

    return add


def instead(owner: object, name: str, make: Callable[[Any], Any]) -> AbstractContextManager[object]:
    """While open, replace `owner.name` by `make(owner.name)`."""
    return patch.object(owner, name, make(getattr(owner, name)))


@contextmanager
def together(parts: Sequence[AbstractContextManager[object]]) -> Iterator[None]:
    """Enter several contexts at once."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part)
        yield


def publishing(change: Callable[[Any], Any], *modules: Any) -> AbstractContextManager[None]:
    """While open, let these modules publish their files on the disk that `change` returns for the real one."""

    def make(publish: Any) -> Any:
        return lambda disk, *args, **kwargs: publish(change(disk), *args, **kwargs)

    names = [(module, "publish_open" if hasattr(module, "publish_open") else "publish") for module in modules]
    return together([instead(module, name, make) for module, name in names])


def without_sync(disk: Any) -> Any:
    """Return a disk whose new files are never synced."""
    return Changed(disk, create=lambda path: Changed(disk.create(path), sync=nothing))


def without_sync_dir(disk: Any) -> Any:
    """Return a disk whose names are never synced."""
    return Changed(disk, sync_dir=nothing)


def overwriting(disk: Any) -> Any:
    """Return a disk whose `link` replaces an existing name."""

    def link(source: Path, target: Path) -> None:
        real.remove_if_there(disk, target)
        disk.link(source, target)

    return Changed(disk, link=link)

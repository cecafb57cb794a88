"""Promises of side files, wherever they are kept: each file whole, and no change lost."""

import threading
from pathlib import Path

import msgspec
import pytest

from everlog.store.stores.side_files import SideFiles

WRITERS, EACH = 4, 5


class SideFilesContract:
    """Tests that every form of side files passes. A subclass has the fixtures `files` and `root`."""

    def test_a_file_is_read_as_it_was_written(self, files: SideFiles, root: Path) -> None:
        """A file that was written is read whole, and one that was never written or was removed is None."""
        path = root / "keys.json"
        assert (files.read(path), files.stamp(path)) == (None, None)
        for content in (b"first", b"", bytes(range(256)) * 4096):
            files.write(path, content)
            found = files.read(path)
            assert found is not None
            assert found == (content, files.stamp(path))
        files.remove(path)
        files.remove(path)
        assert (files.read(path), files.stamp(path)) == (None, None)

    def test_names_are_those_of_one_folder(self, files: SideFiles, root: Path) -> None:
        """A folder lists the files in it and no temporary ones; a folder that does not exist has none."""
        assert files.names(root / "webhooks") == []
        for name in ("b.json", "a.state", "c/d.txt"):
            files.write(root / "webhooks" / name, b"x")
        files.write(root / "mcp.toml", b"x")
        assert files.names(root / "webhooks") == ["a.state", "b.json", "c"]
        assert "mcp.toml" in files.names(root)
        files.remove(root / "webhooks" / "b.json")
        assert files.names(root / "webhooks") == ["a.state", "c"]

    def test_a_file_is_replaced_only_if_it_is_the_one_that_was_read(self, files: SideFiles, root: Path) -> None:
        """Of two writers that read the same content one succeeds; so it is if the file did not exist, and if it was
        removed meanwhile.
        """
        path = root / "mcp.toml"
        assert files.replace(path, b"one", None)
        assert not files.replace(path, b"other", None)
        before = files.read(path)
        assert files.replace(path, b"two", before)
        assert not files.replace(path, b"three", before)
        newest = files.read(path)
        assert newest is not None
        assert newest[0] == b"two"
        files.remove(path)
        assert not files.replace(path, b"four", newest)
        assert files.read(path) is None

    def test_a_stamp_changes_with_the_content(self, files: SideFiles, root: Path) -> None:
        """A reader that compares stamps notices each change."""
        path, stamps = root / "models.toml", set()
        for number in range(5):
            files.write(path, b"version %d" % number)
            stamps.add(files.stamp(path))
        assert len(stamps) == 5

    def test_no_change_of_many_writers_is_lost(self, files: SideFiles, root: Path) -> None:
        """Writers that change one file at the same time all find their changes in it."""
        path = root / "keys.json"

        def change(writer: int) -> None:
            for number in range(EACH):
                while True:
                    before = files.read(path)
                    held = set(msgspec.json.decode(before[0])) if before else set()
                    if files.replace(path, msgspec.json.encode(sorted({*held, f"{writer}.{number}"})), before):
                        break

        threads = [threading.Thread(target=change, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = files.read(path)
        assert found is not None
        assert len(msgspec.json.decode(found[0])) == WRITERS * EACH

    @pytest.mark.parametrize("name", ["side file.json", "ünïcode.json", "a+b%20.json"])
    def test_a_name_is_kept_as_it_is(self, files: SideFiles, root: Path, name: str) -> None:
        """A name with a space, an accent or a percent sign is the same in the listing."""
        files.write(root / "letta" / name, b"x")
        assert files.names(root / "letta") == [name]
        assert files.read(root / "letta" / name) is not None

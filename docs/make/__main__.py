"""Make the parts of the pages that are made: `python -m docs.make`, and with `--run` the outputs of consoles too.

python -m docs.make                            fill the blocks that are made from code
python -m docs.make --check                    only name the pages whose blocks are out of date; exit code 1
python -m docs.make --run docs/how_to/*.md     run the consoles of these pages, and replace outputs that differ
"""

import sys
import tempfile
from pathlib import Path

from docs.make.blocks import pages
from docs.make.makers import made


def _main(words: list[str]) -> int:
    if words[:1] == ["--run"]:
        from docs.make.consoles import rewritten

        for name in words[1:]:
            with tempfile.TemporaryDirectory() as folder:
                _write(Path(name), rewritten(Path(name).read_text(encoding="utf-8"), Path(folder)))
        return 0
    old = [page for page in pages() if made(page) != page.read_text(encoding="utf-8")]
    for page in old:
        if "--check" in words:
            print(f"{page} is out of date: run `python -m docs.make`")
        else:
            _write(page, made(page))
    return 1 if old and "--check" in words else 0


def _write(page: Path, text: str) -> None:
    if page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

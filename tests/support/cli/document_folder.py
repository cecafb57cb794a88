"""A folder of documents of every kind that can be read, made from real texts: this project's pages, and dialogues."""

import csv
import gzip
import html
import io
import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import docx
from fpdf import FPDF

ROOT = Path(__file__).resolve().parents[3]
ENDINGS = (".txt", ".md", ".html", ".csv", ".json", ".jsonl", ".docx", ".pdf", ".tsv")

Lines = Sequence[tuple[str, str]]
"""A text as (speaker or part, words)."""


def pages() -> list[Lines]:
    """Return the sections of this project's own documents, paragraph by paragraph."""
    found: list[Lines] = []
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        for section in re.split(r"(?m)^#+ ", path.read_text(encoding="utf-8"))[1:]:
            parts = [" ".join(part.split()) for part in section.split("\n\n") if part.strip()]
            if len(parts) > 1:
                found.append([(f"part {number}", part) for number, part in enumerate(parts)])
    return found


def dialogues(data: Path, count: int) -> list[Lines]:
    """Return the first dialogues of the data set of task dialogues."""
    with gzip.open(data / "sgd" / "dialogues.jsonl.gz", "rt", encoding="utf-8") as lines:
        read = [json.loads(line)["turns"] for line in islice(lines, count)]
    return [[(speaker, words) for speaker, words, *_ in turns] for turns in read]


def sessions(data: Path) -> list[Lines]:
    """Return long conversations, ten messages at a time."""
    found: list[Lines] = []
    for path in sorted((data / "locomo" / "dev").glob("*.jsonl")):
        if path.name.endswith(".questions.jsonl"):
            continue
        told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        said = [(one["name"], " ".join(one["content"].split())) for one in told]
        found += [said[start : start + 10] for start in range(0, len(said), 10)]
    return found


def write(path: Path, lines: Lines) -> None:
    """Write the text as a file of the kind that the file's suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".docx", ".pdf"):
        {".docx": _docx, ".pdf": _pdf}[path.suffix](path, lines)
    else:
        path.write_text(_text(path.suffix, lines), encoding="utf-8")


def _text(ending: str, lines: Lines) -> str:
    match ending:
        case ".txt":
            return "\r\n".join(f"{who}: {words}" for who, words in lines)
        case ".md":
            return "\n\n".join(["# A talk", *(f"**{who}**: {words}" for who, words in lines)])
        case ".html":
            said = "".join(f"<p><b>{html.escape(who)}</b> {html.escape(words)}</p>\n" for who, words in lines)
            return f"<!doctype html><title>A talk</title><style>p {{ color: red }}</style><body>{said}</body>"
        case ".csv" | ".tsv":
            out = io.StringIO()
            csv.writer(out, delimiter="," if ending == ".csv" else "\t").writerows([("who", "words"), *lines])
            return out.getvalue()
        case ".jsonl":
            return "\n".join(json.dumps({"who": who, "words": words}) for who, words in lines)
        case _:
            return json.dumps({"talk": [{"who": who, "words": words} for who, words in lines]})


def _docx(path: Path, lines: Lines) -> None:
    document = docx.Document()
    document.core_properties.title = "A talk"
    for who, words in lines:
        document.add_paragraph(f"{who}: {words}")
    document.save(str(path))


def _pdf(path: Path, lines: Lines) -> None:
    page = FPDF()
    page.set_title("A talk")
    page.add_page()
    page.set_font("helvetica", size=9)
    for who, words in lines:
        page.multi_cell(0, 5, f"{who}: {words}".encode("latin-1", "replace").decode("latin-1"))
        page.ln()
    page.output(str(path))


def library(folder: Path, texts: Sequence[Lines]) -> dict[str, Lines]:
    """Write each text as a file in one of five folders, the kinds in turn. Return the texts by the name of the
    document.
    """
    made: dict[str, Lines] = {}
    for number, lines in enumerate(texts):
        name = f"shelf-{number % 5}/{number:03d}{ENDINGS[number % len(ENDINGS)]}"
        write(folder / name, lines)
        made[name] = lines
    return made


def letters(text: str) -> str:
    """Return a text without spaces and line ends, because these differ between kinds of files."""
    return "".join(text.split())

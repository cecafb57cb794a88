"""A real conversation of many months, imported and continued; skipped if the data set is missing."""

import json
from pathlib import Path

import pytest

from everlog.interfaces.cli.main import main


@pytest.fixture
def conversation(data_dir: Path) -> Path:
    found: Path = data_dir / "locomo" / "dev" / "conv-26.jsonl"
    if not found.exists():
        pytest.skip(f"{found.name} of LoCoMo is not in the data folder")
    return found


def test_a_conversation_of_months_is_imported_found_and_talked_about(
    conversation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The context stays within the window behind a summary, search finds old messages, and --as-of shows earlier
    states.
    """
    store = ["--store", str(tmp_path / "store")]

    def shown(*arguments: str) -> str:
        assert main([*arguments, *store]) == 0
        return capsys.readouterr().out

    shown("import", "mel", str(conversation))
    before = shown("context", "mel", "--json")
    context = json.loads(before)
    assert context["tokens"] < context["window"]
    assert "prior messages" in context["messages"][1]["content"]
    for query, ref in (("LGBTQ support group", "D1:3"), ("lake sunrise", "D1:14"), ("adoption agency", "D19:1")):
        found = json.loads(shown("search", "mel", query, "--json"))["results"]
        assert ref in [result["ref"] for result in found], query
    assert "lake sunrise" in shown("send", "mel", "When did Melanie paint a sunrise?")
    assert shown("context", "mel", "--as-of", str(context["as_of"]), "--json") == before
    assert "no difference" in shown("verify", "mel")
    assert "no difference" in shown("rebuild", "mel")

"""The states that tests remember are those of the same rows, and of no others."""

import pyarrow as pa
import pytest

from everlog.projections import DERIVER
from everlog.projections.state import SqlStateDeriver
from tests.support.derived_states import remembered

ROWS = pa.table({"agent_id": ["sam", "ann", "sam"], "text": ["one", "two", "three"]})


def test_equal_rows_are_derived_once_and_others_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in other chunks are the same; other rows, fewer of them, and rows after an earlier state are not."""
    derived: list[pa.Table] = []
    monkeypatch.setattr(SqlStateDeriver, "__call__", lambda _, _earlier, records: derived.append(records) or records)
    edited = ROWS.set_column(1, "text", pa.array(["one", "two", "four"]))
    with remembered():
        assert DERIVER(None, ROWS) is DERIVER(None, pa.concat_tables([ROWS[:1], ROWS[1:]]))
        for earlier, records in ((None, edited), (None, ROWS[:2]), (ROWS[:2], ROWS), (ROWS, ROWS[:2])):
            assert DERIVER(earlier, records) is records
    assert len(derived) == 5


def test_another_maker_derives_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of one version of the projections is no state of another one."""
    monkeypatch.setattr(SqlStateDeriver, "__call__", lambda self, *_: pa.table({"maker": [self.maker]}))
    with remembered():
        monkeypatch.setattr(SqlStateDeriver, "maker", "one")
        assert DERIVER(None, ROWS)["maker"].to_pylist() == ["one"]
        monkeypatch.setattr(SqlStateDeriver, "maker", "other")
        assert DERIVER(None, ROWS)["maker"].to_pylist() == ["other"]

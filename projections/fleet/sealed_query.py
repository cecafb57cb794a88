"""Write the part of a query that reads sealed files, those of older versions included. Used by `fleet_views`."""

from collections.abc import Collection, Sequence

from everlog.store import FIGURES, SCHEMA


def quoted(paths: Sequence[str]) -> str:
    """Return paths as a list of SQL texts, without the brackets."""
    return ", ".join(f"'{path}'" for path in paths)


def records_in(paths: Sequence[str], figures: Sequence[str] = ()) -> str:
    """Return the query over the records in sealed files, after a UNION ALL; empty without files. `figures`: expressions
    for the columns after those of the log.
    """
    columns = [*(f'"{name}"' for name in SCHEMA.names), *figures]
    return f" UNION ALL SELECT {', '.join(columns)} FROM read_parquet([{quoted(paths)}])" if paths else ""


def figures_in(paths: Sequence[str], older: Collection[str], owed: str) -> str:
    """Return the query over the records in sealed files, with the columns of `FIGURES`. `older`: those of `paths` that
    lack the last of them, for which `owed` is an expression over the others.
    """
    before = set(older)
    newer = records_in([path for path in paths if path not in before], FIGURES.names)
    return newer + records_in([path for path in paths if path in before], [*FIGURES.names[:-1], f"{owed} AS f_owed"])

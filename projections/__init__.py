"""WHAT IT MEANS: SQL over records.

A projection is a pure function of the records with `seq <= as_of`, written once in a SQL file and used for everything:
the agent's own next call, time travel, and questions about the whole fleet. Python here only loads the files, feeds
DuckDB and reads rows back; a rule about meaning belongs in the SQL.

May import `store` and `events`. Never actors or interfaces. Held by `tests/tidy`.
"""

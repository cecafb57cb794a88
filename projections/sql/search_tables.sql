-- What ranked search needs beside the records: of each thing that was said its document (`documents.py`). Built when
-- somebody searches, from the records alone. A document is one row, for those of an agent lie scattered among those of
-- all agents of a host, and its stems are one text: as lists they cost five times as much to gather. Texts stay as they
-- are: DuckDB would unpack 2,000 of them to read one.
CREATE TABLE IF NOT EXISTS documents (
    agent_id VARCHAR,
    agent BIGINT,     -- 64 bits of a digest of agent_id: a number is found three times as fast among thousands of rows
    seq BIGINT,
    time BIGINT,      -- when it was said, microseconds UTC
    role VARCHAR, name VARCHAR,
    text VARCHAR USING COMPRESSION uncompressed,
    ref VARCHAR,
    linked BOOLEAN,   -- it goes on from what was said before it
    words DOUBLE,     -- what all stems of the document count together
    stems VARCHAR USING COMPRESSION uncompressed
                      -- ' sail=6o sam=4s ': how many quarters a stem counts; o if it is said there, or asked in what was
                      -- said before, which is enough to be a result; s if it is of the name of who says it
);

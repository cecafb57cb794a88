-- What ranked search needs beside the records, of each thing that was said: when and by whom, and how much each stem counts
-- in its document (`documents.py`). Built when somebody first searches, from the records alone.
CREATE TABLE IF NOT EXISTS documents (
    agent_id VARCHAR, seq BIGINT,
    time BIGINT,      -- when it was said, microseconds UTC
    role VARCHAR, name VARCHAR, ref VARCHAR,
    linked BOOLEAN,   -- it goes on from what was said before it
    words DOUBLE      -- what all stems of the document count together
);
CREATE TABLE IF NOT EXISTS postings (
    agent_id VARCHAR, seq BIGINT, stem VARCHAR,
    n DOUBLE,         -- what the stem counts in the document
    own BOOLEAN,      -- it is said there, or asked in what was said before: enough to be a result
    speaker BOOLEAN   -- it is of the name of who says it
);

-- The table of ranked search: for each thing that was said its search document (`search_documents.py`), made from the
-- records by the first search. A document is one row, because the rows of an agent lie scattered among those of all
-- agents of a host. Its stems are one text: read as lists they cost five times as much. Texts are not compressed: DuckDB
-- would unpack 2,000 of them to read one.
CREATE TABLE IF NOT EXISTS documents (
    agent_id VARCHAR,
    agent BIGINT,     -- 64 bits of a digest of agent_id: among thousands of rows a number is found three times as fast
    seq BIGINT,
    time BIGINT,      -- when it was said, microseconds UTC
    role VARCHAR, name VARCHAR,
    text VARCHAR USING COMPRESSION uncompressed,
    ref VARCHAR,
    linked BOOLEAN,   -- it continues what was said before it
    words DOUBLE,     -- sum of the weights of all stems of the document
    stems VARCHAR USING COMPRESSION uncompressed
                      -- ' sail=6o sam=4s ': weight of each stem in quarters; o: the stem is in the text, or in a question
                      -- right before it, which makes the text a result; s: the stem is in the speaker's name
);

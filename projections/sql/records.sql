-- The records: the envelope's columns, and what the macros would otherwise have to read out of JSON again and again. The
-- table is filled from Arrow record batches by `add.sql`, and every projection reads it.
CREATE TABLE records (
    agent_id VARCHAR, seq BIGINT, "commit" BIGINT, event_id UUID, recorded_at TIMESTAMPTZ, said_at TIMESTAMPTZ,
    type VARCHAR, turn BIGINT, step INTEGER, cause UUID, version INTEGER, text VARCHAR, payload VARCHAR,
    slot VARCHAR,       -- what the record is the newest value of: block:LABEL, config, summary, warning, reply, pause
    kept_from BIGINT,   -- of a summary: the first seq that the context still shows
    shown BOOLEAN,      -- the context shows it, or heeds it, while seq >= kept_from
    said BOOLEAN,       -- words that really passed between user and agent: recall memory
    archived INTEGER,   -- 1 for a memory that was archived, -1 for one that was taken out again
    tokens BIGINT,      -- of a reply: the tokens of its call; of a configuration or switch: the window
    ratio DOUBLE,       -- of a reply: the tokens per byte of its request; of a configuration: the part of the window
                        -- above which the agent is warned
    cached BIGINT,      -- of a reply: the tokens of its request that the provider had in its cache
    recall BIGINT,      -- of a change of memory, summary or configuration (and of a state's newest record): how many
                        -- things had been said by then
    archival BIGINT,    -- and how many memories were in the archive
    ended BIGINT        -- seq of the agent_created that ended the life which the record belongs to
);
-- Rows of states pass through this table, which is empty otherwise. It is no temporary table, because a checkpoint frees
-- only what is deleted from the database's own.
CREATE TABLE leaving AS FROM records;

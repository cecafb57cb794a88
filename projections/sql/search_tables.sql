-- What ranked search needs beside the records: for each thing said, how often each stem occurs in it. Built when somebody
-- first searches, from the records alone. A document is a message with its speaker and the message before it.
CREATE TABLE IF NOT EXISTS postings (agent_id VARCHAR, seq BIGINT, stem VARCHAR, n INTEGER, own BOOLEAN);
CREATE TABLE IF NOT EXISTS documents (agent_id VARCHAR, seq BIGINT, words INTEGER);

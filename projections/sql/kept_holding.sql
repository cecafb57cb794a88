-- needs: archival_memory
-- The memories that have exactly a text, the oldest first. Parameters after the agents and as_of: the text without
-- white space around it, and the characters that are white space.
SELECT memory_id, seq FROM archival_memory WHERE trim(text, $4) = $3 ORDER BY seq

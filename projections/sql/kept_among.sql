-- needs: archival_memory
-- The memories that have exactly one of many texts. Parameters after the agents and as_of: the texts without white
-- space around them, and the characters that are white space.
SELECT memory_id, seq, trim(text, $4) AS text FROM archival_memory
WHERE trim(text, $4) IN (SELECT unnest($3::VARCHAR[])) ORDER BY seq

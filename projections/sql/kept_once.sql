-- Finds out if a memory ever had exactly a text: fast, which `kept_holding` is not. Parameters after the agents and
-- as_of: both again as plain values; the text without white space around it; the characters that are white space.
SELECT r.seq FROM records r
WHERE r.agent_id = $3 AND r.seq <= $4 AND r.ended > $4 AND (r.type = 'archival_inserted' OR r.type = 'archival_updated')
    AND contains(coalesce(r.text, ''), $5) AND trim(coalesce(r.text, ''), $6) = $5
LIMIT 1

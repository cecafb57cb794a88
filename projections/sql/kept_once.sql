-- Whether a memory ever held exactly a text: quick, where `kept_holding` is not. Its parameters are the same.
SELECT r.seq FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type IN ('archival_inserted', 'archival_updated') AND contains(coalesce(r.text, ''), $3)
    AND trim(coalesce(r.text, ''), $4) = $3
LIMIT 1

-- The record that gave each memory in archival memory its current text: `newest` is its seq, `seq` that of the insert.
SELECT min(r.seq) AS seq, max(r.seq) FILTER (r.type <> 'archival_deleted') AS newest
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type IN ('archival_inserted', 'archival_updated', 'archival_deleted') AND r.payload NOT LIKE '{"erased":true%'
GROUP BY CASE r.type WHEN 'archival_inserted' THEN r.event_id::VARCHAR ELSE r.payload->>'memory_id' END
ORDER BY 1

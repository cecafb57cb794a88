-- Things said that have no postings yet, and the one before (`known`), whose words are a part of the first one's document.
SELECT r.seq, r.seq = k.seq AS known, coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
    JOIN (
        SELECT coalesce(max(d.seq), 0) AS seq FROM documents d WHERE list_contains($1::VARCHAR[], d.agent_id)
    ) k ON r.seq >= k.seq
WHERE r.said
ORDER BY r.seq

-- Things said that have no postings yet, and the one before, whose words are a part of the first one's document.
SELECT r.seq, coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text
FROM records r
WHERE r.agent_id = $1 AND r.said
    AND r.seq >= coalesce((SELECT max(d.seq) FROM documents d WHERE d.agent_id = $1), 0)
ORDER BY r.seq

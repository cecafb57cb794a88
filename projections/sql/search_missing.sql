-- needs: said
-- Things said that have no document yet, and the one before (`known`), whose words are a part of the first one's document.
SELECT s.seq, s.seq = k.seq AS known, epoch_us(s.time) AS time, s.role, s.name, s.ref, s.text, s.ended
FROM said s JOIN (
    SELECT coalesce(max(d.seq), 0) AS seq FROM documents d WHERE list_contains($1::VARCHAR[], d.agent_id)
) k ON s.seq >= k.seq
ORDER BY s.seq

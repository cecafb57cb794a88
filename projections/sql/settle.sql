-- needs: hidden_turns?, latest, memory_pressure, context_records
-- The hot rows that the context of now does not need: what goes to the cold table when a summary has come. What came
-- after the last change that the memory header counts stays: `count_new.sql` goes on from there.
SELECT h.agent_id, h.seq FROM hot h JOIN wanted w ON w.agent_id = h.agent_id JOIN (
    SELECT agent_id, max(seq) AS seq FROM records WHERE recall IS NOT NULL GROUP BY agent_id
) c ON c.agent_id = h.agent_id AND h.seq <= c.seq
WHERE NOT EXISTS (SELECT 1 FROM context_records n WHERE n.agent_id = h.agent_id AND n.seq = h.seq)

-- needs: latest, context_bounds, context_window
-- The hot rows that the context of now does not need: what goes to the cold table when a summary has come.
SELECT h.agent_id, h.seq FROM hot h JOIN wanted w ON w.agent_id = h.agent_id
WHERE NOT EXISTS (SELECT 1 FROM context_window n WHERE n.agent_id = h.agent_id AND n.seq = h.seq)

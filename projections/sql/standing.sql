-- Position of an agent: its last record, the last turn that was opened, and whether it was deleted.
SELECT r.agent_id, w.as_of, max(r.seq) AS head, max(r.turn) AS turn,
    coalesce(bool_or(r.type = 'agent_deleted'), false) AS deleted
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
GROUP BY r.agent_id, w.as_of

-- One row for each agent: the numbers of its records and messages, its head, and the time of its newest record.
SELECT r.agent_id, w.as_of, count(*) AS events, count(*) FILTER (r.said) AS messages, max(r.seq) AS head,
    max(r.turn) AS turn, max(r.recorded_at) AS last_active,
    coalesce(bool_or(r.type = 'agent_deleted'), false) AS deleted
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
GROUP BY r.agent_id, w.as_of

-- One row for each agent: how much there is of it, and when it last did anything.
SELECT r.agent_id, w.as_of, count(*) AS events, count(*) FILTER (r.said) AS messages, max(r.seq) AS head,
    max(r.turn) AS turn, max(r.recorded_at) AS last_active, arg_max(r.type, r.seq) = 'agent_deleted' AS deleted
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
GROUP BY r.agent_id, w.as_of

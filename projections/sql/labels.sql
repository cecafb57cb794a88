-- Each label of the agent, in the order in which its newest configuration has them.
WITH newest AS (
    SELECT r.agent_id, w.as_of, max(r.seq) AS seq, arg_max(r.recorded_at, r.seq) AS recorded_at,
        arg_max(coalesce(r.payload->'labels', '[]'), r.seq) AS labels
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'agent_configured'
    GROUP BY r.agent_id, w.as_of
)
SELECT agent_id, as_of, seq, recorded_at, unnest(labels::VARCHAR[]) AS label FROM newest

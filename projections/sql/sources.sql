-- Sources whose documents an agent can search. One more row, with an empty name, has the time of the agent's last
-- record: documents that were loaded later do not count yet.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.recorded_at, r.type,
        CASE WHEN r.type IN ('source_attached', 'source_detached') THEN r.payload->>'source' END AS source
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
)
SELECT agent_id, as_of, source, max(seq) AS seq, epoch_us(arg_max(recorded_at, seq)) AS as_of_time
FROM mine WHERE source IS NOT NULL GROUP BY ALL HAVING arg_max(type, seq) = 'source_attached'
UNION ALL
SELECT agent_id, as_of, '', max(seq), epoch_us(arg_max(recorded_at, seq)) FROM mine GROUP BY agent_id, as_of

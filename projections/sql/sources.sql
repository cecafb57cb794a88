-- The sources whose documents an agent can search. One more row, with an empty name, says when its last record was
-- recorded: what was loaded later did not count yet.
SELECT r.agent_id, w.as_of,
    CASE r.type WHEN 'source_attached' THEN coalesce(r.payload->>'source', '') ELSE '' END AS source,
    epoch_us(max(r.recorded_at)) AS as_of_time
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
GROUP BY ALL

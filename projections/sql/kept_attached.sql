-- The content of `sources` in one row: when the last record was recorded, and each time that a source was attached or
-- detached. Fast as of any seq, which `sources` is not. Parameters after the agents and as_of: both again as plain
-- values.
SELECT epoch_us(arg_max(r.recorded_at, r.seq)) AS time,
    list({'seq': r.seq, 'attached': r.type = 'source_attached', 'source': r.payload->>'source'})
        FILTER (r.type = 'source_attached' OR r.type = 'source_detached') AS changes
FROM records r WHERE r.agent_id = $3 AND r.seq <= $4 AND r.ended > $4

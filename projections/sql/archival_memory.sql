-- Current archival memories: the newest text and tags of each. An update carries both whole, so an empty list removes
-- the tags. The source stays that of the insert. A deleted memory stays deleted, whatever later records say of it.
WITH changed AS (
    SELECT r.agent_id, w.as_of,
        CASE r.type WHEN 'archival_inserted' THEN r.event_id::VARCHAR ELSE r.payload->>'memory_id' END AS memory_id,
        min(epoch_us(r.recorded_at)) AS created_us, min(r.seq) AS seq, bool_or(r.type = 'archival_deleted') AS deleted,
        arg_max(coalesce(r.text, ''), r.seq) AS text, arg_max(r.payload, r.seq) AS payload,
        max(r.payload->>'source') FILTER (r.type = 'archival_inserted') AS source
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ('archival_inserted', 'archival_updated', 'archival_deleted')
        AND r.payload NOT LIKE '{"erased":true%'
    GROUP BY 1, 2, 3
)
SELECT agent_id, as_of, memory_id, seq, make_timestamptz(created_us) AS time, text,
    coalesce((payload->'tags')::VARCHAR[], []) AS tags, coalesce(source, '') AS source
FROM changed WHERE NOT deleted

-- Current documents of a source: the one loaded last under each name, without removed ones. `agent_id` is the stream of
-- the source. The query reads no text, so the engine may hold the records without their texts.
WITH changed AS (
    SELECT r.agent_id, w.as_of, r.payload->>'document' AS document, max(r.seq) AS seq, arg_max(r.type, r.seq) AS last,
        max_by(r.recorded_at, r.seq) AS time, arg_max(r.payload, r.seq) AS payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type IN ('document_loaded', 'document_removed') AND NOT starts_with(r.payload, '{"erased":true')
    GROUP BY 1, 2, 3
)
SELECT agent_id, as_of, document, seq, time, payload->>'source' AS source, coalesce(payload->>'title', '') AS title,
    coalesce(payload->>'media_type', '') AS media_type, coalesce((payload->>'bytes')::BIGINT, 0) AS bytes,
    coalesce((payload->>'chars')::BIGINT, 0) AS chars, coalesce(payload->>'sha256', '') AS sha256,
    coalesce(payload->>'origin', '') AS origin
FROM changed WHERE last = 'document_loaded'

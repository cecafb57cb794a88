-- Every request that was sent to a model, with any outcome, those of summaries and derivations included.
-- `context_sha256` identifies its exact bytes.
SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.recorded_at,
    CASE r.type WHEN 'summary' THEN 'summary' WHEN 'reply_rejected' THEN coalesce(r.payload->>'purpose', 'reply')
        WHEN 'derivation_replied' THEN r.payload->>'purpose'
        ELSE 'reply' END AS purpose,
    CASE r.type WHEN 'reply_rejected' THEN 'rejected' WHEN 'model_failed' THEN 'failed' WHEN 'model_switched' THEN 'failed'
        ELSE CASE WHEN coalesce(r.payload->>'fault', '') = '' THEN 'ok' ELSE 'rejected' END END AS outcome,
    coalesce(r.payload->>'model', '') AS model, r.payload->>'context_sha256' AS context_sha256,
    (r.payload->>'context_bytes')::BIGINT AS context_bytes,
    coalesce((r.payload->'usage'->>'prompt')::BIGINT, 0) AS prompt_tokens,
    coalesce((r.payload->'usage'->>'completion')::BIGINT, 0) AS completion_tokens,
    coalesce((r.payload->'usage'->>'total')::BIGINT, 0) AS tokens,
    coalesce((r.payload->'usage'->>'cached')::BIGINT, 0) AS cached_tokens,
    coalesce((r.payload->>'latency_us')::BIGINT, 0) AS latency_us
FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
WHERE r.type IN ('model_reply', 'reply_rejected', 'model_failed', 'model_switched', 'summary', 'derivation_replied')
    AND (r.payload->>'context_sha256') IS NOT NULL

-- Every request that was sent to a model, with any outcome, those of summaries and derivations included. `cost` is computed with current prices.
SELECT agent_id, life, seq, turn, step, recorded_at,
    make_timestamp(epoch_us(recorded_at))::DATE AS day,
    CASE type WHEN 'summary' THEN 'summary' WHEN 'reply_rejected' THEN coalesce(f_kind, 'reply')
        WHEN 'derivation_replied' THEN f_kind ELSE 'reply' END AS purpose,
    CASE type WHEN 'reply_rejected' THEN 'rejected' WHEN 'model_failed' THEN 'failed' WHEN 'model_switched' THEN 'failed'
        WHEN 'derivation_replied' THEN CASE WHEN coalesce(TRY(payload->>'$.fault'), '') = '' THEN 'ok' ELSE 'rejected' END
        ELSE 'ok' END AS outcome,
    CASE WHEN type IN ('model_failed', 'model_switched') THEN coalesce(f_kind, '') ELSE '' END AS failure,
    coalesce(TRY(payload->>'$.model'), '') AS model, TRY(payload->>'$.context_sha256') AS context_sha256,
    TRY((payload->>'$.context_bytes')::BIGINT) AS context_bytes,
    coalesce(TRY((payload->>'$.usage.prompt')::BIGINT), 0) AS prompt_tokens,
    coalesce(TRY((payload->>'$.usage.completion')::BIGINT), 0) AS completion_tokens,
    coalesce(f_tokens, 0) AS tokens,
    coalesce(TRY((payload->>'$.usage.cached')::BIGINT), 0) AS cached_tokens,
    cost_of(coalesce(TRY(payload->>'$.model'), ''), coalesce(TRY((payload->>'$.usage.prompt')::BIGINT), 0),
        coalesce(TRY((payload->>'$.usage.completion')::BIGINT), 0), coalesce(f_tokens, 0),
        coalesce(TRY((payload->>'$.usage.cached')::BIGINT), 0)) AS cost,
    coalesce(TRY((payload->>'$.latency_us')::BIGINT), 0) AS latency_us
FROM lived
WHERE type IN ('model_reply', 'reply_rejected', 'model_failed', 'model_switched', 'summary', 'derivation_replied') AND NOT erased
    AND f_asked

-- Every request that was sent to a model, with any outcome, those of summaries and derivations included. `cost` is computed with current prices.
-- `said` are the fields of the payload, which is parsed once for all of them: parsing is most of the time of a query.
SELECT agent_id, life, seq, turn, step, recorded_at,
    make_timestamp(epoch_us(recorded_at))::DATE AS day,
    CASE type WHEN 'summary' THEN 'summary' WHEN 'reply_rejected' THEN coalesce(f_kind, 'reply')
        WHEN 'derivation_replied' THEN f_kind ELSE 'reply' END AS purpose,
    CASE type WHEN 'reply_rejected' THEN 'rejected' WHEN 'model_failed' THEN 'failed' WHEN 'model_switched' THEN 'failed'
        WHEN 'derivation_replied' THEN CASE WHEN coalesce(said[8], '') = '' THEN 'ok' ELSE 'rejected' END
        ELSE 'ok' END AS outcome,
    CASE WHEN type IN ('model_failed', 'model_switched') THEN coalesce(f_kind, '') ELSE '' END AS failure,
    coalesce(said[1], '') AS model, said[2] AS context_sha256, TRY(said[3]::BIGINT) AS context_bytes,
    coalesce(TRY(said[4]::BIGINT), 0) AS prompt_tokens, coalesce(TRY(said[5]::BIGINT), 0) AS completion_tokens,
    coalesce(f_tokens, 0) AS tokens, coalesce(TRY(said[6]::BIGINT), 0) AS cached_tokens,
    cost_of(coalesce(said[1], ''), coalesce(TRY(said[4]::BIGINT), 0), coalesce(TRY(said[5]::BIGINT), 0),
        coalesce(f_tokens, 0), coalesce(TRY(said[6]::BIGINT), 0)) AS cost,
    coalesce(TRY(said[7]::BIGINT), 0) AS latency_us
FROM (
    SELECT *, TRY(json_extract_string(payload, ['$.model', '$.context_sha256', '$.context_bytes', '$.usage.prompt',
        '$.usage.completion', '$.usage.cached', '$.latency_us', '$.fault'])) AS said
    FROM lived
    WHERE type IN ('model_reply', 'reply_rejected', 'model_failed', 'model_switched', 'summary', 'derivation_replied')
        AND NOT erased AND f_asked
)

-- Records that are not sealed yet, with the derived columns that sealed files have (`store/sealed/derived_columns.py`).
-- Here these are computed from the payload, and only for queries that use them.
SELECT agent_id, seq, "commit", event_id, recorded_at, said_at, type, turn, step, cause, version, text, payload,
    CASE WHEN type IN ('model_reply', 'reply_rejected', 'model_failed', 'model_switched', 'summary', 'derivation_replied')
        THEN TRY((payload->>'$.usage.total')::BIGINT) END
        AS f_tokens,
    type IN ('model_reply', 'reply_rejected', 'model_failed', 'model_switched', 'summary', 'derivation_replied') AND contains(payload, '"context_sha256":"')
        AS f_asked,
    CASE type
        WHEN 'function_result' THEN CASE
            WHEN starts_with(payload, '{"erased":true') THEN NULL
            WHEN coalesce(TRY((payload->>'$.unknown')::BOOLEAN), false) THEN 'unknown'
            WHEN coalesce(TRY((payload->>'$.ok')::BOOLEAN), true) THEN 'ok' ELSE 'failed' END
        WHEN 'model_failed' THEN TRY(payload->>'$.failure')
        WHEN 'model_switched' THEN TRY(payload->>'$.failure')
        WHEN 'reply_rejected' THEN coalesce(TRY(payload->>'$.purpose'), 'reply')
        WHEN 'derivation_replied' THEN CASE WHEN starts_with(payload, '{"erased":true') THEN NULL ELSE TRY(payload->>'$.purpose') END
        WHEN 'turn_abandoned' THEN TRY(payload->>'$.reason')
        WHEN 'budget_exceeded' THEN TRY(payload->>'$.budget')
        WHEN 'system_alert' THEN coalesce(TRY(payload->>'$.source'), 'manual') END AS f_kind,
    CASE type WHEN 'function_result' THEN TRY(payload->>'$.name') END AS f_name,
    CASE type WHEN 'agent_configured' THEN TRY((payload->>'$.window')::BIGINT) END AS f_window,
    CASE type WHEN 'agent_configured' THEN TRY((payload->>'$.pressure_fraction')::DOUBLE) END AS f_fraction,
    {owed} AS f_owed
FROM fresh

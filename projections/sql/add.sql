-- Arrow batch `incoming` (the log's schema) to rows of `records`. A tombstone keeps its place and means nothing. The payload is
-- what our encoder wrote, in which a quote inside a string is escaped, so that a flag can be looked for as text.
INSERT INTO records SELECT
    agent_id, seq, "commit", event_id, recorded_at, said_at, type, turn, step, cause, version, text, payload,
    CASE WHEN starts_with(payload, '{"erased":true') THEN NULL ELSE CASE type
        WHEN 'memory_edited' THEN 'block:' || (payload->>'label')
        WHEN 'block_removed' THEN 'block:' || (payload->>'label')
        WHEN 'agent_configured' THEN 'config'
        WHEN 'summary' THEN 'summary'
        WHEN 'summary_expanded' THEN 'summary'
        WHEN 'model_reply' THEN CASE WHEN turn > 0 THEN 'reply' END
        WHEN 'heartbeats_paused' THEN 'pause'
        WHEN 'rules_applied' THEN 'rules'
        WHEN 'system_alert' THEN CASE WHEN contains(payload, '"source":"memory_pressure"') THEN 'warning' END
    END END,
    CASE WHEN type IN ('summary', 'summary_expanded') THEN (payload->>'kept_from')::BIGINT END,
    -- A CASE, not an IN: DuckDB makes a join of a long IN, which costs more than all the rest.
    CASE type WHEN 'user_message' THEN true WHEN 'model_reply' THEN true WHEN 'function_result' THEN true
        WHEN 'user_login' THEN true WHEN 'heartbeat' THEN true WHEN 'system_alert' THEN true
        WHEN 'approval_decided' THEN true
        WHEN 'context_trimmed' THEN true WHEN 'turns_hidden' THEN true WHEN 'reply_rethought' THEN true
        WHEN 'model_switched' THEN true WHEN 'reply_rejected' THEN contains(payload, '"shown":true')
        WHEN 'message_sent' THEN contains(payload, '"imported":true')
        ELSE false END,
    type IN ('user_message', 'message_sent') AND NOT starts_with(payload, '{"erased":true'),
    CASE WHEN starts_with(payload, '{"erased":true') THEN 0 ELSE CASE type
        WHEN 'archival_inserted' THEN 1 WHEN 'archival_deleted' THEN -1 ELSE 0 END END,
    CASE type WHEN 'model_reply' THEN figures[1]::BIGINT
        WHEN 'agent_configured' THEN (payload->>'window')::BIGINT
        WHEN 'model_switched' THEN nullif((payload->>'window')::BIGINT, 0) END,
    CASE type WHEN 'model_reply' THEN figures[2]::DOUBLE / figures[3]::DOUBLE
        WHEN 'agent_configured' THEN (payload->>'pressure_fraction')::DOUBLE END,
    CASE type WHEN 'model_reply' THEN figures[4]::BIGINT END,
    NULL, NULL,
    9223372036854775807
FROM (
    -- A long reply is read once for all its figures: each reading takes several times the memory of the reply.
    SELECT *, CASE type WHEN 'model_reply'
        THEN payload->>['$.usage.total', '$.usage.prompt', '$.context_bytes', '$.usage.cached'] END AS figures
    FROM incoming
)

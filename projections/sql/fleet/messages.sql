-- What user and agent said, imported conversations included. `said_at` is when: of an import the time that the file gives.
SELECT agent_id, life, seq, turn, step, recorded_at, coalesce(said_at, recorded_at) AS said_at,
    make_timestamp(epoch_us(coalesce(said_at, recorded_at)))::DATE AS day,
    CASE type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
    coalesce(TRY(payload->>'$.name'), '') AS name, coalesce(text, '') AS text,
    coalesce(TRY(payload->>'$.ref'), '') AS ref,
    coalesce(TRY((payload->>'$.imported')::BOOLEAN), false) AS imported
FROM lived WHERE type IN ('user_message', 'message_sent') AND NOT erased

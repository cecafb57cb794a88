-- Every summary, and every undoing of a summary (`expanded`).
SELECT agent_id, life, seq, turn, recorded_at, type = 'summary_expanded' AS expanded, coalesce(text, '') AS text,
    CASE type WHEN 'summary' THEN coalesce(TRY(payload->>'$.method'), 'model') END AS method,
    TRY((payload->>'$.covers_from')::BIGINT) AS covers_from, TRY((payload->>'$.covers_to')::BIGINT) AS covers_to,
    TRY((payload->>'$.kept_from')::BIGINT) AS kept_from, coalesce(TRY((payload->>'$.hidden')::BIGINT), 0) AS hidden,
    coalesce(TRY((payload->>'$.total')::BIGINT), 0) AS total,
    coalesce(TRY((payload->>'$.summarized')::BIGINT), 0) AS summarized
FROM lived WHERE type IN ('summary', 'summary_expanded') AND NOT erased

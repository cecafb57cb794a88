-- needs: derived_records, said
-- Importance of each message, from 1 to 10. `rater` is the model that rated it, or the rule: 2 points, and more for
-- names, numbers, plans, feelings, the first person and length; a greeting has 1.
WITH rated AS (
    SELECT agent_id, as_of, seq AS record, deriver, unnest((payload->'ratings')::JSON[]) AS rating
    FROM derived_records WHERE type = 'importance_rated' AND in_use AND NOT withdrawn
),
by_model AS (
    SELECT agent_id, as_of, (rating->>0)::BIGINT AS seq, arg_max((rating->>1)::BIGINT, record) AS importance,
        arg_max(deriver, record) AS rater
    FROM rated GROUP BY 1, 2, 3
),
by_rule AS (
    SELECT agent_id, as_of, seq, lower(text) AS low, text FROM said WHERE ended > as_of
)
SELECT r.agent_id, r.as_of, r.seq,
    coalesce(m.importance, CASE
        WHEN length(trim(r.low)) = 0
            OR regexp_matches(r.low, '^\W*(hi|hello|hey|good (morning|evening|night|day)|thanks?|thank you|ok(ay)?|yes|no|bye|goodbye|sure|great|cool|nice)\b\W*(\w+\W*){0,2}$')
            THEN 1
        ELSE least(10, 2
            + (regexp_matches(r.text, '[\p{L}\p{N},;] \p{Lu}\p{Ll}'))::INTEGER
            + (regexp_matches(r.low, '\d'))::INTEGER
            + 2 * (regexp_matches(r.low, '\b(plan|plans|planning|going to|will|want to|decided|promise|goal|dream|hope to|tomorrow|next (week|month|year))\b'))::INTEGER
            + 2 * (regexp_matches(r.low, '\b(love|loved|hate|afraid|scared|happy|sad|proud|angry|worried|excited|miss|lonely|grateful|sorry|died|death|born|married|wedding|divorce|pregnant|cancer|hospital|accident|fired|hired|promoted|graduated|moved|broke up|engaged)\b'))::INTEGER
            + (regexp_matches(r.low, '\b(i|i''m|i''ve|my|me|we|our)\b'))::INTEGER
            + (length(r.text) > 160)::INTEGER)
    END)::BIGINT AS importance,
    coalesce(m.rater, 'rules-1') AS rater
FROM by_rule r LEFT JOIN by_model m ON m.agent_id = r.agent_id AND m.as_of = r.as_of AND m.seq = r.seq

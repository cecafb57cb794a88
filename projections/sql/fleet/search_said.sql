-- What agents have said and heard, for a search in many agents: see `searched_texts.py`. The same rows as `search_talk`.
SELECT agent_id, 'said' AS part, seq, 0::BIGINT AS number, if(type = 'user_message', 'user', 'assistant') AS kind,
    epoch_us(coalesce(said_at, recorded_at)) AS time, coalesce(payload->>'name', '') AS name,
    coalesce(text, '') AS text, coalesce(payload->>'ref', '') AS ref, NULL::VARCHAR AS more
FROM current_records WHERE said

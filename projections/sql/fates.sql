-- Each input: the number of its records, and if its turn was answered or ended.
SELECT input.event_id::VARCHAR AS event_id,
    count(*) AS times,
    bool_or(coalesce(turn.answered, false)) AS answered,
    bool_or(coalesce(turn.ended, false)) AS ended
FROM records AS input
LEFT JOIN (
    SELECT agent_id, turn,
        bool_or(type IN ('message_sent', 'model_failed')) AS answered,
        bool_or(
            type IN ('model_reply', {stops})
        ) AS ended
    FROM records
    GROUP BY agent_id, turn
) AS turn ON turn.agent_id = input.agent_id AND turn.turn = input.turn
WHERE input.event_id IN (SELECT event_id::UUID FROM inputs)
GROUP BY input.event_id

-- What an agent needs to go on when it is activated, in one pass over its records: where it stands (`standing`), the turns
-- that are open (`turns`), every configuration (`configurations`), and whether a timer was ever set. One row for the life
-- that goes on, and one for all that have ended; the lists are in no order, and NULL where they are empty. Planning is
-- nearly all that such a question costs: four projections say the same for four times as much. A law holds them together.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.ended > w.as_of AS living, r.turn, r.seq, r.step, r.type,
        r.type IN ('user_message', 'user_login', 'heartbeat', 'system_alert')
            AND NOT contains(r.payload, '"imported":true') AND NOT starts_with(r.payload, '{"erased":true') AS input,
        CASE r.type WHEN 'model_reply' THEN json_array_length(r.payload, '$.calls')
            WHEN 'function_result' THEN -1 END AS owed,
        CASE r.slot WHEN 'config' THEN {'seq': r.seq, 'text': r.text, 'payload': r.payload} END AS configuration
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of
),
sums AS (
    SELECT agent_id, as_of, living, turn, max(seq) AS head, bool_or(type = 'agent_deleted') AS deleted,
        bool_or(type = 'timer_set') AS timed, bool_or(input AND step = 0) AS opened,
        max(seq) FILTER (input) AS last_input, max(seq) FILTER (type = 'model_reply') AS last_reply, sum(owed) AS owed,
        bool_or(type IN ('model_failed', 'turn_cancelled', 'turn_abandoned', 'budget_exceeded')) AS stopped,
        list(configuration) FILTER (configuration IS NOT NULL) AS configurations
    FROM mine GROUP BY agent_id, as_of, living, turn
)
SELECT agent_id, as_of, living, max(head) AS head, max(turn) AS turn, bool_or(deleted) AS deleted,
    bool_or(timed) AS timed,
    list(turn) FILTER (turn > 0 AND opened AND NOT stopped
        AND (last_input > coalesce(last_reply, 0) OR owed > 0)) AS open_turns,
    flatten(list(configurations) FILTER (configurations IS NOT NULL)) AS configurations
FROM sums GROUP BY agent_id, as_of, living

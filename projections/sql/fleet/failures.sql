-- Failures: functions that failed or whose outcome is unknown, models that could not be called, rejected replies,
-- abandoned turns, exceeded budgets. A turn that was open at a fork point is closed in the fork, with its calls: nothing
-- failed there, because the parent goes on with that turn.
WITH closed_in_fork AS (
    SELECT agent_id, life, turn FROM lived WHERE type = 'turn_abandoned' AND f_kind = 'forked'
)
SELECT agent_id, life, seq, turn, step, recorded_at,
    make_timestamp(epoch_us(recorded_at))::DATE AS day,
    CASE type WHEN 'function_result' THEN 'function' WHEN 'model_failed' THEN 'model' WHEN 'model_switched' THEN 'model' WHEN 'reply_rejected' THEN 'reply'
        WHEN 'turn_abandoned' THEN 'turn' ELSE 'budget' END AS what,
    f_kind AS kind, coalesce(f_name, '') AS name,
    coalesce(text, '') AS text
FROM lived ANTI JOIN closed_in_fork USING (agent_id, life, turn)
WHERE type IN ('function_result', 'model_failed', 'model_switched', 'reply_rejected', 'turn_abandoned', 'budget_exceeded') AND NOT erased
    AND (type <> 'function_result' OR f_kind <> 'ok')

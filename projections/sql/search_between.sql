-- One page of what had been said up to a seq, in the incarnation of that seq, between two times, in order; `total`: rows
-- of all pages. A page without rows is one row without a seq. Parameters after the agents and as_of: the agent and as_of
-- again as plain values, the times (microseconds, from inclusive, to exclusive), rows before the page, rows of the page.
WITH said AS (
    SELECT r.seq, epoch_us(coalesce(r.said_at, r.recorded_at)) AS time,
        CASE r.type WHEN 'user_message' THEN 'user' ELSE 'assistant' END AS role,
        coalesce(r.payload->>'name', '') AS name, coalesce(r.text, '') AS text, coalesce(r.payload->>'ref', '') AS ref
    FROM records r WHERE r.agent_id = $3 AND r.said AND r.seq <= $4 AND r.ended > $4
),
between_times AS (SELECT * FROM said WHERE time >= $5 AND time < $6),
page AS (SELECT * FROM between_times ORDER BY time, seq LIMIT $8 OFFSET $7)
SELECT page.*, counted.total FROM (SELECT count(*) AS total FROM between_times) AS counted LEFT JOIN page ON true
ORDER BY page.time, page.seq

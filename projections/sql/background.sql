-- needs: turns
-- The background agent of the agent: how far it was told what was said here (`cursor`), which records it is told next
-- (`upto`, up to the input of the oldest open turn), how many turns and messages these are, and when it is told. Turns
-- that the background agent brought about, by its own messages or through others, do not count, and what a rerun did is
-- not told; nor is what a fork took over from its parent, which tells it.
WITH mine AS (
    SELECT r.agent_id, w.as_of, r.seq, r.turn, r.step, r.type, r.cause, r.recorded_at, epoch_us(r.recorded_at) AS at_us, r.text,
        r.payload
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE (r.type IN ('agent_configured', 'agent_forked', 'agent_message_sent', 'agent_message_received',
                'agent_reply_received', 'user_message', 'message_sent')
            OR (r.step = 0 AND r.turn > 0 AND r.type IN ({inputs})))
        AND NOT starts_with(r.payload, '{"erased":true')
),
configured AS (
    SELECT agent_id, as_of, seq, recorded_at, coalesce(payload->>'background', '') AS name,
        lag(coalesce(payload->>'background', ''), 1, '') OVER (PARTITION BY agent_id, as_of ORDER BY seq) AS before,
        coalesce((payload->>'background_turns')::BIGINT, 5) AS every_turns,
        coalesce((payload->>'background_idle')::BIGINT, 10) AS idle_minutes
    FROM mine WHERE type = 'agent_configured'
),
named AS (
    SELECT agent_id, as_of, arg_max(name, seq) AS name, arg_max(every_turns, seq) AS every_turns,
        arg_max(idle_minutes, seq) AS idle_minutes, max(seq) FILTER (name <> before) AS since,
        arg_max(recorded_at, seq) FILTER (name <> before) AS recorded_at
    FROM configured GROUP BY 1, 2 HAVING arg_max(name, seq) <> ''
),
-- Agents of a tenant have its name and a `~` before theirs.
watched AS (
    SELECT n.*, CASE WHEN strpos(n.agent_id, '~') BETWEEN 1 AND length(n.agent_id) - 1
            THEN n.agent_id[:strpos(n.agent_id, '~')] ELSE '' END || n.name AS other
    FROM named n
),
-- What the agent is told is committed outside of turns. Such a message that was erased does not say any more how far it
-- told, but that was up to the oldest turn that was open then: the words before it are not told again.
erased AS (
    SELECT r.agent_id, w.as_of, r.seq, r.recorded_at
    FROM wanted w JOIN records r ON r.agent_id = w.agent_id AND r.seq <= w.as_of AND r.ended > w.as_of
    WHERE r.type = 'agent_message_sent' AND r.turn = 0 AND starts_with(r.payload, '{"erased":true')
),
erased_to AS (
    SELECT e.agent_id, e.as_of, coalesce(min(t.opened_seq), e.seq) - 1 AS to_seq
    FROM erased e LEFT JOIN turns t ON t.agent_id = e.agent_id AND t.as_of = e.as_of AND t.opened_seq < e.seq
        AND (t.status = 'open' OR t.ended_at > e.recorded_at)
    GROUP BY e.agent_id, e.as_of, e.seq
),
cursors AS (
    SELECT v.*, greatest(v.since, (SELECT coalesce(max(e.to_seq), 0) FROM erased_to e
            WHERE e.agent_id = v.agent_id AND e.as_of = v.as_of), (SELECT coalesce(max(CASE WHEN m.type = 'agent_forked' THEN m.seq
                WHEN m.payload->>'to' = v.other THEN (m.payload->>'to_seq')::BIGINT END), 0)
            FROM mine m WHERE m.agent_id = v.agent_id AND m.as_of = v.as_of
                AND m.type IN ('agent_forked', 'agent_message_sent'))) AS "cursor"
    FROM watched v
),
-- Messages of others because of which a turn ran: it was opened by one, or by the answer to a question asked for one.
received AS (
    SELECT agent_id, as_of, seq, turn, payload->>'sender' AS sender, payload->>'hops' AS hops
    FROM mine WHERE type = 'agent_message_received'
),
origins AS (
    SELECT agent_id, as_of, turn, sender, hops FROM received
    UNION ALL SELECT m.agent_id, m.as_of, m.turn, m.payload->>'sender', r.hops FROM mine m
        LEFT JOIN received r ON r.agent_id = m.agent_id AND r.as_of = m.as_of AND r.seq = (m.payload->>'task')::BIGINT
    WHERE m.type = 'agent_reply_received'
),
repeated AS (
    SELECT DISTINCT agent_id, as_of, turn FROM mine
    WHERE cause IS NOT NULL AND step = 0 AND turn > 0 AND type IN ({inputs})
),
later AS (
    SELECT c.agent_id, c.as_of, t.turn, t.opened_seq, t.status, epoch_us(t.ended_at) AS ended_us, o.hops,
        coalesce(bool_or(o.sender = c.other OR list_contains(o.hops::VARCHAR[], c.name))
            OVER (PARTITION BY c.agent_id, c.as_of, t.turn), false) AS own
    FROM cursors c JOIN turns t ON t.agent_id = c.agent_id AND t.as_of = c.as_of AND t.opened_seq > c."cursor"
        LEFT JOIN origins o ON o.agent_id = t.agent_id AND o.as_of = t.as_of AND o.turn = t.turn
        ANTI JOIN repeated p ON p.agent_id = t.agent_id AND p.as_of = t.as_of AND p.turn = t.turn
),
counted AS (
    SELECT agent_id, as_of, count(DISTINCT turn) FILTER (NOT own AND status <> 'open') AS turns,
        max(ended_us) FILTER (NOT own) AS ended_us, arg_max(hops, length(hops)) FILTER (NOT own) AS hops
    FROM later GROUP BY 1, 2
),
opened AS (
    SELECT agent_id, as_of, min(opened_seq) AS opened_seq FROM turns WHERE status = 'open' GROUP BY 1, 2
),
-- What is said in no turn of `later` is told, too: an import, or the end of a turn that began before the cursor.
said AS (
    SELECT c.agent_id, c.as_of, m.seq, m.at_us, l.own IS DISTINCT FROM true AS wakes
    FROM cursors c JOIN mine m ON m.agent_id = c.agent_id AND m.as_of = c.as_of AND m.seq > c."cursor"
        LEFT JOIN opened o ON o.agent_id = c.agent_id AND o.as_of = c.as_of
        LEFT JOIN (SELECT DISTINCT agent_id, as_of, turn, opened_seq, own FROM later) l
            ON l.agent_id = c.agent_id AND l.as_of = c.as_of AND l.turn = m.turn AND l.opened_seq <= m.seq
        ANTI JOIN repeated p ON p.agent_id = m.agent_id AND p.as_of = m.as_of AND p.turn = m.turn
    WHERE m.type IN ('user_message', 'message_sent') AND m.text <> '' AND m.seq < coalesce(o.opened_seq, m.seq + 1)
),
sums AS (
    SELECT agent_id, as_of, max(seq) AS upto, count(*) AS messages, count(*) FILTER (wakes) AS waking,
        max(at_us) FILTER (wakes) AS at_us
    FROM said GROUP BY 1, 2
)
SELECT c.agent_id, c.as_of, c.since AS seq, c.recorded_at, c.other, c.every_turns, c.idle_minutes, c."cursor",
    coalesce(s.upto, c."cursor") AS upto, coalesce(n.turns, 0) AS turns, coalesce(s.messages, 0) AS messages,
    least(CASE WHEN c.every_turns > 0 AND n.turns >= c.every_turns AND s.messages > 0 THEN n.ended_us END,
        CASE WHEN c.idle_minutes > 0 AND s.waking > 0 AND o.opened_seq IS NULL
            THEN greatest(s.at_us, n.ended_us) + c.idle_minutes * 60000000 END) AS due_us, n.hops
FROM cursors c LEFT JOIN counted n ON n.agent_id = c.agent_id AND n.as_of = c.as_of
    LEFT JOIN opened o ON o.agent_id = c.agent_id AND o.as_of = c.as_of
    LEFT JOIN sums s ON s.agent_id = c.agent_id AND s.as_of = c.as_of

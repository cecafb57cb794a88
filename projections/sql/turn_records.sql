-- needs: turns, open_turns
-- The records of open turns, which are read to finish these turns after a crash.
SELECT r.agent_id, t.as_of, r.seq, r.turn, r.step, r.type, r.event_id, r.recorded_at, r.text, r.payload
FROM open_turns t JOIN records r ON r.agent_id = t.agent_id AND r.turn = t.turn AND r.seq <= t.as_of
    AND r.ended > t.as_of
ORDER BY r.seq

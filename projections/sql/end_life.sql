-- The agent $1 was created again at seq $2: what came before belongs to a life that has ended.
UPDATE records SET ended = $2 WHERE agent_id = $1 AND seq < $2 AND ended > $2

-- Search documents of what had been said up to a seq, in all incarnations. Parameters after the agents and as_of: the
-- agent's key in `documents`, and as_of again.
SELECT seq, time, role, name, text, ref, linked, words, stems FROM documents WHERE agent = $3 AND seq <= $4

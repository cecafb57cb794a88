-- needs: recall_memory
-- BM25 (k1 0.9, b 0.4) of the stems over what had been said by then. A document is a message, its speaker and the words
-- of the message before it, which help to rank it; a result has a stem of the query in its own words, or holds the query
-- word for word, and such results come first. Parameters after the agents and as_of: the stems, the query, and the first row and number of rows of the page.
WITH docs AS (
    SELECT m.*, d.words, length($4) > 0 AND contains(lower(m.text), lower($4)) AS verbatim
    FROM recall_memory m JOIN documents d ON d.agent_id = m.agent_id AND d.seq = m.seq
),
size AS (SELECT count(*) AS n, greatest(avg(words), 1) AS words FROM docs),
hits AS (
    SELECT p.seq, p.stem, p.n, p.own, d.words FROM postings p JOIN docs d ON d.agent_id = p.agent_id AND d.seq = p.seq
    WHERE p.stem IN (SELECT unnest($3::VARCHAR[]))
),
rarity AS (
    SELECT h.stem, ln(1 + (max(s.n) - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM hits h, size s GROUP BY h.stem
),
ranked AS (
    SELECT h.seq, sum(r.idf * h.n * 1.9 / (h.n + 0.9 * (0.6 + 0.4 * h.words / s.words))) AS score,
        bool_or(h.own) AS own
    FROM hits h JOIN rarity r ON r.stem = h.stem, size s GROUP BY h.seq
),
scored AS (
    SELECT d.*, coalesce(r.score, 0) + CASE WHEN d.verbatim THEN 100 ELSE 0 END AS score,
        coalesce(r.own, false) OR d.verbatim AS found
    FROM docs d LEFT JOIN ranked r ON r.seq = d.seq
)
SELECT seq, epoch_us(time) AS time, role, name, text, ref, round(score, 4) AS score, count(*) OVER () AS total
FROM scored WHERE found
ORDER BY score DESC, seq LIMIT $6 OFFSET $5

-- Ranks what had been said by then. Four things make a score: BM25 (k1 0.9, b 0.4) of the stems in its document, as a part of
-- the best; how near its meaning comes to the query, where somebody knows, between the farthest and the nearest, half and
-- half; 0.5 if the query names who says it; 0.3 of the better of the two that were said right before and after it.
-- What holds the query word for word comes first. A result has a stem of the query in its own words, or answers a
-- question with one; or is among the 20 nearest in meaning; or is said by whom the query names, beside what has such
-- words, and among the 20 best. Names of speakers are no such words, unless the query has nothing else.
-- Parameters after the agents and as_of: 3 the agent, 4 the query and 5 phrases in lower case, which make a result
-- wherever they occur, and of which each must; 6 the stems of the query, 7 and 8 seqs and their cosines, 9 roles (none:
-- any), 10 and 11 from (inclusive) and to (exclusive) in microseconds UTC, 12 and 13 the first row and number of rows.
WITH docs AS MATERIALIZED (
    SELECT r.seq, r.text, d.time, d.role, d.name, d.ref, d.linked, d.words
    FROM records r LEFT JOIN documents d ON d.seq = r.seq AND d.agent_id = $3
    WHERE r.said AND r.agent_id = $3 AND r.seq <= $2[1] AND r.ended > $2[1]
),
size AS (SELECT count(*) AS n, 0.36 / greatest(avg(words), 1) AS slope, count(*) - count(words) AS missing FROM docs),
hits AS MATERIALIZED (
    SELECT p.seq, p.stem, p.n, p.own, p.speaker, d.words FROM postings p JOIN docs d ON d.seq = p.seq
    WHERE p.agent_id = $3 AND list_contains($6::VARCHAR[], p.stem)
),
rarity AS (
    SELECT h.stem, ln(1 + (any_value(s.n) - count(*) + 0.5) / (count(*) + 0.5)) AS idf, any_value(s.slope) AS slope,
        bool_or(h.speaker) AS named
    FROM hits h, size s GROUP BY h.stem
),
worded AS (
    SELECT h.seq, sum(r.idf * h.n * 1.9 / (h.n + 0.54 + r.slope * h.words)) AS score, bool_or(h.own) AS own,
        bool_or(h.own AND NOT r.named) AS telling, bool_or(NOT r.named) AS told, bool_or(h.speaker) AS named
    FROM hits h JOIN rarity r ON r.stem = h.stem GROUP BY h.seq
),
met AS (SELECT unnest($7::BIGINT[]) AS seq, unnest($8::DOUBLE[]) AS cosine),
fused AS (
    SELECT d.seq, coalesce(d.linked, false) AS linked, contains(lower(d.text), $4) AND $4 <> '' AS verbatim,
        coalesce(w.own OR w.named, false) AS own, coalesce(w.telling, false) AS telling,
        coalesce(w.told, false) AS told, coalesce(w.named, false) AS named,
        (len($9::VARCHAR[]) = 0 OR list_contains($9::VARCHAR[], d.role)) AND d.time >= $10 AND d.time < $11
            AND len(list_filter($5::VARCHAR[], lambda phrase: NOT contains(lower(d.text), phrase))) = 0 AS fits,
        coalesce(w.score / max(w.score) OVER (), 0) AS words, m.cosine,
        coalesce((m.cosine - min(m.cosine) OVER ()) / nullif(max(m.cosine) OVER () - min(m.cosine) OVER (), 0), 0) AS meaning
    FROM docs d LEFT JOIN worded w ON w.seq = d.seq LEFT JOIN met m ON m.seq = d.seq
),
based AS (
    SELECT *, CASE WHEN len($7::BIGINT[]) = 0 THEN words ELSE 0.5 * words + 0.5 * meaning END
        + CASE WHEN named THEN 0.5 ELSE 0 END AS base
    FROM fused
),
beside AS (
    SELECT *, base + 0.3 * greatest(
            CASE WHEN linked THEN lag(base, 1, 0) OVER said ELSE 0 END,
            lead(CASE WHEN linked THEN base ELSE 0 END, 1, 0) OVER said
        ) + CASE WHEN verbatim THEN 2 ELSE 0 END AS score,
        told OR (linked AND lag(told, 1, false) OVER said) OR lead(linked AND told, 1, false) OVER said AS near_told
    FROM based WINDOW said AS (ORDER BY seq)
),
placed AS (
    SELECT *, row_number() OVER (ORDER BY fits DESC, round(score, 6) DESC, seq) AS place,
        cosine IS NOT NULL AND row_number() OVER (ORDER BY fits DESC, cosine DESC NULLS LAST, seq) <= 20 AS near
    FROM beside
),
found AS (
    SELECT seq, score, place, count(*) OVER () AS total FROM placed
    WHERE fits AND (
        len($5::VARCHAR[]) > 0 OR verbatim OR telling OR near OR (named AND near_told AND place <= 20)
        OR (own AND (SELECT count(*) FROM rarity WHERE named) = len($6::VARCHAR[]))
    )
    ORDER BY place LIMIT $13 OFFSET $12
)
SELECT d.seq, d.time, d.role, d.name, d.text, d.ref, round(f.score, 4) AS score, f.total,
    (SELECT missing FROM size) AS missing
FROM found f JOIN docs d ON d.seq = f.seq
ORDER BY f.place

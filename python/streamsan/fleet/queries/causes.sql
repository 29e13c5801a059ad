-- A row for each cause (the wait that is missing between two places): its state, how many findings it explains, on how many ranks
-- and hosts, since when, and the lines that mend it.
--
-- Asks the views `findings`, `traces` and `asked`, and means by state, ranks and hosts the same as findings.sql. Broken rules have
-- no cause. Runs unchanged on DuckDB and Spark.
WITH seen AS (
    SELECT *, CONCAT(COALESCE(job, ''), '|', COALESCE(machine, '')) AS place,
           REGEXP_REPLACE(COALESCE(trace, ''), '/saved-[0-9]+-[^/]*$', '') AS recording
    FROM findings
    WHERE standing <> 'suppressed' AND cause IS NOT NULL
),
span AS (
    SELECT cause, MIN(date) AS first_seen, MAX(date) AS last_seen, COUNT(DISTINCT fingerprint) AS findings
    FROM seen
    GROUP BY cause
),
latest AS (
    SELECT seen.cause,
           COUNT(DISTINCT CONCAT(place, '|', recording, '|', CAST(pid AS STRING))) AS ranks,
           COUNT(DISTINCT place) AS hosts
    FROM seen
    JOIN span ON seen.cause = span.cause AND seen.date = span.last_seen
    GROUP BY seen.cause
),
checked AS (
    SELECT DISTINCT traces.program
    FROM traces CROSS JOIN asked
    WHERE traces.date >= asked.since AND traces.status = 'ok'
),
numbered AS (
    SELECT seen.*,
           ROW_NUMBER() OVER (
               PARTITION BY seen.cause
               ORDER BY seen.date DESC, CASE WHEN seen.cause_tried THEN 0 ELSE 1 END, seen.job, place,
                        COALESCE(seen.trace, ''), seen.pid, seen.fingerprint, seen.access_from, seen.previous_from
           ) AS number
    FROM seen
)
SELECT one.cause,
       CASE WHEN span.first_seen >= asked.since THEN 'new'
            WHEN span.last_seen >= asked.since THEN 'known'
            WHEN checked.program IS NOT NULL THEN 'gone'
            ELSE 'unchecked' END AS state,
       one.cause_kind, one.cause_missing, one.cause_after, one.cause_before, one.cause_mend, one.cause_tried,
       span.findings, latest.ranks, latest.hosts, span.first_seen, span.last_seen, one.fingerprint, one.program
FROM numbered AS one
JOIN span ON one.cause = span.cause
JOIN latest ON one.cause = latest.cause
LEFT JOIN checked ON one.program = checked.program
CROSS JOIN asked
WHERE one.number = 1
ORDER BY CASE WHEN span.first_seen >= asked.since THEN 0 WHEN span.last_seen >= asked.since THEN 1 ELSE 2 END,
         latest.ranks DESC, one.cause

-- A row for each fingerprint: its state, on how many ranks and hosts, since when, and one finding that stands for it.
--
-- Asks the views `findings` and `traces` (the dataset's folders of these names, with the columns `date` and `job` of their
-- partitions as text) and `asked`, one row with `since`. Runs unchanged on DuckDB and Spark.
--
-- state: new        first seen on `since` or later
--        known      seen before it, and since
--        gone       not seen since, though the same program was read whole since
--        unchecked  not seen since, and nothing of this program was read whole since
-- ranks, hosts: of the last day on which it was seen. A rank is a process; what `--keep-last` saved of it is no other one.
WITH seen AS (
    SELECT *, CONCAT(COALESCE(job, ''), '|', COALESCE(machine, '')) AS place,
           REGEXP_REPLACE(COALESCE(trace, ''), '/saved-[0-9]+-[^/]*$', '') AS recording
    FROM findings
    WHERE standing <> 'suppressed'
),
span AS (
    SELECT fingerprint, MIN(date) AS first_seen, MAX(date) AS last_seen
    FROM seen
    GROUP BY fingerprint
),
latest AS (
    SELECT seen.fingerprint,
           COUNT(DISTINCT CONCAT(place, '|', recording, '|', CAST(pid AS STRING))) AS ranks,
           COUNT(DISTINCT place) AS hosts,
           COUNT(DISTINCT job) AS jobs,
           SUM(occurrences) AS occurrences
    FROM seen
    JOIN span ON seen.fingerprint = span.fingerprint AND seen.date = span.last_seen
    GROUP BY seen.fingerprint
),
checked AS (
    SELECT DISTINCT traces.program
    FROM traces CROSS JOIN asked
    WHERE traces.date >= asked.since AND traces.status = 'ok'
),
-- The surest finding of the last day; of equal ones always the same.
numbered AS (
    SELECT seen.*,
           ROW_NUMBER() OVER (
               PARTITION BY seen.fingerprint
               ORDER BY seen.date DESC,
                        CASE seen.confidence WHEN 'certain' THEN 0 WHEN 'likely' THEN 1 ELSE 2 END,
                        seen.job, place, COALESCE(seen.trace, ''), seen.pid, seen.access_from, seen.previous_from
           ) AS number
    FROM seen
)
SELECT one.fingerprint,
       CASE WHEN span.first_seen >= asked.since THEN 'new'
            WHEN span.last_seen >= asked.since THEN 'known'
            WHEN checked.program IS NOT NULL THEN 'gone'
            ELSE 'unchecked' END AS state,
       one.cause, one.hazard, one.kind, one.confidence,
       latest.ranks, latest.hosts, latest.jobs, CAST(latest.occurrences AS BIGINT) AS occurrences,
       span.first_seen, span.last_seen,
       one.job, one.machine, one.rank, one.trace, one.pid, one.program, one.arguments,
       one.access_call, one.access_kernel, one.access_operator, one.access_stream,
       one.access_function, one.access_file, one.access_line,
       one.previous_call, one.previous_kernel, one.previous_operator, one.previous_stream,
       one.previous_function, one.previous_file, one.previous_line,
       one.memory_kind, one.memory_size, one.memory_call, one.memory_file, one.memory_line,
       one.missing, one.mend_cuda, one.mend_torch, one.doubts, one.rule, one.rule_text
FROM numbered AS one
JOIN span ON one.fingerprint = span.fingerprint
JOIN latest ON one.fingerprint = latest.fingerprint
LEFT JOIN checked ON one.program = checked.program
CROSS JOIN asked
WHERE one.number = 1
ORDER BY CASE WHEN span.first_seen >= asked.since THEN 0 WHEN span.last_seen >= asked.since THEN 1 ELSE 2 END,
         latest.ranks DESC, one.fingerprint

-- A row for each day and job: how many traces there are, how many were read whole, how many are a part of their run (it goes on, or
-- its end was kept), how many have findings.
--
-- Asks the view `traces`. Runs unchanged on DuckDB and Spark.
SELECT date, job,
       COUNT(*) AS traces,
       CAST(SUM(CASE WHEN status = 'ok' THEN 1 ELSE 0 END) AS BIGINT) AS read_whole,
       CAST(SUM(CASE WHEN status = 'part' THEN 1 ELSE 0 END) AS BIGINT) AS in_part,
       CAST(SUM(CASE WHEN findings > 0 THEN 1 ELSE 0 END) AS BIGINT) AS with_findings,
       COUNT(DISTINCT machine) AS hosts,
       CAST(SUM(bytes) AS BIGINT) AS bytes
FROM traces
GROUP BY date, job
ORDER BY date, job

-- A row for each trace that was not read whole: what is known of why.
--
-- status: damaged     analysed up to where it is readable
--         unreadable  not a trace, or of another format version
--         failed      could not be fetched, or the analyzer did not survive it
-- Asks the view `traces`. Runs unchanged on DuckDB and Spark.
SELECT date, job, machine, rank, trace, status, error, attempts, bytes
FROM traces
WHERE status <> 'ok'
ORDER BY date, job, machine, trace

-- A row for each trace that was not read whole: what is known of why.
--
-- status: damaged     analysed up to where it is readable
--         missing     segments of the recording are missing; the others were analysed
--         unreadable  not a trace, or of another format version
--         failed      could not be fetched, or the analyzer did not survive it
-- Recordings that go on, and those of which the end was kept on purpose ('part'), are not among them.
-- Asks the view `traces`. Runs unchanged on DuckDB and Spark.
SELECT date, job, machine, rank, trace, status, error, attempts, bytes
FROM traces
WHERE status NOT IN ('ok', 'part')
ORDER BY date, job, machine, trace

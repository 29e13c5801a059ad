"""Many traces of many machines: checked on Ray or on this machine, kept as a Parquet dataset, queried with SQL.

    pip install 'FILE.whl[fleet]'    # the wheel of scripts/package; [fleet,ray] for --engine ray
    streamsan fleet check s3://bucket/traces --out s3://bucket/races
    streamsan fleet report s3://bucket/races

The files follow the data: `sources` (which traces, in which tasks; of those in segments with `recordings`), `task` (one task on a
worker), `dataset` (its rows, written once), `engines` (who runs tasks), `check` (the driver), `report` and `page` (the answers),
`queries/` (the questions, in SQL).
"""

"""answers.py DATASET: asks every question of `streamsan fleet report` on DuckDB and, with the same files, on Spark in this process.

Owns nothing but the comparison. Prints the number of rows of each question as JSON; ends with an error where the answers differ.
"""
import json
import sys

from pyspark.sql import SparkSession

from streamsan.fleet import report

dataset = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    # For twenty rows: one partition, and no code generated for it.
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    # Names of partitions are text: a job '007' stays one.
    .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    .getOrCreate()
)
for table in ("findings", "traces"):
    spark.read.option("mergeSchema", "true").parquet(f"{dataset}/{table}").createOrReplaceTempView(table)
counts = {}
for since in (None, *sys.argv[2:]):
    answers = report.answers(dataset, since)
    spark.sql(f"SELECT '{answers['since']}' AS since").createOrReplaceTempView("asked")
    for question in report.QUESTIONS:
        rows = [row.asDict() for row in spark.sql(report.query(question)).collect()]
        if rows != answers[question]:
            sys.exit(f"{question} since {answers['since']}: Spark {rows}\nDuckDB {answers[question]}")
        counts[f"{question} {answers['since']}"] = len(rows)
print(json.dumps(counts))

#!/usr/bin/env python3
"""Keeps what Tidemark sends in a SQLite file, one JSON record a line on standard input:

    mosquitto_sub -h BROKER -V 5 -q 1 -c -i features -t 'PREFIX/v1/GATEWAY/#' | consumer.py FILE.db

Table revision has every result as it was received; view current has the one that
stands for each window, the highest (generation, revision)."""
import datetime, json, sqlite3, sys

KEY = "gateway, asset, lifecycle, sensor, feature, version, window_start, window_end"

def open_db(path):
    db = sqlite3.connect(path)
    db.execute(f"CREATE TABLE IF NOT EXISTS revision ({KEY}, generation INTEGER, revision INTEGER, status TEXT,"
               f" result TEXT, received_at TEXT, PRIMARY KEY ({KEY}, generation, revision))")
    db.execute(f"CREATE TABLE IF NOT EXISTS closed ({KEY}, generation INTEGER, revision INTEGER, PRIMARY KEY ({KEY}, generation))")
    db.execute(f"CREATE VIEW IF NOT EXISTS current AS SELECT * FROM (SELECT *, row_number() OVER ("
               f"PARTITION BY {KEY} ORDER BY generation DESC, revision DESC) AS place FROM revision) WHERE place = 1")
    return db

def take(db, record, received_at):
    key = [record.get(name) for name in KEY.split(", ")]
    if record.get("type") == "feature":    # what is there already came again: ignored
        row = key + [record["generation"], record["revision"], record["status"], json.dumps(record), received_at]
        db.execute(f"INSERT OR IGNORE INTO revision VALUES ({', '.join('?' * len(row))})", row)
    elif record.get("type") == "closed":   # no more revisions in this generation
        row = key + [record["generation"], record["revision"]]
        db.execute(f"INSERT OR IGNORE INTO closed VALUES ({', '.join('?' * len(row))})", row)

if __name__ == "__main__":
    db = open_db(sys.argv[1])
    for line in sys.stdin:
        sent = json.loads(line)
        for record in sent if isinstance(sent, list) else [sent]:    # an uplink with batch sends lists
            take(db, record, datetime.datetime.now(datetime.timezone.utc).isoformat())
        db.commit()

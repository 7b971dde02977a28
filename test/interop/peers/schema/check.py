"""Holds published records to the shipped JSON Schemas.

Usage: check.py SCHEMAS < LINES, where each line is one payload. Prints how many
records of each type were valid; the first that is not ends it.
"""

import collections
import json
import pathlib
import sys

import jsonschema

schemas = {
    path.stem: jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for path in pathlib.Path(sys.argv[1]).glob("*.json")
}
for schema in schemas.values():
    schema.check_schema(schema.schema)
seen = collections.Counter()


def check(record):
    schemas[record["type"]].validate(record)
    kind = record["type"]
    if kind == "event":
        kind += "/" + record["kind"]
    seen[kind] += 1


for line in sys.stdin:
    payload = json.loads(line)
    if isinstance(payload, list):
        schemas["batch"].validate(payload)
        seen["batch"] += 1
        for record in payload:
            check(record)
    else:
        check(payload)
print(json.dumps(seen))

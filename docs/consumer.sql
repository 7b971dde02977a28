-- Keeps the highest (generation, revision) of each window, for PostgreSQL (9.5 and
-- later) and SQLite (3.38 and later). Whatever receives the records puts each, as it
-- is, into incoming; this script moves them on and may run as often as it likes.
CREATE TABLE IF NOT EXISTS incoming (record json NOT NULL, received_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);

CREATE TABLE IF NOT EXISTS revision (
  gateway text, asset text, lifecycle text, sensor text, feature text, version bigint, window_start text, window_end text,
  generation bigint, revision bigint, status text, result json, received_at timestamp,
  PRIMARY KEY (gateway, asset, lifecycle, sensor, feature, version, window_start, window_end, generation, revision));

INSERT INTO revision
SELECT record ->> 'gateway', record ->> 'asset', record ->> 'lifecycle', record ->> 'sensor', record ->> 'feature',
  CAST(record ->> 'version' AS bigint), record ->> 'window_start', record ->> 'window_end',
  CAST(record ->> 'generation' AS bigint), CAST(record ->> 'revision' AS bigint), record ->> 'status', record, received_at
FROM incoming WHERE record ->> 'type' = 'feature'
ON CONFLICT DO NOTHING; -- it came again
-- Only what has been moved goes: more may have come in meanwhile.
DELETE FROM incoming WHERE coalesce(record ->> 'type', '') <> 'feature' OR EXISTS (SELECT 1 FROM revision AS r
  WHERE r.gateway = record ->> 'gateway' AND r.asset = record ->> 'asset' AND r.lifecycle = record ->> 'lifecycle'
  AND r.sensor = record ->> 'sensor' AND r.feature = record ->> 'feature' AND r.version = CAST(record ->> 'version' AS bigint)
  AND r.window_start = record ->> 'window_start' AND r.window_end = record ->> 'window_end'
  AND r.generation = CAST(record ->> 'generation' AS bigint) AND r.revision = CAST(record ->> 'revision' AS bigint));

DROP VIEW IF EXISTS current_feature;
CREATE VIEW current_feature AS
SELECT gateway, asset, lifecycle, sensor, feature, version, window_start, window_end, generation, revision, status, result, received_at
FROM (SELECT revision.*, row_number() OVER (
    PARTITION BY gateway, asset, lifecycle, sensor, feature, version, window_start, window_end
    ORDER BY generation DESC, revision DESC) AS place
  FROM revision) AS ranked
WHERE place = 1;

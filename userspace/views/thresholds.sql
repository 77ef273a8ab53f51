-- SPDX-License-Identifier: GPL-2.0
--
-- thresholds.sql: glibc's thresholds as they were at the end. Follows giveback.sql.

-- By process and name: the last that is known. how, call, stack_id: of the last change of the value
-- that was seen, or where none was, of the first that was known. changes: how often the value
-- moved; changed_ns: when it last did. before_*: what it was until then.
CREATE VIEW threshold_state AS
WITH
numbered AS MATERIALIZED (
	SELECT t.*, LAG(low_bytes) OVER life AS before_low,
		LAG(high_bytes) OVER life AS before_high,
		ROW_NUMBER() OVER life AS number,
		ROW_NUMBER() OVER (PARTITION BY pid, name ORDER BY time_ns DESC, rowid DESC) AS back
	FROM (	-- of the last program that ran in the process
		SELECT rowid, * FROM (SELECT rowid, *, MAX(CASE how WHEN 'exec' THEN rowid END)
			OVER (PARTITION BY pid, name) AS begun FROM threshold)
		WHERE begun IS NULL OR rowid > begun) t WINDOW life AS (PARTITION BY pid, name
			ORDER BY time_ns, rowid)
),
moved AS MATERIALIZED (	-- the bounds do not overlap: it is another value; or a free is known to
			-- have moved it
	SELECT *, number > 1 AND (how = 'freed' OR low_bytes > COALESCE(before_high, low_bytes)
		OR COALESCE(high_bytes, before_low) < before_low) AS change FROM numbered
),
last AS MATERIALIZED (
	SELECT *, ROW_NUMBER() OVER (PARTITION BY pid, name ORDER BY change DESC,
		CASE WHEN change THEN -number ELSE number END) AS place,
		SUM(change) OVER (PARTITION BY pid, name) AS changes
	FROM moved
)
SELECT n.pid, n.name, n.low_bytes, n.high_bytes, l.how, l.call, l.stack_id, l.changes,
	CASE WHEN l.change THEN l.time_ns END AS changed_ns,
	CASE WHEN l.change THEN l.before_low END AS before_low_bytes,
	CASE WHEN l.change THEN l.before_high END AS before_high_bytes
FROM numbered n JOIN last l ON l.pid = n.pid AND l.name = n.name AND l.place = 1 WHERE n.back = 1;

-- Processes whose program has set glibc's thresholds itself, by mallopt(3): that overrides what its
-- environment says. Where the environment sets one, none of them moves by itself any more.
CREATE VIEW glibc_pinned AS
SELECT pid FROM allocator WHERE kind = 'glibc' AND dynamic = 0
	AND ((tunables NOT LIKE '%mmap!_threshold%' ESCAPE '!'
		AND tunables NOT LIKE '%trim!_threshold%' ESCAPE '!'
		AND tunables NOT LIKE '%top!_pad%' ESCAPE '!'
		AND tunables NOT LIKE '%mmap!_max%' ESCAPE '!')
	OR pid IN (SELECT pid FROM threshold_state WHERE changes > 0));

-- SPDX-License-Identifier: GPL-2.0
--
-- huge.sql: first touches of huge pages, which are cleared whole, and how much of them is used.
-- Follows tolls.sql.

-- One row, of faults: what a system call takes it takes whole, huge pages or not. huge_each: what
-- one fault clears. huge_looked: huge pages that were looked at some time after their fault;
-- huge_used: what of one was not zero then, in bytes, on average; NULL where too few could be
-- looked at. small_ns: what the faults would have taken without huge pages, one for each 4 KiB that
-- is used, at the price of a first touch, as it was timed or else calibrated, whichever is more;
-- where it is not known how many are used, one.
-- huge_sparse: not used for the most part, or that is not known.
CREATE VIEW huge_measure AS
WITH
touched AS MATERIALIZED (
	SELECT SUM(cpu_ns + blocked_ns) AS ns, SUM(faults) AS faults, SUM(pages) * 4096 AS bytes
	FROM process_fault_time WHERE class = 'zero_huge'
),
looked AS MATERIALIZED (
	SELECT SUM(looked) AS pages, 4096.0 * SUM(used_pages) / SUM(looked) AS used
	FROM huge_look WHERE looked > 0
),
priced AS (
	SELECT COALESCE(t.ns, 0.0) AS huge_ns, COALESCE(t.faults, 0) AS huge_faults,
		COALESCE(t.bytes, 0) AS huge_bytes, 1.0 * t.bytes / t.faults AS huge_each,
		COALESCE(l.pages, 0) AS huge_looked,
		CASE WHEN l.pages >= 8 THEN l.used END AS huge_used,
		COALESCE(t.faults * MAX(c.fault_ns, COALESCE(z.mean_ns, 0.0))
			* CASE WHEN l.pages >= 8
			THEN MAX(1.0, l.used / 4096) ELSE 1.0 END, 0.0) AS small_ns
	FROM touched t JOIN looked l JOIN calibrated c
	LEFT JOIN fault_price z ON z.class = 'zero' AND z.timed_faults >= 100
)
SELECT *, MAX(0.0, huge_ns - small_ns) AS huge_saves_ns,
	COALESCE(huge_faults > 0 AND (huge_used IS NULL OR 4 * huge_used < 2097152), 0)
		AS huge_sparse
FROM priced;

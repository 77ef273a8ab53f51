-- SPDX-License-Identifier: GPL-2.0
--
-- timeline_reads.sql: what timeline.sql calls memtoll_read, reads of files with the price of their
-- probe, and of the faults that they took inside: past the page cache the kernel takes those for
-- the program, and no probe is hit (view read_cost).

CREATE TEMP VIEW IF NOT EXISTS memtoll_read AS
SELECT r.slice, r.call, r.stack_id, r.calls, r.bytes, r.cpu_ns, r.blocked_ns, r.faults,
	COALESCE((SELECT inside_ns FROM main.price WHERE probe = 'read'), 0.0) AS inside_ns,
	p.mean_ns + CASE WHEN r.direct THEN 0.0 ELSE k.fault_hit_ns END AS fault_ns
FROM file_read r JOIN temp.calibrated k
JOIN temp.fault_price p ON p.class = CASE WHEN r.direct THEN 'zero_populated' ELSE 'zero' END;

-- SPDX-License-Identifier: GPL-2.0
--
-- timeline_reads.sql: what timeline.sql calls memtoll_read, where the recording has reads of files:
-- with their probes' own part.

CREATE TEMP VIEW IF NOT EXISTS memtoll_read AS
SELECT slice, call, stack_id, calls, bytes, cpu_ns, blocked_ns, faults,
	COALESCE((SELECT inside_ns FROM main.price WHERE probe = 'read'), 0.0) AS inside_ns
FROM file_read;

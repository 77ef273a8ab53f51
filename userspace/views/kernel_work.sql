-- SPDX-License-Identifier: GPL-2.0
--
-- kernel_work.sql: what the kernel does with a program's pages in system calls that are not
-- watched, as CPU samples and the kernel's counts tell it. Follows reads.sql; tolls.sql has the
-- rules that all views keep.

-- Minor faults of each process by the kernel's count and by ours.
CREATE VIEW fault_missed AS
SELECT k.pid, k.minor AS kernel, COALESCE(o.minor, 0) + COALESCE(m.minor, 0) AS ours,
	MAX(0, k.minor - COALESCE(o.minor, 0) - COALESCE(m.minor, 0)) AS missed
FROM (SELECT pid, SUM(minor_faults) AS minor FROM process_slice GROUP BY pid) k
LEFT JOIN (SELECT pid, SUM(faults) AS minor FROM process_fault
	WHERE class NOT LIKE '%!_major' ESCAPE '!' AND class <> 'forbidden'
	GROUP BY pid) o ON o.pid = k.pid
-- seen by the kernel's count in calls, and in no other table (recordings of earlier versions)
LEFT JOIN (SELECT pid, SUM(populated) AS minor FROM map_call WHERE populated_ns = 0
	GROUP BY pid) m ON m.pid = k.pid;

-- By process, system call and stack: samples in faults that the kernel takes for the program
-- (zero.kernel: nearly always on new memory), in filling memory that is there with zeros
-- (zero.kernel, clears), and in freeing pages, making those of shared memory, copying page tables
-- for a child, or changing protections (map). count: the faults that nothing else has seen, in
-- proportion to the samples. error_ns: of the process's samples of a toll, k of n, the binomial one
-- (Agresti and Coull, as in call_cost), in the same proportion. kept: an mprotect that faults pages
-- in has a record of its own, whose time is no other's: it is taken out of that of all of them.
CREATE VIEW sampled_work AS
SELECT pid, toll, call, stack_id, clears, samples, kept * samples * cpu_ns / n AS time_ns,
	1.0 * samples / k * cpu_ns * (ABS((k + 2.0) / (n + 4.0) - 1.0 * k / n)
		+ 1.96 * (SELECT root FROM square_root WHERE v = (k + 2.0) / (n + 4.0)
			* (n - k + 2.0) / (n + 4.0) / (n + 4.0))) AS error_ns,
	CAST(ROUND(1.0 * missed * samples / k) AS INTEGER) AS count
FROM (
	SELECT s.pid, s.toll, s.call, s.stack_id, s.clears, s.samples, p.cpu_ns, n.n,
		CASE WHEN s.toll = 'zero.kernel' AND NOT s.clears THEN m.missed ELSE 0 END
			AS missed,
		SUM(s.samples) OVER (PARTITION BY s.pid, s.toll, s.clears) AS k,
		CASE WHEN s.call = 'mprotect' AND r.cpu_ns > 0
			THEN MAX(0.0, 1.0 - 1.0 * r.cpu_ns * n.n / p.cpu_ns / SUM(CASE s.call
				WHEN 'mprotect' THEN s.samples END) OVER (PARTITION BY s.pid))
			ELSE 1.0 END AS kept
	FROM (
		SELECT pid, CASE place WHEN 'pages' THEN 'map' ELSE 'zero.kernel' END AS toll,
			in_call AS call, stack_id, place = 'clear' AS clears,
			SUM(samples) AS samples
		FROM sample WHERE place IN ('populate', 'pages', 'clear')
		GROUP BY pid, place, in_call, stack_id
	) s
	JOIN (SELECT pid, SUM(samples) AS n FROM sample GROUP BY pid) n ON n.pid = s.pid
	JOIN (SELECT pid, SUM(cpu_ns) AS cpu_ns FROM process_slice GROUP BY pid) p
		ON p.pid = s.pid
	JOIN fault_missed m ON m.pid = s.pid
	LEFT JOIN (SELECT pid, SUM(cpu_ns) AS cpu_ns FROM map_call WHERE call = 'mprotect'
		GROUP BY pid) r ON r.pid = s.pid)
WHERE kept > 0;

-- What mapping calls took: without the part that the probes add, and without faults that the kernel
-- took inside, which are in the tolls of the faults. What is left of a few calls may come out below
-- nothing: a sum over them is a cost where it is more. toll: madvise(MADV_PAGEOUT) is reclaim that
-- the program has asked for, and is told from other advice by what it threw out.
CREATE VIEW map_net AS
SELECT m.slice, m.pid, m.call, m.in_call, m.stack_id, m.calls, m.bytes,
	m.cpu_ns - m.populated_ns - m.calls * c.map_inside_ns AS net_ns,
	m.calls * c.map_error_ns AS error_ns,
	CASE WHEN m.call = 'madvise' AND (m.pid, m.stack_id) IN (SELECT pid, stack_id FROM page_drop
		WHERE how = 'madvise') THEN 'reclaim' ELSE 'map' END AS toll
FROM map_call m JOIN calibrated c;

-- The same of all slices together. Of small ones that were passed over those that were looked at
-- tell, with the error of the draw; where they are large on average, most of the time is of calls
-- that were all timed.
CREATE VIEW map_cost AS
SELECT m.pid, m.call, m.in_call, m.stack_id, m.calls, m.bytes, m.net_ns, m.error_ns
	+ CASE WHEN d.one_in > 1 AND m.in_call = '' AND m.call IN ('mmap', 'munmap')
			AND m.bytes < m.calls * MIN(65536, COALESCE((SELECT CAST(value AS INTEGER)
				FROM meta WHERE key = 'min_size_bytes'), 65536))
		THEN 1.96 * MAX(0.0, m.net_ns) * (SELECT root FROM square_root
			WHERE v = (d.one_in - 1.0) / m.calls) ELSE 0.0 END AS error_ns, m.toll
FROM (SELECT pid, call, in_call, stack_id, SUM(calls) AS calls, SUM(bytes) AS bytes,
		SUM(net_ns) AS net_ns, SUM(error_ns) AS error_ns, toll
	FROM map_net GROUP BY pid, call, in_call, stack_id, toll) m
LEFT JOIN thinning d ON d.what = 'small_map';

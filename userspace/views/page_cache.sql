-- SPDX-License-Identifier: GPL-2.0
--
-- page_cache.sql: why pages of files come in again: the memory that may be used against what is in
-- use, and how files are gone over. Follows reuse.sql.

-- Files by the pages that came in again after use. pattern, of those pages, or where hardly any
-- did, of all: 'cyclic sweep' or 'random'; 'one-pass sweep', 'one pass'.
CREATE VIEW page_cache_file AS
SELECT ROW_NUMBER() OVER (ORDER BY again_pages DESC, fill_pages DESC, dev, inode) AS rank, *,
	CASE WHEN 10 * again_pages >= first_pages + again_pages AND again_pages > 0
		THEN CASE WHEN 10 * again_sequential >= 7 * again_pages THEN 'cyclic sweep'
			ELSE 'random' END
	WHEN 10 * first_sequential >= 7 * first_pages THEN 'one-pass sweep'
	ELSE 'one pass' END AS pattern
FROM (
	SELECT p.dev, p.inode, COALESCE(NULLIF(MAX(p.area_name), ''), MAX(f.path), '') AS path,
		SUM(p.first_pages) AS first_pages,
		SUM(p.first_sequential_pages) AS first_sequential,
		SUM(p.in_pages) AS again_pages, SUM(p.in_sequential_pages) AS again_sequential,
		SUM(p.distinct_pages) AS distinct_pages, MAX(p.max_returns) AS max_returns,
		SUM(p.first_pages + p.in_pages + p.vain_pages + p.untracked_pages) AS fill_pages
	FROM page_fill p LEFT JOIN file f ON f.dev = p.dev AND f.inode = p.inode
	GROUP BY p.dev, p.inode);

-- Who threw pages out, by what they were ('file', 'swap'). Shares of all of them: given, by the
-- program itself as it asked for that; asked, by whoever wrote to a control of the kernel's; other,
-- by processes that are not traced, for want of memory. text: of whom it was for a third or more.
CREATE VIEW dropper AS
WITH
each AS MATERIALIZED (
	SELECT what, CASE WHEN how IN ('madvise', 'fadvise') THEN 'given' ELSE how END AS kind, how,
		stack_id, comm, memory_cgroup, SUM(pages) AS pages,
		ROW_NUMBER() OVER (PARTITION BY what, how IN ('madvise', 'fadvise'), how = 'asked',
			how = 'other', how = 'kswapd' ORDER BY SUM(pages) DESC, comm, stack_id)
			AS place
	FROM page_drop WHERE how <> 'cut' GROUP BY what, how, stack_id, comm, memory_cgroup
),
kind AS MATERIALIZED (
	SELECT what, kind, SUM(pages) AS pages, MAX(CASE place WHEN 1 THEN how END) AS how,
		MAX(CASE place WHEN 1 THEN stack_id END) AS stack_id,
		MAX(CASE place WHEN 1 THEN NULLIF(comm, '') END) AS comm,
		MAX(CASE place WHEN 1 THEN NULLIF(memory_cgroup, '') END) AS memory_cgroup,
		SUM(SUM(pages)) OVER (PARTITION BY what) AS all_pages
	FROM each GROUP BY what, kind
)
SELECT what, all_pages AS pages,
	COALESCE(SUM(CASE kind WHEN 'given' THEN pages END), 0) * 1.0 / all_pages AS given_share,
	COALESCE(SUM(CASE kind WHEN 'asked' THEN pages END), 0) * 1.0 / all_pages AS asked_share,
	COALESCE(SUM(CASE kind WHEN 'other' THEN pages END), 0) * 1.0 / all_pages AS other_share,
	group_concat(CASE WHEN 3 * pages >= all_pages THEN CASE kind
		WHEN 'given' THEN PRINTF(' Of what was thrown out, the program itself gave back '
			|| '%.0f %%, most by %s at %s.', 100.0 * pages / all_pages,
			CASE how WHEN 'madvise' THEN 'madvise(MADV_PAGEOUT)'
				ELSE 'posix_fadvise(POSIX_FADV_DONTNEED)' END,
			COALESCE((SELECT p.code FROM stack_place p
				WHERE p.stack_id = kind.stack_id), 'an unknown place'))
		WHEN 'asked' THEN PRINTF(' Of what was thrown out, %.0f %% went because %s asked '
			|| 'the kernel for it (memory.reclaim, memory.force_empty or drop_caches).',
			100.0 * pages / all_pages, COALESCE(comm, 'the program itself'))
		WHEN 'other' THEN PRINTF(' Of what was thrown out, other processes pushed out '
			|| '%.0f %%, for want of memory, most by %s%s.', 100.0 * pages / all_pages,
			COALESCE(comm, 'one without a name'),
			COALESCE(' (memory cgroup ' || memory_cgroup || ')', ''))
		WHEN 'kswapd' THEN PRINTF(' Of what was thrown out, kswapd took %.0f %%: the '
			|| 'machine is short of memory.', 100.0 * pages / all_pages) END END, '')
		AS text
FROM kind GROUP BY what, all_pages;

-- One row: what the program has pushed out itself, by madvise(MADV_PAGEOUT). swap_given: that is
-- most of what went to swap; swap_asked: most went as somebody wrote to a control of the kernel's.
-- given_file_ns: of the time, for pages of files.
CREATE VIEW given_measure AS
WITH dropped AS MATERIALIZED (
	SELECT pid, stack_id, 1.0 * SUM(CASE what WHEN 'file' THEN pages ELSE 0 END)
		/ MAX(SUM(pages), 1) AS file_part
	FROM page_drop WHERE how = 'madvise' GROUP BY pid, stack_id
)
SELECT COALESCE(SUM(m.net_ns), 0.0) AS given_ns, COALESCE(SUM(m.calls), 0) AS given_calls,
	COALESCE(SUM(m.net_ns * d.file_part), 0.0) AS given_file_ns,
	(SELECT 4096 * SUM(pages) FROM page_drop WHERE how = 'madvise') AS given_bytes,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = (SELECT stack_id FROM page_drop
		WHERE how = 'madvise' GROUP BY stack_id ORDER BY SUM(pages) DESC, stack_id LIMIT 1))
		AS given_place,
	COALESCE((SELECT 2 * given_share > 1 FROM dropper WHERE what = 'swap'), 0) AS swap_given,
	COALESCE((SELECT 2 * asked_share > 1 FROM dropper WHERE what = 'swap'), 0) AS swap_asked
FROM map_cost m LEFT JOIN dropped d ON d.pid = m.pid AND d.stack_id = m.stack_id
WHERE m.toll = 'reclaim';

-- One row. thrash: pages that were used came in again, as a tenth or more of those that were used
-- at all; what the file lost otherwise, as by ftruncate, is not what it lost for want of memory.
-- again_share: of the pages that came in for use, by faults or reads (untold: none did).
--
-- working_bytes: page cache that would keep what is used again, thrown out in the order of use: as
-- many different pages as came in between two times of the same one (all but a hundredth), and no
-- less than all that came again. fits_bytes: the limit with which the cache may be so large, beside
-- what else is in the group. Too high, rather than too low, where pages that are hardly ever used
-- again come in between.
--
-- wasteful: pages that are not asked for in order bring others in, of which most are never used.
-- used counts all that a fault maps, the pages around its own too: so at most so many were.
--
-- Of a process that ran before the recording: pages that stay in memory all the time come in never,
-- and need room all the same, so that the cache it needs is at most so much larger, and no larger
-- than the files. seen_once: what came again did so about once, and so how much it goes over is not
-- known (fits_bytes NULL). returned: no page came in twice, but the kernel counts that most of them
-- had been in memory before.
-- partial: what came in came by reads, not all of which were looked at, and the kernel counts half
-- as many returns again as were seen, or more: so pages that were used came in again, and what came
-- between is not known (working_bytes, fits_bytes NULL). refault_share: how many the kernel counts,
-- of those that came in for use.
-- single: asked for in order, and each brought in by a request of its own: no read-ahead.
-- most_by_one: each by a request of its own, too, in whatever order, and of the file that more than
-- half of it came from more than half came in.
-- remade: most that came had been there before, and was lost as files were cut short or deleted.
-- Not known where far more was cut than came again: most of that is of other files.
CREATE VIEW page_cache AS
WITH
cause AS MATERIALIZED (	-- code is read around its faults whatever a program does
	SELECT cause, SUM(first_pages) AS first_pages, SUM(in_pages) AS again_pages,
		SUM(vain_pages) AS vain_pages, SUM(used_pages) AS used_pages,
		SUM(first_pages + in_pages + vain_pages) AS fill_pages,
		SUM(requests) AS requests,
		SUM(first_sequential_pages + in_sequential_pages) AS sequential_pages,
		SUM(CASE WHEN library THEN in_pages ELSE 0 END) AS code_pages,
		SUM(CASE WHEN library THEN 0 ELSE first_pages + in_pages + vain_pages END)
			AS data_pages
	FROM page_fill GROUP BY cause
),
total AS MATERIALIZED (
	SELECT COALESCE(SUM(first_pages), 0) AS first_pages,
		COALESCE(SUM(again_pages), 0) AS again_pages,
		COALESCE(SUM(vain_pages), 0) AS vain_pages,
		COALESCE(SUM(fill_pages), 0) AS fill_pages,
		COALESCE(SUM(code_pages), 0) AS code_pages,
		COALESCE(SUM(CASE cause WHEN 'read' THEN fill_pages END), 0) AS read_fill,
		COALESCE(SUM(CASE cause WHEN 'read' THEN 0 ELSE again_pages END), 0) AS fault_again,
		SUM(CASE cause WHEN 'read' THEN 0 ELSE again_pages END) * 1.0
			/ NULLIF(SUM(CASE cause WHEN 'read' THEN 0
				ELSE first_pages + again_pages END), 0) AS fault_again_share,
		SUM(CASE cause WHEN 'read' THEN again_pages END) * 1.0
			/ NULLIF(SUM(CASE cause WHEN 'read' THEN first_pages + again_pages END), 0)
			AS read_again_share
	FROM cause
),
wide AS MATERIALIZED (	-- what read-ahead does, by faults or by reads: of the one that brings more
	SELECT cause, used_pages, fill_pages, 1.0 * fill_pages / requests AS each_pages,
		10 * sequential_pages < 7 * (first_pages + again_pages)
			AND fill_pages >= 8 * requests AND 10 * used_pages <= 6 * fill_pages
			AS wasteful,
		10 * sequential_pages >= 7 * (first_pages + again_pages)
			AND 2 * requests >= fill_pages AS single,
		2 * requests >= fill_pages AND EXISTS (SELECT 1 FROM (SELECT SUM(first_pages)
			AS pages, MAX(bytes) AS bytes FROM page_fill GROUP BY dev, inode)
			WHERE 2 * pages > cause.fill_pages AND 2 * 4096 * pages > bytes)
			AS most_by_one
	FROM cause WHERE cause <> 'map' AND requests > 0 AND fill_pages >= 1024
		AND 2 * data_pages >= fill_pages
	ORDER BY fill_pages DESC, cause LIMIT 1
),
top AS MATERIALIZED (SELECT * FROM page_cache_file WHERE rank = 1),
cut AS MATERIALIZED (
	SELECT COALESCE(SUM(pages), 0) AS pages FROM page_drop WHERE what = 'file' AND how = 'cut'
),
back AS MATERIALIZED (
	SELECT COALESCE(SUM(distinct_pages), 0) AS pages FROM page_fill
),
far AS MATERIALIZED (	-- a cache that would have had nearly all that came before
	SELECT MIN(c.cache_bytes) AS bytes FROM miss_ratio c JOIN reuse r ON r.subject = c.subject
	WHERE c.subject = 'cache' AND r.uses > r.first
		AND 1 - c.miss_ratio >= 0.99 * (1 - r.first / r.uses)
),
most AS MATERIALIZED (SELECT different * block_bytes AS bytes FROM reuse WHERE subject = 'cache'),
box AS MATERIALIZED (
	SELECT path, limit_bytes, limit_path, file_bytes, usage_bytes,
		MAX(0, usage_bytes - file_bytes, COALESCE(beside_bytes, 0)) AS beside_bytes
	FROM memory_cgroup
	WHERE limit_bytes IS NOT NULL AND path IN (SELECT memory_cgroup FROM process)
	ORDER BY limit_bytes, path LIMIT 1
),
stayed AS MATERIALIZED (
	SELECT CASE WHEN (SELECT ran FROM begun_before)
		THEN COALESCE((SELECT file_bytes FROM box), 0) ELSE 0 END AS bytes,
		(SELECT SUM(bytes) FROM (SELECT MAX(bytes) AS bytes FROM page_fill
			GROUP BY dev, inode)) AS file_bytes
),
needed AS MATERIALIZED (
	SELECT CAST(MAX(n.bytes, MIN(n.bytes + s.bytes, COALESCE(s.file_bytes, 0))) AS INTEGER)
		AS bytes FROM (
		SELECT MAX(4096 * b.pages, MIN(COALESCE(f.bytes, 0), COALESCE(m.bytes, 0)))
			AS bytes FROM back b LEFT JOIN far f LEFT JOIN most m) n JOIN stayed s
),
kernel AS MATERIALIZED (
	SELECT MAX(value) AS refaults FROM memory_cgroup_counter
	WHERE name = 'workingset_refault_file' AND path IN (SELECT memory_cgroup FROM process)
),
judged AS MATERIALIZED (
	SELECT t.*, 10 * (t.again_pages - c.pages) >= t.first_pages + t.again_pages
			AND t.again_pages - c.pages >= 256 AS came_back,
		COALESCE(p.share >= 0.01 AND 2 * t.read_fill >= t.fill_pages
			AND k.refaults >= 256 AND 2 * k.refaults >= 3 * t.again_pages
			AND 9 * k.refaults * (1.0 - p.share) >= t.first_pages
			AND 4 * t.vain_pages < t.fill_pages
			AND 10 * b.usage_bytes >= 9 * b.limit_bytes, 0) AS partial,
		MIN(1.0, k.refaults * (1.0 - p.share) / MAX(1, t.first_pages + t.again_pages))
			AS refault_share,
		t.first_pages >= 256 AND 10 * t.again_pages < t.first_pages + t.again_pages
			AND 2 * k.refaults > t.first_pages + t.again_pages
			AND 4 * t.vain_pages < t.fill_pages
			AND 10 * b.usage_bytes >= 9 * b.limit_bytes AS returned,
		t.fault_again >= 256 AND c.pages <= 2 * t.fault_again
			AND 2 * MIN(t.fault_again, c.pages) > t.first_pages + t.again_pages
			AS remade,
		2 * t.again_pages < 3 * (SELECT pages FROM back)
			AND (SELECT ran FROM begun_before) AS seen_once,
		k.refaults AS group_refaults
	FROM total t JOIN kernel k JOIN cut c LEFT JOIN box b
	LEFT JOIN thinning p ON p.what = 'read'
)
SELECT t.first_pages, t.again_pages, t.vain_pages, t.fill_pages, t.code_pages, t.read_fill,
	t.fault_again_share, t.read_again_share, t.came_back OR t.partial AS thrash,
	NOT (t.came_back OR t.partial) AND COALESCE(t.returned, 0) AS returned,
	t.seen_once OR t.partial OR (NOT t.came_back AND COALESCE(t.returned, 0)) AS seen_once,
	t.partial, t.refault_share,
	t.first_pages + t.again_pages AS wanted_pages,
	p.path, p.pattern, 1.0 * p.again_pages / MAX(1, p.distinct_pages) AS returns, p.max_returns,
	4096 * p.distinct_pages AS back_bytes,
	2 * t.code_pages > t.again_pages AS code,
	CASE WHEN NOT t.partial THEN n.bytes END AS working_bytes,
	CASE WHEN b.file_bytes IS NOT NULL AND NOT (t.seen_once OR t.partial) THEN n.bytes + CASE
		WHEN b.beside_bytes + n.bytes > b.limit_bytes THEN b.beside_bytes
		-- it would fit as it is; a limit further up is others', too
		WHEN b.limit_path = b.path THEN b.limit_bytes - n.bytes
		ELSE MAX(0, b.limit_bytes - b.file_bytes) END END AS fits_bytes,
	b.limit_bytes AS box_bytes, b.limit_path AS box_path,
	b.beside_bytes,
	t.group_refaults,
	(SELECT value FROM system_counter WHERE name = 'workingset_refault_file') AS all_refaults,
	COALESCE(d.given_share, 0.0) AS given_share, COALESCE(d.asked_share, 0.0) AS asked_share,
	COALESCE(d.other_share, 0.0) AS other_share, COALESCE(d.text, '') AS dropped_by,
	w.cause AS wide_cause, w.used_pages AS wide_used, w.fill_pages AS wide_fill,
	w.each_pages AS wide_each, COALESCE(w.wasteful, 0) AS wasteful,
	COALESCE(w.single, 0) AS single, COALESCE(w.most_by_one, 0) AS most_by_one, t.remade
FROM judged t JOIN needed n LEFT JOIN top p LEFT JOIN wide w LEFT JOIN box b
LEFT JOIN dropper d ON d.what = 'file';

-- Faults on mapped files, one row: the time of those that had to read; of it first_ns, the one that
-- waits whatever is read ahead; and the time of those on code, which is what is mapped executable,
-- too.
CREATE VIEW file_fault_measure AS
WITH
reading AS MATERIALIZED (
	SELECT COALESCE(SUM(cpu_ns + blocked_ns), 0.0) AS time_ns, SUM(faults) AS faults
	FROM process_fault_time WHERE class IN ('file_major', 'file_again_major')
)
SELECT time_ns AS major_ns, COALESCE(time_ns / faults, 0.0) AS first_ns,
	COALESCE((SELECT SUM(time_ns) FROM sites
		WHERE toll = 'file.fault' AND area LIKE 'library%'), 0.0) AS code_ns
FROM reading;

-- SPDX-License-Identifier: GPL-2.0
--
-- giveback.sql: memory given back to the kernel and got again. Follows stacks.sql.

-- The sizes that settings are rounded up to.
CREATE VIEW power_of_two AS
WITH RECURSIVE power(bytes) AS (SELECT 131072 UNION ALL
	SELECT 2 * bytes FROM power WHERE bytes < 1 << 50)
SELECT bytes FROM power;

-- The allocator's function that is in a stack, the outermost: of a call that was not probed just
-- then.
CREATE VIEW stack_call AS
SELECT s.stack_id, (
	SELECT CASE WHEN l.function LIKE '%realloc%' THEN 'realloc'
		WHEN l.function LIKE '%calloc' THEN 'calloc'
		WHEN l.function LIKE '%malloc' THEN 'malloc' ELSE 'free' END
	FROM stack_line l WHERE l.stack_id = s.stack_id AND (l.function LIKE '%realloc%'
		OR l.function LIKE '%calloc' OR l.function LIKE '%malloc'
		OR l.function LIKE '%free') AND l.module IN (SELECT module FROM allocator)
	ORDER BY l.depth DESC LIMIT 1) AS call
FROM (SELECT gave_stack AS stack_id FROM giveback WHERE gave_call = ''
	UNION SELECT got_stack FROM giveback WHERE got_call = ''
	UNION SELECT touched_stack FROM fault WHERE in_memset AND in_call = ''
	UNION SELECT stack_id FROM map_cost WHERE call IN ('mremap', 'brk') AND in_call = '') s;

-- By process and by the call that gave back, most expensive first. Pages that come back only to be
-- read, all zeros, cost the program nothing by having gone: kept, they would have to be cleared.
-- again_ns: the faults that brought pages back, at the price of their class; gave_ns: the mapping
-- calls made there (of this kind, all of them); time_ns both. again_touch_ns: of again_ns, what no
-- system call took. got_call, got_stack: who got most of it again. allocator: kind of the one that
-- gave it back, '' of the program itself; with gave_call '' it did so by itself, in no call of the
-- program's (a thread of jemalloc's that purges). *_per_s: over the time of the recording.
CREATE VIEW giveback_site AS
WITH
fp AS MATERIALIZED (SELECT class, mean_ns, blocked_mean_ns FROM fault_price),
-- Where the function was not probed just then, the stack shows it.
inside AS MATERIALIZED (
	SELECT DISTINCT g.pid, g.gave_stack, (SELECT s.call FROM stack_call s
		WHERE s.stack_id = g.gave_stack) AS call
	FROM giveback g WHERE g.gave_call = ''
),
-- No call of the program's is in the stack, but the code that calls the kernel is an allocator's:
-- by its module, or of one that is part of the program, by the names of its functions.
by_itself AS MATERIALIZED (
	SELECT i.pid, i.gave_stack, (
		SELECT CASE WHEN l.function LIKE '%pages_purge%' OR l.function LIKE '%arena_decay%'
			OR l.function LIKE '%extents_%' OR l.function LIKE '%pages_unmap%'
			OR l.function LIKE '%os_pages_%' THEN 'jemalloc'
			WHEN l.function LIKE '\_mi\_%' ESCAPE '\' THEN 'mimalloc'
			WHEN l.function LIKE 'TCMalloc\_System%' ESCAPE '\' THEN 'tcmalloc'
			-- Go's scavenger; what the program asks for is its own
			WHEN l.function LIKE 'runtime.%' THEN CASE WHEN NOT (SELECT p.own
				FROM stack_place p WHERE p.stack_id = i.gave_stack) THEN 'go' END
			ELSE (SELECT MIN(a.kind) FROM allocator a WHERE a.pid = i.pid
				AND a.module = l.module AND a.kind NOT IN ('glibc', 'musl')
				AND a.linkage IN ('preloaded', 'dynamic')) END
		FROM stack_line l WHERE l.stack_id = i.gave_stack AND (l.usable IN (0, 1, 3, 4)
			OR l.function LIKE 'runtime.%' OR l.module IN (SELECT module FROM allocator
				WHERE kind NOT IN ('glibc', 'musl')))
		ORDER BY l.depth LIMIT 1) AS kind
	FROM inside i WHERE i.call IS NULL
),
given AS MATERIALIZED (
	SELECT g.*, COALESCE(NULLIF(g.gave_call, ''), i.call, '') AS by_call, b.kind AS by_kind,
		COALESCE(NULLIF(g.got_call, ''), s.call, '') AS for_call
	FROM giveback g LEFT JOIN inside i ON g.gave_call = '' AND i.pid = g.pid
		AND i.gave_stack = g.gave_stack
	LEFT JOIN by_itself b ON b.pid = i.pid AND b.gave_stack = i.gave_stack
	LEFT JOIN stack_call s ON g.got_call = '' AND s.stack_id = g.got_stack
	WHERE COALESCE(g.class, '') NOT IN ('zero_read', 'read_populated')
),
-- Where not even that is known, it may be calloc, as far as the process has such blocks of it.
callocs AS MATERIALIZED (
	SELECT c.pid, 1.0 * c.bytes / u.bytes AS part
	FROM (SELECT pid, SUM(bytes) AS bytes FROM call_cost
		WHERE call = 'calloc' AND bytes >= 131072 * calls GROUP BY pid) c
	JOIN (SELECT pid, SUM(again_bytes) AS bytes FROM given WHERE for_call = ''
		GROUP BY pid) u ON u.pid = c.pid
),
-- What was mapped where such pages came back, for each byte of them: most of a block may be unused,
-- and of some blocks more than of others.
made AS MATERIALIZED (
	SELECT m.pid, m.stack_id, 1.0 * m.bytes / a.bytes AS each
	FROM (SELECT pid, stack_id, SUM(bytes) AS bytes FROM map_cost WHERE call = 'mmap'
		GROUP BY pid, stack_id) m
	JOIN (SELECT pid, got_stack, SUM(again_bytes) AS bytes FROM given
		WHERE how = 'munmap' AND again_bytes > 0 GROUP BY pid, got_stack) a
		ON a.pid = m.pid AND a.got_stack = m.stack_id
),
gave AS MATERIALIZED (
	SELECT g.pid, g.how, g.by_call AS gave_call, g.gave_stack, SUM(g.calls) AS calls,
		SUM(g.thread_calls) AS thread_calls, MAX(g.by_kind) AS by_kind,
		-- of pages whose faults were only counted nobody knows that they were there to be
		-- given, but they were
		MAX(SUM(g.gave_bytes), SUM(g.again_bytes)) AS gave_bytes,
		MAX(g.largest_bytes) AS largest_bytes,
		MAX(g.span_bytes) AS span_bytes, SUM(g.again_faults) AS again_faults,
		SUM(g.again_bytes) AS again_bytes, SUM(g.twice_bytes) AS twice_bytes,
		COALESCE(SUM(g.again_faults * (fp.mean_ns + fp.blocked_mean_ns)), 0.0) AS again_ns,
		COALESCE(SUM(CASE WHEN fp.class NOT LIKE '%!_populated' ESCAPE '!'
			THEN g.again_faults * (fp.mean_ns + fp.blocked_mean_ns) END), 0.0)
			AS again_touch_ns,
		CAST(SUM(g.by_calloc * g.again_bytes) AS INTEGER) AS calloc_bytes,
		SUM(g.by_calloc * g.again_bytes * COALESCE(m.each, 0.0)) AS calloc_made_bytes,
		SUM(g.by_calloc * g.again_bytes * (m.each IS NULL)) AS calloc_rest_bytes
	FROM (SELECT n.*, CASE n.for_call WHEN 'calloc' THEN 1.0
			WHEN '' THEN MIN(1.0, COALESCE(c.part, 0.0)) ELSE 0.0 END AS by_calloc
		FROM given n LEFT JOIN callocs c ON c.pid = n.pid) g
	LEFT JOIN fp ON fp.class = g.class
	LEFT JOIN made m ON g.how = 'munmap' AND m.pid = g.pid AND m.stack_id = g.got_stack
	GROUP BY g.pid, g.how, g.by_call, g.gave_stack
),
got AS MATERIALIZED (
	SELECT pid, how, by_call AS gave_call, gave_stack, for_call AS got_call, got_stack,
		ROW_NUMBER() OVER (PARTITION BY pid, how, by_call, gave_stack
			ORDER BY SUM(again_bytes) DESC, got_stack) AS number
	FROM given WHERE again_bytes > 0
	GROUP BY pid, how, by_call, gave_stack, for_call, got_stack
),
mapping AS MATERIALIZED (	-- a stack is of one function, whether that was probed or not
	SELECT pid, call, stack_id, SUM(net_ns) AS net_ns, SUM(bytes) AS bytes
	FROM map_cost GROUP BY pid, call, stack_id
),
timed AS MATERIALIZED (
	-- the allocator whose module the function is in; where that was not read, the only one
	-- there is
	SELECT g.*, MAX(0.0, COALESCE(m.net_ns * (1.0 - COALESCE(CASE m.call WHEN 'madvise'
			THEN l.part END, 0.0)), 0.0)) AS gave_ns,
		CASE g.how WHEN 'munmap' THEN MIN(g.calls * g.largest_bytes,
			COALESCE(m.bytes, g.calls * g.largest_bytes)) END AS mapped_bytes,
		CASE g.gave_call WHEN '' THEN COALESCE(g.by_kind, '') ELSE COALESCE(
			(SELECT MIN(a.kind) FROM allocator a
				WHERE a.pid = g.pid AND a.module = f.module),
			(SELECT MIN(a.kind) FROM allocator a WHERE a.pid = g.pid
				AND a.kind <> 'glibc'),
			(SELECT MIN(a.kind) FROM allocator a WHERE a.pid = g.pid), 'unknown')
		END AS allocator
	FROM gave g LEFT JOIN stack_frame s ON s.stack_id = g.gave_stack AND s.depth = 0
	LEFT JOIN frame f ON f.frame_id = s.frame_id
	LEFT JOIN mapping m ON m.pid = g.pid
		AND m.stack_id = g.gave_stack AND m.call = CASE g.how WHEN 'munmap' THEN 'munmap'
			WHEN 'heap' THEN 'munmap' WHEN 'stack_unmapped' THEN 'munmap'
			WHEN 'brk' THEN 'brk' WHEN 'fixed' THEN 'mmap'
			ELSE 'madvise' END
	LEFT JOIN let_go_part l ON l.pid = g.pid AND l.stack_id = g.gave_stack
)
SELECT ROW_NUMBER() OVER (ORDER BY t.again_bytes > 0 DESC, t.again_ns + t.gave_ns DESC,
		t.gave_bytes DESC, t.pid, t.how, t.gave_call, t.gave_stack) AS rank,
	t.pid, t.how, t.gave_call, t.gave_stack, COALESCE(w.got_call, '') AS got_call,
	COALESCE(w.got_stack, 0) AS got_stack, t.calls, t.thread_calls, t.gave_bytes,
	t.largest_bytes, t.span_bytes, t.again_faults, t.again_bytes, t.twice_bytes,
	t.again_ns, t.again_touch_ns, t.gave_ns,
	t.again_ns + t.gave_ns AS time_ns, t.calloc_bytes,
	-- what a memset would clear
	MAX(0, CASE WHEN t.calloc_bytes = 0 THEN 0
		WHEN t.mapped_bytes IS NULL THEN t.calloc_bytes - t.twice_bytes
		ELSE MIN(t.mapped_bytes, t.calloc_made_bytes
			+ 1.0 * t.mapped_bytes * t.calloc_rest_bytes / t.again_bytes)
			- t.twice_bytes END) AS memset_bytes,
	CASE WHEN o.duration_ns > 0 THEN t.gave_bytes * 1e9 / o.duration_ns ELSE 0.0 END
		AS gave_bytes_per_s,
	CASE WHEN o.duration_ns > 0 THEN t.again_bytes * 1e9 / o.duration_ns ELSE 0.0 END
		AS again_bytes_per_s,
	t.allocator
FROM timed t JOIN observed o LEFT JOIN got w ON w.number = 1 AND w.pid = t.pid AND w.how = t.how
	AND w.gave_call = t.gave_call AND w.gave_stack = t.gave_stack
WHERE t.gave_bytes > 0 OR t.again_bytes > 0;

-- What can be done about it: of each kind the process that it costs most, all its sites together,
-- named by the most expensive one. storm: it happens again and again; worth: and to keep it costs
-- less. kind: trim (glibc's heap: brk, madvise in arenas), heap (of an arena of glibc: a second
-- one, that goes whole), map (glibc's blocks with a mapping of their own), purge (jemalloc), other
-- (other allocators), stack (of a thread, by the C library), own (the program itself, with
-- trim_call where it calls malloc_trim). memset_ns: what calloc would memset, were the memory kept:
-- all of each block, used or not; of jemalloc, whose calloc gives back what was kept, what would
-- not be saved. copy_ns: what realloc would copy: blocks that grow by mremap now
-- would grow in the heap. Blocks of 4 MiB and more are in no cache: at the rate of clearing huge
-- pages. threads: most of it by other threads than the first, which have arenas of their own.
--
-- threshold: glibc's mmap_threshold at the end of the recording. *_value: what stops it, or NULL
-- where a setting may stay as it is. They are powers of two well above what was seen: what comes at
-- once differs from run to run, and a trim_threshold a hair below it does nothing. An arena that is
-- not the main one has heaps of 64 MiB: no larger block fits, and top_pad=67108864 keeps each of
-- them. mmap_threshold needs to be set where it has been raised, as the others take it back to 128
-- KiB.
CREATE VIEW giveback_storm AS
WITH
kinds AS MATERIALIZED (
	SELECT g.*, CASE WHEN g.how = 'stack' THEN 'stack'
		-- a program may have stacks of its own
		WHEN g.how = 'stack_unmapped' AND EXISTS (SELECT 1 FROM stack_frame s
			WHERE s.stack_id = g.gave_stack AND s.depth = 1
			AND s.frame_id IN (SELECT frame_id FROM library_frame)) THEN 'stack'
		WHEN g.allocator = '' THEN 'own'
		WHEN g.allocator = 'glibc' AND g.how = 'munmap' THEN 'map'
		WHEN g.allocator = 'glibc' AND g.how = 'heap' THEN 'heap'
		WHEN g.allocator = 'glibc' THEN 'trim'
		WHEN g.allocator = 'jemalloc' THEN 'purge' ELSE 'other' END AS kind
	FROM giveback_site g
),
heap AS MATERIALIZED (SELECT pid, MAX(span_bytes) AS span FROM kinds WHERE how = 'brk'
	GROUP BY pid),
known AS MATERIALIZED (
	SELECT pid, MAX(CASE kind WHEN 'glibc' THEN COALESCE(mmap_threshold_high,
		mmap_threshold_low) END) AS threshold,
			MAX(CASE WHEN kind <> 'glibc' THEN tunables END)
		AS tunables
	FROM allocator GROUP BY pid
),
-- of calloc, what came fresh to a kept heap: all of it, as far as calls were seen, and what the
-- heap grew by in them, which is known whether they were or not
fresh AS MATERIALIZED (
	SELECT pid, MAX(bytes) AS bytes FROM (
		SELECT pid, SUM(bytes * (1.0 - 1.0 * mmapped_calls / MAX(calls, 1))
			- cleared_bytes) AS bytes
		FROM call_cost WHERE call = 'calloc' AND known_clearing GROUP BY pid
		UNION ALL
		SELECT m.pid, SUM(m.bytes) FROM map_cost m
		LEFT JOIN stack_call s ON m.in_call = '' AND s.stack_id = m.stack_id
		WHERE m.call = 'brk' AND COALESCE(NULLIF(m.in_call, ''), s.call) = 'calloc'
		GROUP BY m.pid)
	GROUP BY pid
),
moved AS MATERIALIZED (
	SELECT m.pid, SUM(m.bytes) AS bytes FROM map_cost m
	LEFT JOIN stack_call s ON m.in_call = '' AND s.stack_id = m.stack_id
	WHERE m.call = 'mremap' AND COALESCE(NULLIF(m.in_call, ''), s.call) LIKE 'realloc%'
	GROUP BY m.pid
),
total AS MATERIALIZED (
	SELECT k.kind, k.pid, SUM(k.time_ns) AS time_ns, SUM(k.again_ns) AS again_ns,
		SUM(k.again_touch_ns) AS again_touch_ns, SUM(k.gave_ns) AS gave_ns,
		SUM(k.calls) AS calls, SUM(k.gave_bytes) AS gave_bytes,
		SUM(k.again_bytes) AS again_bytes, SUM(k.again_bytes_per_s) AS again_bytes_per_s,
		SUM(k.twice_bytes) AS twice_bytes, SUM(k.again_faults) AS again_faults,
		2 * SUM(k.again_touch_ns) < SUM(k.again_ns) AS populated,
		SUM(CASE k.how WHEN 'stack' THEN k.calls ELSE 0 END) AS stacks_given,
		SUM(CASE k.how WHEN 'stack_unmapped' THEN k.calls ELSE 0 END) AS stacks_unmapped,
		MAX(k.largest_bytes) AS largest_bytes, MAX(k.span_bytes) AS span_bytes,
		MAX(k.how <> 'brk') AS not_brk, MIN(k.how <> 'brk') AS in_arenas,
		MIN(k.rank) AS rank,
		2 * SUM(k.thread_calls) > SUM(k.calls) AS threads,
		SUM(k.memset_bytes) AS memset_bytes,
		SUM(k.time_ns * k.calloc_bytes / k.again_bytes) AS calloc_ns,
		ROW_NUMBER() OVER (PARTITION BY k.kind ORDER BY SUM(k.time_ns) DESC,
			k.pid) AS number
	FROM kinds k WHERE k.again_bytes > 0 GROUP BY k.kind, k.pid
),
needed AS MATERIALIZED (	-- room for what goes and comes
	SELECT t.*, n.threshold, n.tunables,
		-- what is not trimmed any more would go with its heap
		t.kind = 'trim' AND t.pid IN (SELECT pid FROM kinds WHERE kind = 'heap'
			AND calls >= 2) AS heaps_go,
		MAX(1.25 * t.largest_bytes, COALESCE(n.threshold, 0)) AS block_bytes,
		2 * MAX(t.span_bytes + CASE t.kind WHEN 'map' THEN COALESCE(h.span, 0) ELSE 0 END,
			CASE WHEN t.kind = 'map' THEN t.largest_bytes
				WHEN t.not_brk THEN 33554432 - 1 ELSE 0 END) AS top_bytes,
		-- jemalloc's calloc purges what was kept, instead of a memset
		CASE WHEN t.kind = 'purge' THEN t.calloc_ns
			WHEN t.kind NOT IN ('trim', 'heap', 'map') THEN 0.0
			-- a price that is not known may be as much as is saved
			WHEN r.memset <= 0 THEN CASE WHEN t.memset_bytes > 0 THEN t.time_ns
				ELSE 0.0 END
			ELSE CASE WHEN t.kind <> 'map' AND t.memset_bytes > 0
				THEN MAX(t.memset_bytes, COALESCE(f.bytes, 0))
				ELSE t.memset_bytes END * 1e9 / r.memset END AS memset_ns,
		CASE WHEN t.kind NOT IN ('trim', 'heap', 'map') THEN 0.0
			WHEN r.memcpy <= 0 THEN CASE WHEN m.bytes > 0 THEN t.time_ns ELSE 0.0 END
			ELSE COALESCE(m.bytes, 0) * 1e9 / r.memcpy END AS copy_ns
	FROM total t
	JOIN (SELECT l.column1 AS large, CASE WHEN l.column1 AND clear_2m_bytes_per_s > 0
			THEN MIN(memset_bytes_per_s, clear_2m_bytes_per_s)
			ELSE memset_bytes_per_s END AS memset,
		CASE WHEN l.column1 AND clear_2m_bytes_per_s > 0
			THEN MIN(memcpy_bytes_per_s, clear_2m_bytes_per_s)
			ELSE memcpy_bytes_per_s END AS memcpy
		FROM (VALUES (0), (1)) l JOIN calibrated) r
		ON r.large = (t.largest_bytes >= 4194304)
	LEFT JOIN heap h ON h.pid = t.pid LEFT JOIN known n ON n.pid = t.pid
	LEFT JOIN fresh f ON f.pid = t.pid LEFT JOIN moved m ON m.pid = t.pid
	WHERE t.number = 1
)
SELECT t.kind, t.pid, 2 * t.again_bytes >= t.gave_bytes AND t.calls >= 2 AS storm,
	2 * t.again_bytes >= t.gave_bytes AND t.calls >= 2
		AND t.time_ns > t.memset_ns + t.copy_ns AS worth,
	t.time_ns, t.again_ns, t.again_touch_ns, t.gave_ns, t.calls, t.gave_bytes, t.again_bytes,
	t.again_bytes_per_s, t.twice_bytes, t.again_faults, t.populated, t.largest_bytes,
	t.span_bytes, t.stacks_given, t.stacks_unmapped, t.threshold, t.tunables, k.allocator,
	k.gave_call, k.got_call, k.how, t.threads,
	t.memset_ns, t.copy_ns,
	CASE WHEN t.kind = 'map'
		THEN (SELECT MIN(p.bytes) FROM power_of_two p WHERE p.bytes > t.block_bytes)
		WHEN t.kind IN ('trim', 'heap') AND COALESCE(t.threshold, 131073) > 131072
		THEN MAX(33554432, (SELECT MIN(p.bytes) FROM power_of_two p
			WHERE p.bytes >= COALESCE(t.threshold, 0))) END AS mmap_value,
	-- an arena's heap has no more at its top than that top_pad leaves there
	CASE WHEN t.kind = 'map' OR (t.kind = 'trim' AND NOT (t.heaps_go AND t.in_arenas))
		THEN (SELECT MIN(p.bytes) FROM power_of_two p WHERE p.bytes > t.top_bytes) END
		AS trim_value,
	t.kind = 'map' AND t.threads AND t.largest_bytes > 60 * 1048576 AS one_arena,
	CASE WHEN t.kind = 'heap' OR t.heaps_go
		OR (t.kind = 'map' AND t.threads AND t.largest_bytes <= 60 * 1048576)
		THEN 67108864 END AS pad_value,
	(SELECT CASE WHEN k.gave_call = '' THEN p.code ELSE p.caller END
		FROM stack_place p WHERE p.stack_id = k.gave_stack) AS gave_place,
	(SELECT CASE WHEN k.got_call IN ('', 'mmap') THEN p.code ELSE p.caller END
		FROM stack_place p WHERE p.stack_id = k.got_stack) AS got_place,
	EXISTS (SELECT 1 FROM stack_line l WHERE l.stack_id = k.gave_stack
		AND l.function IN ('malloc_trim', '__malloc_trim')) AS trim_call
FROM needed t JOIN kinds k ON k.rank = t.rank;

-- Every kind, for the figures of the advice: NULL but for its name where there is none of it.
CREATE VIEW giveback_kind AS
SELECT k.column1 AS kind, s.time_ns, s.again_ns, s.gave_ns, s.calls, s.gave_bytes, s.again_bytes,
	s.again_bytes_per_s, s.twice_bytes, s.again_faults, s.largest_bytes, s.span_bytes,
	s.threshold, s.allocator, s.gave_call, s.got_call, s.how, s.memset_ns, s.gave_place,
	s.got_place,
	-- the variable that a jemalloc with a prefix reads
	(SELECT UPPER(SUBSTR(p.symbol, 1, LENGTH(p.symbol) - 6)) FROM allocator_probe p
		JOIN allocator a ON a.pid = p.pid AND a.module = p.module
		WHERE p.pid = s.pid AND a.kind = 'jemalloc' AND p.call = 'malloc'
			AND p.symbol LIKE '%malloc' ORDER BY p.symbol LIMIT 1) AS prefix
FROM (VALUES ('trim'), ('heap'), ('map'), ('purge'), ('other'), ('stack'),
	('own')) k
LEFT JOIN giveback_storm s ON s.kind = k.column1;

-- All as one row, for the conditions of the advice.
CREATE VIEW giveback_weight AS
SELECT
	MAX(CASE kind WHEN 'trim' THEN pid END) AS trim_pid,
	MAX(CASE kind WHEN 'heap' THEN pid END) AS heap_pid,
	MAX(CASE kind WHEN 'map' THEN pid END) AS map_pid,
	MAX(CASE kind WHEN 'purge' THEN pid END) AS purge_pid,
	MAX(CASE kind WHEN 'other' THEN pid END) AS other_pid,
	MAX(CASE kind WHEN 'stack' THEN pid END) AS stack_pid,
	MAX(CASE kind WHEN 'trim' THEN storm END) AS trim_storm,
	MAX(CASE kind WHEN 'heap' THEN storm END) AS heap_storm,
	MAX(CASE kind WHEN 'map' THEN storm END) AS map_storm,
	MAX(CASE kind WHEN 'purge' THEN storm END) AS purge_storm,
	MAX(CASE kind WHEN 'other' THEN storm END) AS other_storm,
	MAX(CASE kind WHEN 'stack' THEN storm END) AS stack_storm,
	MAX(CASE kind WHEN 'own' THEN storm END) AS own_storm,
	COALESCE(MAX(CASE kind WHEN 'trim' THEN time_ns - memset_ns - copy_ns END), 0.0)
		AS trim_storm_ns,
	COALESCE(MAX(CASE kind WHEN 'heap' THEN time_ns - memset_ns - copy_ns END), 0.0)
		AS heap_storm_ns,
	COALESCE(MAX(CASE kind WHEN 'map' THEN time_ns - memset_ns - copy_ns END), 0.0)
		AS map_storm_ns,
	COALESCE(MAX(CASE kind WHEN 'purge' THEN time_ns - memset_ns END), 0.0) AS purge_storm_ns,
	COALESCE(MAX(CASE kind WHEN 'other' THEN time_ns END), 0.0) AS other_storm_ns,
	COALESCE(MAX(CASE kind WHEN 'stack' THEN time_ns END), 0.0) AS stack_storm_ns,
	COALESCE(MAX(stacks_given), 0) AS stacks_given,
	COALESCE(MAX(stacks_unmapped), 0) AS stacks_unmapped,
	COALESCE(MAX(CASE kind WHEN 'own' THEN time_ns END), 0.0) AS own_storm_ns,
	COALESCE(SUM(CASE WHEN worth THEN again_touch_ns END), 0.0) AS storm_touch_ns,
	-- of it, pages that calloc clears again
	COALESCE(SUM(CASE WHEN worth THEN again_touch_ns
		* MIN(1.0, 1.0 * twice_bytes / MAX(again_bytes, 1)) END), 0.0) AS storm_twice_ns,
	COALESCE(SUM(CASE WHEN worth THEN gave_ns END), 0.0) AS storm_gave_ns,
	-- the calls that fault it in have the advice then
	COALESCE(MAX(CASE kind WHEN 'own' THEN storm AND populated END), 0)
		AS own_storm_populated,
	COALESCE(MAX(CASE kind WHEN 'stack' THEN storm AND populated END), 0)
		AS stack_storm_populated,
	-- of the heaps that a setting keeps
	COALESCE(SUM(CASE WHEN kind IN ('trim', 'heap') AND storm THEN twice_bytes END), 0)
		AS kept_twice,
	-- of what was given back once only: the heap's growth before it clears as much twice
	COALESCE(SUM(CASE WHEN kind = 'trim' AND NOT storm THEN twice_bytes END), 0) AS once_twice,
	COALESCE(SUM(CASE WHEN kind IN ('trim', 'heap') AND worth THEN again_touch_ns
		* MIN(1.0, 1.0 * twice_bytes / MAX(again_bytes, 1)) END), 0.0) AS kept_twice_ns,
	MAX(CASE kind WHEN 'trim' THEN 10
		* twice_bytes >= again_bytes END) AS trim_storm_clears_twice,
	MAX(CASE kind WHEN 'trim' THEN mmap_value IS NOT NULL END) AS trim_storm_needs_both,
	MAX(CASE kind WHEN 'trim' THEN pad_value IS NOT NULL END) AS trim_storm_pad,
	MAX(CASE kind WHEN 'map' THEN one_arena END) AS map_storm_one_arena,
	MAX(CASE kind WHEN 'map' THEN pad_value IS NOT NULL END) AS map_storm_pad,
	COALESCE(MAX(CASE WHEN kind IN ('trim', 'heap', 'map') THEN storm END), 0) AS glibc_storm,
	MAX(CASE kind WHEN 'purge' THEN largest_bytes < 8388608
		AND tunables LIKE '%dirty_decay_ms:%'
		AND NOT tunables LIKE '%dirty_decay_ms:_____%' END) AS purge_storm_is_set,
	MAX(CASE kind WHEN 'purge' THEN gave_call = '' END) AS purge_storm_itself,
	MAX(CASE kind WHEN 'other' THEN gave_call = '' END) AS other_storm_itself,
	MAX(CASE kind WHEN 'other' THEN how END) AS other_storm_how,
	MAX(CASE kind WHEN 'other' THEN tunables LIKE '%TCMALLOC!_AGGRESSIVE!_DECOMMIT=%'
		ESCAPE '!' END) AS other_storm_aggressive,
	MAX(CASE kind WHEN 'own' THEN trim_call END) AS own_storm_trims,
	MAX(CASE kind WHEN 'own' THEN how = 'dontneed' AND NOT trim_call END) AS own_storm_dontneed
FROM giveback_storm;

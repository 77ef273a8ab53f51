-- SPDX-License-Identifier: GPL-2.0
--
-- allocators.sql: which allocator each process has, how much of it is seen, and who clears what its
-- calloc returns. Follows tolls.sql.

-- What the calls of each allocator take, and the touches of blocks that it made: the first frame
-- of a call is the allocator's function, in its module. Of several processes that have the same
-- stack it is the first that it was seen in. share: of the observed time.
CREATE VIEW allocator_toll AS
SELECT a.pid, a.module, s.toll, SUM(s.time_ns) AS time_ns, SUM(s.bytes) AS bytes,
	CASE WHEN o.observed_ns > 0 THEN MIN(1.0, SUM(s.time_ns) / o.observed_ns) ELSE 0.0 END
		AS share
FROM sites s JOIN stack k ON k.stack_id = s.allocated_stack
JOIN stack_frame l ON l.stack_id = k.stack_id AND l.depth = 0
JOIN frame f ON f.frame_id = l.frame_id
JOIN allocator a ON a.pid = k.pid AND a.module = f.module
JOIN observed o
WHERE s.call <> '' AND s.toll <> 'map' GROUP BY a.pid, a.module, s.toll;

-- How many calls of each allocator were seen: glibc's are counted by themselves, of several others
-- in one process the function's module tells. coverage is a sentence; complete: 1 where every
-- function that was found is probed.
CREATE VIEW allocator_coverage AS
WITH RECURSIVE
word(pid, module, word, rest) AS (	-- recordings without allocator_probe have 'malloc+0 free+3'
					-- only
	SELECT pid, module, '', SUBSTR(functions, 1, 1000) || ' ' FROM allocator WHERE linkage = ''
	UNION ALL SELECT pid, module, SUBSTR(rest, 1, INSTR(rest, ' ') - 1),
		SUBSTR(rest, INSTR(rest, ' ') + 1) FROM word WHERE rest <> ''
),
probes AS MATERIALIZED (
	SELECT pid, module, symbol, call, offset, timed, refusal FROM allocator_probe
	UNION ALL SELECT pid, module, SUBSTR(word, 1, INSTR(word, '+') - 1),
		SUBSTR(word, 1, INSTR(word, '+') - 1),
		CAST(SUBSTR(word, INSTR(word, '+') + 1) AS INTEGER), 1, '' FROM word
			WHERE word LIKE '_%+%'
),
probe AS MATERIALIZED (
	SELECT pid, module, COUNT(*) AS functions, COUNT(offset) AS probed,
		group_concat(CASE WHEN offset IS NULL THEN symbol || ' (' || refusal || ')' END,
			', ')
			AS unseen,
		group_concat(CASE WHEN offset IS NOT NULL AND NOT timed THEN symbol END, ', ')
			AS untimed
	FROM probes GROUP BY pid, module
),
watched AS MATERIALIZED (SELECT call, share FROM duty_cycle WHERE share < 0.9995),
seen AS MATERIALIZED (	-- what was watched throughout, past the threads' caches alone, and what
			-- the budget took away at times
	SELECT pid, module, group_concat(CASE WHEN share IS NULL AND cached_bytes IS NULL
			THEN call END, ', ') AS calls,
		group_concat(CASE WHEN share IS NULL AND cached_bytes IS NOT NULL
			THEN call END, ', ') AS past,
		group_concat(CASE WHEN share IS NOT NULL THEN call END, ', ') AS at_times,
		MIN(share) AS share, MAX(cached_bytes) AS cached_bytes
	FROM (
		SELECT p.pid, p.module, p.call, w.share, c.cached_bytes FROM probes p
		LEFT JOIN watched w ON w.call = p.call
		LEFT JOIN past_cache c ON c.pid = p.pid AND c.module = p.module AND c.call = p.call
		WHERE p.offset IS NOT NULL GROUP BY p.pid, p.module, p.call
		ORDER BY p.pid, p.module, CASE p.call WHEN 'malloc' THEN 1 WHEN 'calloc' THEN 2
			WHEN 'realloc' THEN 3 WHEN 'free' THEN 4 ELSE 5 END, p.call)
	GROUP BY pid, module
),
counted AS MATERIALIZED (
	SELECT pid, SUM(CASE WHEN known_clearing THEN calls ELSE 0 END) AS glibc_calls,
		SUM(CASE WHEN known_clearing THEN 0 ELSE calls END) AS other_calls
	FROM call_estimate GROUP BY pid
),
by_module AS MATERIALIZED (	-- of several, by the function's module
	SELECT c.pid, f.module, SUM(c.calls) AS calls FROM call_estimate c
	JOIN stack_frame l ON l.stack_id = c.stack_id AND l.depth = 0
	JOIN frame f ON f.frame_id = l.frame_id WHERE NOT c.known_clearing GROUP BY c.pid, f.module
),
others AS MATERIALIZED (	-- allocators besides glibc's that may have made calls
	SELECT a.pid, COUNT(*) AS allocators FROM allocator a JOIN probe p
		ON p.pid = a.pid AND p.module = a.module
	WHERE a.kind <> 'glibc' AND p.probed > 0 GROUP BY a.pid
)
SELECT a.pid, a.module, a.kind, a.version, a.linkage, a.tunables,
	COALESCE(p.functions, 0) AS functions, COALESCE(p.probed, 0) AS probed,
	COALESCE(p.functions = p.probed, 0) AS complete,
	CASE WHEN COALESCE(p.probed, 0) = 0 THEN 0 WHEN a.kind = 'glibc'
		THEN COALESCE(c.glibc_calls, 0)
		WHEN o.allocators = 1 THEN COALESCE(c.other_calls, 0)
		ELSE m.calls END AS calls,
	CASE WHEN p.functions IS NULL AND a.kind = 'go'
		THEN 'Go''s own allocator takes its memory by '
			|| 'mmap: its objects are not seen, only faults and mapping calls'
		WHEN p.functions IS NULL THEN 'no malloc symbol: faults and mappings only'
		WHEN p.probed = 0 THEN 'not probed: faults and mappings only ('
			|| (SELECT MIN(refusal) FROM allocator_probe x
				WHERE x.pid = a.pid AND x.module = a.module) || ')'
		ELSE COALESCE(s.calls || ' seen: 100 %', '')
			|| CASE WHEN s.calls <> '' AND s.past <> '' THEN '; ' ELSE '' END
			|| COALESCE(s.past || ' seen past the threads'' caches: all of more than '
				|| PRINTF('%,d bytes', s.cached_bytes), '')
			|| CASE WHEN COALESCE(s.calls, s.past) <> '' AND s.at_times <> ''
				THEN '; ' ELSE '' END
			|| COALESCE(s.at_times || ' seen: '
				|| PRINTF('%.3g %% of the time, and scaled',
				100 * s.share), '')
			|| COALESCE('; ' || p.untimed || ' counted, not timed', '')
			|| COALESCE('; not seen: ' || p.unseen, '') END AS coverage
FROM allocator a LEFT JOIN probe p ON p.pid = a.pid AND p.module = a.module
LEFT JOIN seen s ON s.pid = a.pid AND s.module = a.module
LEFT JOIN counted c ON c.pid = a.pid
LEFT JOIN others o ON o.pid = a.pid
LEFT JOIN by_module m ON m.pid = a.pid AND m.module = a.module;

-- Who clears what calloc returns. rule: 'chunk header' (glibc: exact), 'observation', or 'none'.
-- cleared_by: 'memset' (calloc writes all of it), 'kernel' (fresh or purged pages), 'both' (the
-- kernel clears a page, then memset does), 'some' (part of it by memset), 'unknown'. Observation
-- looks at the sites whose callocs are large on average: the faults that memset takes inside
-- calloc; what calloc maps (as often and as much as it returns, without such faults: fresh, and not
-- written); the time, against what writing the bytes takes (a tenth or less: they were not written;
-- half or more: they were); CPU samples inside calloc, where there are four (half of them in
-- memset: written); and shows calloc's own madvise and mmap. agrees: whether CPU samples inside
-- calloc that are in memset go with the rule's share of its time; within 10 % of it and twice the
-- samples' standard error; NULL where there is nothing to compare.
CREATE VIEW allocator_clearing AS
WITH
large AS MATERIALIZED (
	SELECT c.pid, c.known_clearing, SUM(c.calls) AS calls, SUM(c.bytes) AS bytes,
		SUM(c.cleared_calls) AS cleared_calls, SUM(c.cleared_bytes) AS cleared_bytes,
		SUM(c.zero_libc_ns + c.alloc_ns) AS net_ns
	FROM call_cost c WHERE c.call = 'calloc' AND c.calls > 0
		AND c.bytes / c.calls >= COALESCE((SELECT CAST(value AS INTEGER) FROM meta
			WHERE key = 'min_size_bytes'), 65536)
	GROUP BY c.pid, c.known_clearing
),
every AS MATERIALIZED (
	SELECT pid, known_clearing, SUM(zero_libc_ns) AS clearing_ns,
		SUM(zero_libc_ns + alloc_ns) AS net_ns
	FROM call_cost WHERE call = 'calloc' AND calls > 0 GROUP BY pid, known_clearing
),
sampled AS MATERIALIZED (
	SELECT pid, SUM(samples) AS n,
		SUM(CASE place WHEN 'calloc_memset' THEN samples ELSE 0 END) AS k
	FROM sample WHERE in_call = 'calloc' AND place NOT IN ('fault', 'map', 'probe') GROUP BY pid
),
faulted AS MATERIALIZED (
	SELECT f.pid, SUM(f.pages) * 4096 AS bytes FROM process_fault f
	JOIN fault_class k ON k.class = f.class
	WHERE k.toll = 'zero.kernel' AND k.writes_page AND f.in_memset AND f.in_call = 'calloc'
	GROUP BY f.pid
),
mapped AS MATERIALIZED (
	SELECT pid, SUM(CASE call WHEN 'madvise' THEN calls ELSE 0 END) AS purges,
		SUM(CASE call WHEN 'mmap' THEN calls ELSE 0 END) AS mappings,
		SUM(CASE call WHEN 'mmap' THEN bytes ELSE 0 END) AS mapped_bytes
	FROM map_call WHERE in_call = 'calloc' GROUP BY pid
),
evident AS MATERIALIZED (
	SELECT a.pid, a.module, a.kind, a.probed, l.calls, l.bytes, l.cleared_calls,
		l.cleared_bytes,
		l.net_ns, CASE WHEN c.memset_bytes_per_s > 0
			THEN 1e9 * l.bytes / c.memset_bytes_per_s END AS memset_ns,
		COALESCE(s.n, 0) AS n, COALESCE(s.k, 0) AS k, COALESCE(f.bytes, 0) AS faulted_bytes,
		COALESCE(m.purges, 0) AS purges, COALESCE(m.mappings, 0) AS mappings,
		COALESCE(m.mapped_bytes, 0) AS mapped_bytes,
		e.clearing_ns / e.net_ns AS rule_share,
		EXISTS (SELECT 1 FROM every x WHERE x.pid = a.pid
			AND x.known_clearing <> (a.kind = 'glibc')) AS mixed
	FROM allocator_coverage a JOIN calibrated c
	LEFT JOIN large l ON l.pid = a.pid AND l.known_clearing = (a.kind = 'glibc')
	LEFT JOIN every e ON e.pid = a.pid AND e.known_clearing = (a.kind = 'glibc')
		AND e.net_ns > 0
	LEFT JOIN sampled s ON s.pid = a.pid
	LEFT JOIN faulted f ON f.pid = a.pid
	LEFT JOIN mapped m ON m.pid = a.pid
),
judged AS MATERIALIZED (
	SELECT *,
		CASE WHEN kind = 'glibc' AND probed > 0 THEN 'chunk header' WHEN probed > 0
			THEN 'observation' ELSE 'none' END AS rule,
		CASE WHEN probed = 0 OR calls IS NULL THEN 'unknown'
		WHEN kind = 'glibc' THEN CASE WHEN 10 * cleared_bytes >= 9 * bytes THEN 'memset'
			WHEN 10 * cleared_bytes <= bytes THEN 'kernel' ELSE 'some' END
		WHEN 2 * faulted_bytes >= bytes THEN 'both'
		WHEN 10 * mappings >= 9 * calls AND 10 * mapped_bytes >= 9 * bytes
			AND 10 * faulted_bytes <= bytes AND k < 2 THEN 'kernel'
		-- Samples come every 10 ms. What they saw goes before times, which are what is left
		-- of a call when the faults in it, timed in part, are taken out.
		WHEN n >= 4 AND 2 * k >= n AND 10 * k * 10.1e6 >= memset_ns THEN 'memset'
		WHEN 10 * net_ns <= memset_ns AND k < 2 THEN 'kernel'
		WHEN n < 4 AND 2 * net_ns >= memset_ns THEN 'memset'
		WHEN n >= 4 AND k > 0 THEN 'some'
		ELSE 'unknown' END AS cleared_by
	FROM evident
)
SELECT pid, module, rule, cleared_by, COALESCE(calls, 0) AS calls, COALESCE(bytes, 0) AS bytes,
	n AS samples, k AS memset_samples,
	CASE WHEN rule = 'chunk header' AND n > 0 AND rule_share IS NOT NULL AND NOT mixed
		THEN (1.0 * k / n - rule_share) * (1.0 * k / n - rule_share) <= 0.01 + 1.0 / n END
		AS agrees,
	CASE WHEN rule = 'none' THEN 'its calls are not seen'
	WHEN calls IS NULL THEN 'no large calloc was seen'
	WHEN rule = 'chunk header'
		THEN PRINTF('the chunks'' headers say so: of %,d large callocs %,d '
		|| 'were cleared, %.1f of %.1f MiB', calls, cleared_calls, cleared_bytes
			/ 1048576.0,
		bytes / 1048576.0)
		|| CASE WHEN n > 0 AND rule_share IS NOT NULL AND NOT mixed
			THEN PRINTF('; CPU samples inside calloc: %d of %d in memset, where the '
				|| 'headers '
			|| 'make it %.0f %% of the time', k, n, 100 * rule_share) ELSE '' END
	ELSE PRINTF('%,d large callocs of %.1f MiB in all took %.1f ms, faults and mapping calls '
		|| 'taken '
		|| 'out; to write as much takes %.1f ms', calls, bytes / 1048576.0, net_ns / 1e6,
		memset_ns / 1e6)
		|| PRINTF('; their memset was the first to touch %.1f MiB', faulted_bytes
			/ 1048576.0)
		|| PRINTF('; %,d madvise and %,d mmap inside calloc', purges, mappings)
		|| CASE WHEN mappings > 0 THEN PRINTF(', of %.1f MiB', mapped_bytes / 1048576.0)
			ELSE '' END
		|| CASE WHEN n > 0 THEN PRINTF('; CPU samples: %d of %d in memset', k, n)
			ELSE '' END
	END AS evidence
FROM judged;

-- The same as text, one paragraph a row: allocators of all processes, each once; those that made no
-- call in a process where another did are left out.
CREATE VIEW allocator_text AS
WITH
part AS MATERIALIZED (	-- of all processes, as a line is of all that have the same
	SELECT module, toll, SUM(share) AS share FROM allocator_toll GROUP BY module, toll
),
taken AS MATERIALIZED (	-- of one alone it is what TOLL has
	SELECT module, group_concat(PRINTF('%s %.0f %%', toll, 100.0 * share), ', ') AS tolls
	FROM (SELECT * FROM part ORDER BY share DESC)
	WHERE share >= 0.005 AND (SELECT COUNT(DISTINCT module) FROM part) > 1 GROUP BY module
),
used AS MATERIALIZED (
	SELECT c.*, MAX(COALESCE(c.calls, 1)) OVER (PARTITION BY c.pid) AS most
	FROM allocator_coverage c
),
named AS MATERIALIZED (
	SELECT u.kind || RTRIM(' ' || u.version) || ' (' || u.linkage || '), ' || u.module AS name,
		u.coverage, u.tunables, l.rule, l.cleared_by, l.evidence, l.calls AS callocs,
			u.calls, u.kind, t.tolls,
		ROW_NUMBER() OVER (PARTITION BY u.kind, u.version, u.linkage,
			u.module, u.coverage, u.tunables ORDER BY l.bytes DESC, u.pid) AS number,
		COUNT(*) OVER (PARTITION BY u.kind, u.version, u.linkage, u.module, u.coverage,
			u.tunables) AS same
	FROM used u JOIN allocator_clearing l ON l.pid = u.pid AND l.module = u.module
	LEFT JOIN taken t ON t.module = u.module
	WHERE u.most = 0 OR u.calls IS NULL OR u.calls > 0 OR u.probed = 0
)
SELECT ROW_NUMBER() OVER (ORDER BY callocs DESC, COALESCE(calls, 0) DESC, name,
	tunables) AS position,
	name || CASE WHEN same > 1 THEN ', in ' || same || ' processes' ELSE '' END
	|| ': ' || coverage || '.'
	|| CASE WHEN tunables <> '' THEN ' Settings: ' || tunables || '.' ELSE '' END
	|| COALESCE(' Its calls and blocks: ' || tolls || '.', '')
	|| CASE WHEN callocs > 0 AND rule <> 'none' THEN ' Large callocs are cleared by '
		|| CASE cleared_by WHEN 'memset' THEN 'its memset' WHEN 'kernel' THEN 'the kernel'
		WHEN 'both' THEN 'the kernel and then by its memset'
		WHEN 'some' THEN 'its memset in part'
		ELSE 'whom is unknown' END || ': ' || evidence || '.'
	ELSE '' END AS text
FROM named WHERE number = 1;

-- For the report.
CREATE VIEW allocator_json AS
SELECT a.pid, a.module, json_object('pid', a.pid, 'kind', a.kind, 'version', a.version,
	'module', a.module, 'linkage', a.linkage, 'calls', a.calls, 'tunables', a.tunables,
	'tolls', json((SELECT json_group_object(toll, ROUND(time_ns / 1e9, 9)) FROM (
		SELECT toll, time_ns FROM allocator_toll t
		WHERE t.pid = a.pid AND t.module = a.module ORDER BY toll))),
	'coverage', a.coverage, 'complete', json(CASE WHEN a.complete THEN 'true' ELSE 'false' END),
	'probes', json((SELECT json_group_array(json(probe)) FROM (
		SELECT json_object('symbol', p.symbol, 'call', p.call,
			'offset', CASE WHEN c.pid IS NULL THEN p.offset END,
			'instruction', CASE WHEN c.pid IS NULL THEN p.instruction
				ELSE 'past the cache' END,
			'timed', json(CASE COALESCE(c.timed, p.timed) WHEN 0 THEN 'false'
				ELSE 'true' END),
			'refusal', p.refusal) AS probe
		FROM allocator_probe p LEFT JOIN past_cache c ON c.pid = p.pid
			AND c.module = p.module AND c.call = p.call AND c.call = p.symbol
		WHERE p.pid = a.pid AND p.module = a.module
			ORDER BY p.symbol))),
	'clearing', CASE WHEN c.pid IS NOT NULL THEN json_object('rule', c.rule,
		'cleared_by', c.cleared_by, 'calls', c.calls,
		'bytes', c.bytes, 'samples', c.samples, 'memset_samples', c.memset_samples,
		'agrees', json(CASE c.agrees WHEN 1 THEN 'true' WHEN 0 THEN 'false'
			ELSE 'null' END),
		'evidence', c.evidence) END) AS json
FROM allocator_coverage a LEFT JOIN allocator_clearing c ON c.pid = a.pid AND c.module = a.module;

-- SPDX-License-Identifier: GPL-2.0
--
-- prices.sql: the tolls there are, and what one hit of a probe and one fault of a class cost.
-- Follows recording.sql; tolls.sql has the rules that all views keep.

-- What each toll is called and looks like wherever it is shown: on the page, in pictures, on a
-- terminal. The colours have a luminance of 0.13 to 0.30, so that each stands out at least 3:1 from
-- a light and from a dark ground (WCAG 2.2, 1.4.11).
CREATE VIEW toll_word AS
SELECT column1 AS toll, column2 AS colour, column3 AS meaning FROM (VALUES
	('zero.kernel', '#c9372c', 'the kernel clears a page at its first touch'),
	('zero.libc',   '#e8590c', 'memset inside of calloc, on reused memory'),
	('zero.app',    '#b97f14', 'zeros stored by the program or a library'),
	('swap.in',     '#2f78d0', 'faults on pages that were on swap'),
	('swap.out',    '#0f8fa3', 'pages pushed out to swap, by whomever'),
	('reclaim',     '#7358d8', 'stalls to make room for pages'),
	('cow',         '#c2408f', 'pages copied when written'),
	('file.fault',  '#2f9e44', 'faults on files and shared memory'),
	('file.read',   '#6d9c1e', 'reads of regular files'),
	('fault.user',  '#d6336c', 'faults that wait for a userfaultfd handler'),
	('fault.other', '#8a8f3c', 'faults of no other kind'),
	('alloc',       '#a06a3c', 'the allocator''s own work'),
	('map',         '#b04a5a', 'mmap, munmap, mremap, brk, madvise'),
	('copy.app',    '#5a7d7c', 'memory copied by the program or a library'),
	('compute',     '#7d8590', 'everything else on the processor'));

-- A toll without a source (0) is one that no table holds yet.
CREATE VIEW toll_kind AS
WITH kind(position, toll, family, source) AS (VALUES
	(1,  'zero.kernel', 'zeroing',   1),
	(2,  'zero.libc',   'zeroing',   1),
	(3,  'zero.app',    'zeroing',   1),
	(4,  'swap.in',     'swap',      1),
	(5,  'swap.out',    'swap',      1),
	(6,  'reclaim',     'swap',      1),
	(7,  'cow',         'cow',       1),
	(8,  'file.fault',  'file',      1),
	(9,  'file.read',   'file',      1),
	(10, 'fault.user',  'userfault', 1),
	(11, 'fault.other', 'other',     1),
	(12, 'alloc',       'allocator', 1),
	(13, 'map',         'mapping',   1),
	(14, 'copy.app',    'compute',   1),
	(15, 'compute',     'compute',   1))
SELECT k.position, k.toll,
	-- where nothing goes to swap, what is reclaimed is pages of files
	CASE WHEN k.toll = 'reclaim' AND (EXISTS (SELECT 1 FROM page_fill WHERE in_pages >= 256
			UNION ALL SELECT 1 FROM page_drop WHERE what = 'file' AND how = 'madvise')
			OR NOT EXISTS (SELECT 1 FROM not_captured WHERE toll = 'swap.out'))
		AND NOT EXISTS (SELECT 1 FROM swap WHERE pid > 0 AND what NOT LIKE 'reclaim%')
		THEN 'file' ELSE k.family END AS family,
	CASE WHEN n.toll IS NOT NULL THEN n.reason
	     WHEN k.toll IN ('alloc', 'zero.libc') AND EXISTS (SELECT 1 FROM allocator)
		AND NOT EXISTS (SELECT 1 FROM allocator_probe) AND NOT EXISTS (SELECT 1 FROM call)
		THEN 'no symbol tells where an allocator''s functions are'
	     WHEN k.source = 0 THEN 'this version has no probe for it' END AS not_captured
FROM kind k LEFT JOIN not_captured n ON n.toll = k.toll;

-- The square root, which SQLite has only where it was built with its mathematical functions: ask
-- for root WHERE v = what it is wanted of. (json_each takes v as an argument.) Newton's x' = (x + v
-- / x) / 2 from above falls towards the root until doubles have no room between them, and so never
-- understates it.
CREATE VIEW square_root AS
SELECT json AS v, (
	WITH RECURSIVE step(x, above) AS (
		SELECT value + 1.0, value + 2.0
		UNION ALL SELECT (x + value / x) / 2, x FROM step WHERE x < above AND value > 0)
	SELECT CASE WHEN value > 0 THEN MIN(x) ELSE 0.0 END FROM step) AS root
FROM json_each;

-- ---------------------------------------------------------------- prices

-- An allocator function that was not calibrated costs what malloc costs: same probe. A fault costs
-- what it does in the calibration, and as much more as it was seen to (fault_more); a read what it
-- was seen to, all in all (read_paid), a mapping call where small ones were passed over (map_paid),
-- and what no clock sees of it besides (map_more).
-- Table price is named once here, and not four times, because what is built on this view names it
-- thousands of times, and SQLite takes 65,535. Of two rows of a probe MIN() picks its own (SQLite's
-- bare columns).
CREATE VIEW probe_price AS
WITH
each AS (
	SELECT COALESCE(f.probe, p.probe) AS probe, p.hit_ns, p.inside_ns, p.error_ns,
		MIN(COALESCE(f.probe <> p.probe, 0))
	FROM price p LEFT JOIN (SELECT column1 AS probe
		FROM (VALUES ('malloc'), ('calloc'), ('realloc'),
		('reallocarray'), ('free'), ('posix_memalign'), ('aligned_alloc'), ('memalign'))) f
		ON p.probe = 'malloc'
	GROUP BY COALESCE(f.probe, p.probe)
),
beside AS (
	SELECT *, CASE probe
			WHEN 'fault' THEN MAX(CASE probe WHEN 'fault_more' THEN hit_ns END) OVER ()
			WHEN 'map' THEN MAX(CASE probe WHEN 'map_more' THEN hit_ns END) OVER () END
			AS more_ns,
		CASE probe
			WHEN 'fault' THEN MAX(CASE probe WHEN 'fault_more' THEN error_ns END)
				OVER ()
			WHEN 'map' THEN MAX(CASE probe WHEN 'map_more' THEN error_ns END) OVER ()
			END
			AS more_error_ns,
		CASE probe
			WHEN 'read' THEN MAX(CASE probe WHEN 'read_paid' THEN hit_ns END) OVER ()
			WHEN 'map' THEN MAX(CASE probe WHEN 'map_paid' THEN hit_ns END) OVER () END
			AS paid_ns,
		CASE probe
			WHEN 'read' THEN MAX(CASE probe WHEN 'read_paid' THEN error_ns END) OVER ()
			WHEN 'map' THEN MAX(CASE probe WHEN 'map_paid' THEN error_ns END) OVER ()
			END
			AS paid_error_ns
	FROM each
)
SELECT probe, COALESCE(paid_ns, hit_ns) + COALESCE(more_ns, 0.0) AS hit_ns, inside_ns,
	COALESCE(paid_error_ns, error_ns) + COALESCE(more_error_ns, 0.0) AS error_ns
FROM beside WHERE probe NOT IN ('fault_more', 'map_more', 'read_paid', 'map_paid');

-- Every scalar that was calibrated, 0 where it was not. map_outside_ns: what a probed mapping
-- call adds to its caller's time but not to its own. fault_timed_inside_ns may be below 0.
CREATE VIEW calibrated AS
SELECT
	COALESCE(MAX(CASE name WHEN 'fault_ns' THEN value END), 0.0) AS fault_ns,
	COALESCE(MAX(CASE name WHEN 'malloc_ns' THEN value END), 0.0) AS malloc_ns,
	COALESCE(MAX(CASE name WHEN 'clear_4k_bytes_per_s' THEN value END), 0.0)
		AS clear_4k_bytes_per_s,
	COALESCE(MAX(CASE name WHEN 'clear_2m_bytes_per_s' THEN value END), 0.0)
		AS clear_2m_bytes_per_s,
	COALESCE(MAX(CASE name WHEN 'memset_bytes_per_s' THEN value END), 0.0)
		AS memset_bytes_per_s,
	MAX(CASE name WHEN 'memset_near_bytes_per_s' THEN value END) AS memset_near_bytes_per_s,
	MAX(CASE name WHEN 'memset_middle_bytes_per_s' THEN value END) AS memset_middle_bytes_per_s,
	MAX(CASE name WHEN 'memset_far_bytes_per_s' THEN value END) AS memset_far_bytes_per_s,
	COALESCE(MAX(CASE name WHEN 'memset_begin_ns' THEN value END), 0.0) AS memset_begin_ns,
	COALESCE(MAX(CASE name WHEN 'string_begin_ns' THEN value END), 0.0) AS string_begin_ns,
	COALESCE(MAX(CASE name WHEN 'memcpy_bytes_per_s' THEN value END), 0.0)
		AS memcpy_bytes_per_s,
	COALESCE(MAX(CASE name WHEN 'loops_per_s' THEN value END), 0.0) AS loops_per_s,
	COALESCE(MAX(CASE name WHEN 'price of fault' THEN value END), 0.0) AS fault_hit_ns,
	COALESCE(MAX(CASE name WHEN 'price of fault' THEN error_ns END), 0.0) AS fault_hit_error_ns,
	COALESCE(MAX(CASE name WHEN 'fault_timed_inside_ns' THEN value END), 0.0)
		AS fault_timed_inside_ns,
	COALESCE(MAX(CASE name WHEN 'fault_timed_error_ns' THEN value END), 0.0)
		AS fault_timed_error_ns,
	COALESCE(MAX(CASE name WHEN 'price of map' THEN inside_ns END), 0.0) AS map_inside_ns,
	COALESCE(MAX(CASE name WHEN 'price of map' THEN error_ns END), 0.0) AS map_error_ns,
	COALESCE(MAX(CASE name WHEN 'price of map' THEN MAX(0.0, value - inside_ns) END), 0.0)
		AS map_outside_ns,
	COALESCE(MAX(CASE name WHEN 'price of read' THEN inside_ns END), 0.0) AS read_inside_ns,
	COALESCE(MAX(CASE name WHEN 'price of read' THEN error_ns END), 0.0) AS read_error_ns,
	COALESCE(MAX(CASE name WHEN 'price of read' THEN value END), 0.0) AS read_hit_ns
FROM (
	SELECT name, value, NULL AS inside_ns, NULL AS error_ns FROM calibration
	UNION ALL SELECT 'price of ' || probe, hit_ns, inside_ns, error_ns FROM price);

-- How dear probes are where and when they are hit, against the calibration, which knows its own
-- moment only. Of the two timestamps of a short call without faults or mapping calls, all that lies
-- between is the probes' but the call itself, which takes what malloc takes: inside_ns, of the
-- calls of a slice. hit_ns: what they cost by the calibration, in its best round; outside_ns:
-- outside of the timestamps, in a middle one, as inside is measured in all of them;
-- proportional_ns: cost if the whole hit scales with its measured part.
CREATE VIEW short_call AS
SELECT c.slice, SUM(c.calls) AS calls, SUM(MAX(0.0, c.cpu_ns - c.calls * k.malloc_ns)) AS inside_ns,
	SUM(MAX(0.0, c.cpu_ns - c.calls * k.malloc_ns) * p.hit_ns / p.inside_ns) AS proportional_ns,
	SUM(c.calls * p.hit_ns) AS hit_ns,
	SUM(c.calls * MAX(0.4 * p.hit_ns, p.hit_ns + p.error_ns - p.inside_ns)) AS outside_ns
FROM (
	SELECT slice, call, SUM(timed_calls - slow_calls) AS calls,
		SUM(cpu_ns - slow_cpu_ns) AS cpu_ns
	FROM call GROUP BY slice, call
) c
JOIN probe_price p ON p.probe = c.call
JOIN calibrated k
WHERE c.calls > 0 AND p.inside_ns > 0 GROUP BY c.slice;

-- From one call's second timestamp to the next call's first is the rest of a hit, and what the
-- program does there, which is next to nothing in the tightest tenth (hit_gap). With what is inside
-- that is what hits took in the slice: paid_ns; a twelfth more, by which the mean is above that
-- tenth. Against programs' own count and clock 0.95 to 1.05 then, whatever the machine was at. Gaps
-- of three times what the calibration found outside of the timestamps are the program's: no row.
CREATE VIEW call_moment AS
SELECT c.slice, c.calls, c.hit_ns, 1.08 * (c.inside_ns + c.calls * g.low_ns / g.gaps) AS paid_ns
FROM short_call c JOIN hit_gap g ON g.slice = c.slice AND g.hit = 'call'
WHERE g.gaps >= 300 AND c.calls * g.low_ns <= 3.0 * c.outside_ns * g.gaps;

-- Both, of the whole recording. here: a thousand calls say what hits took. Else what lies outside
-- goes along with inside, and a tenth for the caches left cold; calls that take somewhat longer by
-- themselves look the same, so that only what is below the calibration is believed. scale: NULL
-- below a thousand calls.
CREATE VIEW probe_pace AS
SELECT m.calls >= 1000 AS here, CASE WHEN m.calls >= 1000 THEN m.paid_ns / m.hit_ns
	WHEN c.calls >= 1000 THEN 1.10 * c.proportional_ns / c.hit_ns END AS scale
FROM (SELECT SUM(calls) AS calls, SUM(proportional_ns) AS proportional_ns, SUM(hit_ns) AS hit_ns
	FROM short_call) c
JOIN (SELECT COALESCE(SUM(calls), 0) AS calls, SUM(paid_ns) AS paid_ns, SUM(hit_ns) AS hit_ns
	FROM call_moment) m;

-- The price of a hit, as far as its moment is known. event: the probe of something that
-- happens in the kernel, which has no such measure; uprobe: those that have, and what the same
-- traps do else. Walks were timed as they were made. error_ns: of the calibration, or, where the
-- price is known as it was paid (here), a tenth, and by how much the calibration was below, since
-- some of that may be the program's. pace: probe_pace's scale.
CREATE VIEW probe_moment AS
SELECT p.probe, p.event, p.uprobe, p.uprobe AND s.here AS here, p.hit_ns AS calibrated_ns,
	CASE WHEN p.uprobe THEN s.scale END AS pace,
	p.hit_ns * CASE WHEN p.uprobe AND s.here THEN s.scale
		WHEN p.uprobe THEN MIN(1.0, COALESCE(s.scale, 1.0)) ELSE 1.0 END AS hit_ns,
	CASE WHEN p.uprobe AND s.here THEN MAX(0.1 * p.hit_ns * s.scale,
			p.hit_ns * (s.scale - 1.0) - p.error_ns)
		ELSE p.error_ns END AS error_ns
FROM (
	SELECT *, NOT event AND probe <> 'walk' AS uprobe
	FROM (SELECT *, probe IN ('fault', 'fault_end', 'map', 'read', 'read_other', 'syscall',
		'sample') AS event
		FROM probe_price)
) p JOIN probe_pace s;

-- Parts of the CPU samples, with 95 % bounds after Agresti and Coull: with p = (k + 2) / (n + 4),
-- p +- 1.96 sqrt(p (1 - p) / (n + 4)). what: probe; allocator: in its functions, probes, faults and
-- mapping calls not among it; call: of that, what is not clearing; clear: what is. error: from the
-- share to the farther bound.
CREATE VIEW sample_share AS
WITH
place(what, name) AS (VALUES ('probe', 'probe'), ('allocator', 'allocator'),
	('allocator', 'calloc_memset'), ('call', 'allocator'), ('clear', 'calloc_memset')),
whole AS MATERIALIZED (
	SELECT COALESCE(SUM(samples), 0) AS n FROM sample
),
counted AS MATERIALIZED (
	SELECT p.what, COALESCE(SUM(s.samples), 0) AS k, w.n
	FROM place p JOIN whole w LEFT JOIN sample s ON s.place = p.name GROUP BY p.what
),
bounded AS (
	SELECT what, k, n, 1.0 * k / MAX(n, 1) AS share, (k + 2.0) / (n + 4.0) AS p,
		1.96 * (SELECT root FROM square_root WHERE v = (k + 2.0) / (n + 4.0)
			* (n - k + 2.0) / (n + 4.0) / (n + 4.0)) AS half
	FROM counted
)
SELECT what, k, n, share, MIN(1.0, p + half) AS high, ABS(p - share) + half AS error FROM bounded;

-- What the uprobes took of all the targets' CPU time, twice: priced_ns, hits by their price,
-- which other code, with other things in the caches, on a machine that is busier or less than in
-- the moment of the calibration, pays only within a tenth; and sampled_ns, the part of the CPU
-- samples that lie in them, and a fiftieth more error, by which what comes after a probe finds the
-- caches colder. sampled: the second holds, where its error is the smaller one or where the two
-- contradict each other. scale: what a price is to be multiplied by. Stacks walked in faults are
-- priced with the uprobes: their price counts as error of the samples.
CREATE VIEW uprobe_profile AS
WITH
spent AS (
	SELECT COALESCE(SUM(cpu_ns), 0) AS cpu_ns FROM process_slice
),
priced AS MATERIALIZED (
	SELECT COALESCE(SUM(h.hits * p.hit_ns), 0.0) AS ns,
		COALESCE(SUM(h.hits * MAX(p.error_ns, 0.1 * p.hit_ns)), 0.0) AS error_ns,
		COALESCE(SUM(CASE h.probe WHEN 'walk' THEN h.hits * p.hit_ns END), 0.0) AS walk_ns
	FROM hit h JOIN probe_moment p ON p.probe = h.probe WHERE NOT p.event
),
both AS MATERIALIZED (
	SELECT c.k, c.n, p.ns AS priced_ns, p.error_ns AS priced_error_ns,
		c.share * s.cpu_ns AS sampled_ns,
		p.walk_ns + s.cpu_ns * (0.02 * c.share + c.error) AS sampled_error_ns
	FROM sample_share c JOIN spent s JOIN priced p WHERE c.what = 'probe'
),
chosen AS (
	-- no sample in a probe: the kernel does not tell where its code is
	SELECT *, k > 0 AND priced_ns > 0 AND (sampled_error_ns < priced_error_ns
		OR ABS(sampled_ns - priced_ns) > sampled_error_ns + priced_error_ns) AS sampled
	FROM both
)
SELECT k, n, priced_ns, priced_error_ns, sampled_ns, sampled_error_ns, sampled,
	CASE WHEN sampled THEN sampled_ns / priced_ns ELSE 1.0 END AS scale,
	CASE WHEN sampled THEN sampled_error_ns / priced_ns END AS error
FROM chosen;

-- What CPU samples say of the allocator's time, where they say more than prices. most_ns: the most
-- that its functions can have taken, clearing among it; where the probes are known by samples, too.
-- call_ns, call_error_ns: what they took without clearing; clear_ns, clear_error_ns: what calloc's
-- memset took. These only where calls were watched in windows, and there are enough samples to
-- tell: few will do where the windows are less than a tenth of the time, which tell still less; and
-- where threads' caches answered calls, of which samples alone tell.
CREATE VIEW allocator_profile AS
SELECT CASE WHEN u.sampled THEN a.high * s.cpu_ns END AS most_ns,
	CASE WHEN w.cached OR (w.windows AND (o.n >= 30 OR (o.n >= 8
		AND 10 * w.watched_ns < s.cpu_ns))) THEN o.share * s.cpu_ns END AS call_ns,
	CASE WHEN w.cached OR (w.windows AND (o.n >= 30 OR (o.n >= 8
		AND 10 * w.watched_ns < s.cpu_ns)))
		THEN o.error * s.cpu_ns END AS call_error_ns,
	c.share * s.cpu_ns AS clear_ns, c.error * s.cpu_ns AS clear_error_ns
FROM uprobe_profile u
JOIN sample_share a ON a.what = 'allocator' JOIN sample_share o ON o.what = 'call'
JOIN sample_share c ON c.what = 'clear'
JOIN (SELECT COALESCE(SUM(cpu_ns), 0) AS cpu_ns FROM process_slice) s
JOIN (SELECT COUNT(*) > 0 AS windows, EXISTS (SELECT 1 FROM past_cache) AS cached,
		MIN(CASE WHEN call NOT IN ('syscall', 'read_other')
		THEN ns END) AS watched_ns
	FROM (SELECT call, SUM(watched_cpu_ns) AS ns FROM watch GROUP BY call)) w;

-- What a hit of each probe cost in this recording. sampled: scaled to what CPU samples say of all;
-- calibrated_ns: the calibration's price, scaled alike.
CREATE VIEW probe_cost AS
SELECT p.probe, p.uprobe, p.here, p.pace, u.sampled AND NOT p.event AS sampled,
	p.calibrated_ns * u.scale AS calibrated_ns,
	CASE WHEN p.event THEN p.hit_ns ELSE p.hit_ns * u.scale END AS hit_ns,
	CASE WHEN p.event OR u.error IS NULL THEN MAX(p.error_ns, 0.1 * p.hit_ns)
		ELSE p.hit_ns * u.error END AS error_ns
FROM probe_moment p JOIN uprobe_profile u;

CREATE VIEW probe_overhead AS
SELECT h.pid, h.probe, SUM(h.hits) AS hits, COALESCE(p.hit_ns, 0.0) AS hit_ns,
	SUM(h.hits) * COALESCE(p.hit_ns, 0.0) AS overhead_ns,
	SUM(h.hits) * COALESCE(p.error_ns, 0.0) AS error_ns
FROM hit h LEFT JOIN probe_cost p ON p.probe = h.probe
GROUP BY h.pid, h.probe;

-- Where the budget let one in so many be looked at (table thinned): of how many it was one, on
-- average over all of them, whose draws' variances add up (of a slice not thinned there is none),
-- and the part of all that was not looked at. what: fault, read; map: stacks of mapping calls;
-- small_map: small mapping calls, also their times.
CREATE VIEW thinning AS
SELECT what, 1 + SUM(1.0 * (seen + passed) * passed / MAX(seen, 1)) / SUM(seen + passed) AS one_in,
	1.0 * SUM(passed) / MAX(SUM(seen) + SUM(passed), 1) AS share
FROM thinned GROUP BY what;

-- ---------------------------------------------------------------- faults

CREATE VIEW process_fault AS
SELECT pid, class, in_call, in_memset, SUM(faults) AS faults, SUM(pages) AS pages,
	SUM(timed_faults) AS timed_faults, SUM(timed_cpu_ns) AS timed_cpu_ns,
	SUM(timed_cpu_us2) AS timed_cpu_us2, SUM(blocked_ns) AS blocked_ns
FROM fault
GROUP BY pid, class, in_call, in_memset;

-- What one fault of a class costs on the CPU (mean_ns) and asleep (blocked_mean_ns), the probes'
-- own part taken out. Faults are timed in windows: all of the first slice, a part of each later
-- one, so that each slice is a stratum (Cochran, Sampling Techniques, 5.3): its mean counts by its
-- faults, and the squared error of the whole is the sum of N^2 s^2 / n (1 - n/N) over the strata,
-- over N^2. Slices with less than two timed faults get the mean and the error of all that were
-- timed. error_ns: 1.96 standard errors plus the price's error. The squares are of times cut to
-- whole microseconds, half a microsecond too short on average: the mean is moved as much before it
-- is squared, and 1 us^2 added for what the cut hides. Without at least two timed faults: the
-- calibrated first-touch fault (a huge one: plus 2 MiB at the calibrated rate), or the mean over
-- this recording's minor classes; the error is then half of it.
--
-- clear_ns: the clearing in one fault on a huge page, all of it but the work of a small fault; NULL
-- where too few were timed, or they took so long that they waited for more than clearing (memory
-- that the host has yet to find): the calibrated rate is all that is known then. Of small pages
-- clearing is the smaller part of a fault, and cannot be told from its work.
CREATE VIEW fault_price AS
WITH
stratum AS (
	SELECT class, SUM(faults) AS faults, SUM(timed_faults) AS n,
		1.0 * SUM(timed_cpu_ns) AS cpu_ns, 1e6 * SUM(timed_cpu_us2) AS ns2,
		1.0 * SUM(blocked_ns) AS blocked_ns
	FROM fault GROUP BY class, slice
),
moment AS MATERIALIZED (
	SELECT *, CASE WHEN n >= 2 THEN (1e6 + MAX(0.0, ns2 / n - MAX(0.0, cpu_ns / n - 500)
			* MAX(0.0, cpu_ns / n - 500))) / (n - 1)
				* MAX(0.0, 1.0 - 1.0 * n / MAX(faults, n))
		END AS v
	FROM stratum
),
pooled AS (
	SELECT class, SUM(faults) AS faults, SUM(n) AS n, SUM(cpu_ns) AS cpu_ns,
		SUM(ns2) AS ns2, SUM(blocked_ns) AS blocked_ns,
		SUM(CASE WHEN n >= 2 THEN faults * cpu_ns / n ELSE 0.0 END) AS seen_ns,
		SUM(CASE WHEN n >= 2 THEN 1.0 * faults * faults * v ELSE 0.0 END) AS seen_v,
		SUM(CASE WHEN n >= 2 THEN 0 ELSE faults END) AS unseen
	FROM moment GROUP BY class
),
seen AS MATERIALIZED (
	SELECT class, faults, n, cpu_ns, blocked_ns,
		CASE WHEN n > 0 THEN (seen_ns + unseen * cpu_ns / n) / faults END AS raw_mean_ns,
		CASE WHEN n >= 2 THEN (seen_v + 1.0 * unseen * unseen
			* (1e6 + MAX(0.0, ns2 / n - MAX(0.0, cpu_ns / n - 500)
				* MAX(0.0, cpu_ns / n - 500))) / (n - 1)) / faults / faults END AS v
	FROM pooled WHERE faults > 0
),
priced AS (
	SELECT k.class, k.toll, k.writes_page, COALESCE(s.faults, 0) AS faults,
		COALESCE(s.n, 0) AS n, s.cpu_ns, s.raw_mean_ns, s.blocked_ns,
		(SELECT r.root FROM square_root r WHERE r.v = s.v) AS se_ns,
		-- those that the kernel takes for itself meet no probe
		CASE WHEN k.class LIKE '%!_populated' ESCAPE '!' THEN 0.0
			ELSE c.fault_timed_inside_ns END AS fault_timed_inside_ns,
		CASE WHEN k.class LIKE '%!_populated' ESCAPE '!' THEN 0.1 * s.raw_mean_ns
			ELSE c.fault_timed_error_ns END AS fault_timed_error_ns,
		k.class IN ('zero', 'zero_huge', 'zero_upgrade', 'zero_read', 'shared_minor',
			    'file_minor', 'zero_populated', 'shared_populated', 'file_populated')
			AS calibrated, c.fault_ns,
		c.fault_ns + CASE WHEN k.class = 'zero_huge' AND c.clear_2m_bytes_per_s > 0
			THEN 2097152e9 / c.clear_2m_bytes_per_s ELSE 0.0 END AS calibrated_ns,
		MAX(0.0, SUM(CASE WHEN k.class LIKE '%!_major' ESCAPE '!'
				OR k.class LIKE '%!_populated' ESCAPE '!' THEN 0 ELSE s.cpu_ns END)
				OVER ()
			/ SUM(CASE WHEN k.class LIKE '%!_major' ESCAPE '!'
				OR k.class LIKE '%!_populated' ESCAPE '!' THEN 0 ELSE s.n END)
				OVER () - c.fault_timed_inside_ns) AS minor_mean_ns
	FROM fault_class k JOIN calibrated c
	LEFT JOIN seen s ON s.class = k.class
)
SELECT class, toll, writes_page, faults, n AS timed_faults,
	CASE WHEN class = 'zero_huge' AND n >= 8
		AND raw_mean_ns - fault_timed_inside_ns <= 8 * calibrated_ns
		THEN MAX(0.0, raw_mean_ns - fault_timed_inside_ns - fault_ns) END AS clear_ns,
	CASE WHEN n > 0 THEN MAX(0.0, raw_mean_ns - fault_timed_inside_ns)
	     WHEN calibrated THEN calibrated_ns
	     ELSE COALESCE(minor_mean_ns, calibrated_ns) END AS mean_ns,
	CASE WHEN n > 1 THEN 1.96 * se_ns + fault_timed_error_ns
	     WHEN n = 1 THEN 0.5 * cpu_ns
	     WHEN calibrated THEN 0.5 * calibrated_ns
	     ELSE 0.5 * COALESCE(minor_mean_ns, calibrated_ns) END AS error_ns,
	CASE WHEN n > 0 THEN blocked_ns / n ELSE 0.0 END AS blocked_mean_ns,
	CASE WHEN n > 0 THEN 'timed' WHEN calibrated OR minor_mean_ns IS NULL THEN 'calibrated'
	     ELSE 'minor mean' END AS source
FROM priced;

-- Faults of a process by toll, with their time. Sleep was seen only of timed faults; the others are
-- given the class's mean, and half of that counts as error. huge: of huge pages; of what is taken
-- in a system call the count of faults tells it, one for each page of whatever size. clear_ns: the
-- clearing in them, where timed faults tell it.
CREATE VIEW process_fault_time AS
SELECT f.pid, f.class, p.toll, f.in_call, f.in_memset, f.faults, f.pages, p.writes_page,
	f.faults * p.mean_ns AS cpu_ns,
	f.blocked_ns + (f.faults - f.timed_faults) * p.blocked_mean_ns AS blocked_ns,
	f.faults * p.error_ns + 0.5 * (f.faults - f.timed_faults) * p.blocked_mean_ns
		-- that of a count of which one in so many was drawn
		+ CASE WHEN d.one_in > 1 THEN p.mean_ns * 1.96 * (SELECT root FROM square_root
			WHERE v = f.faults * (d.one_in - 1.0)) ELSE 0.0 END AS error_ns,
	f.class = 'zero_huge' OR (f.class = 'zero_populated' AND f.pages > 64 * f.faults) AS huge,
	f.faults * p.clear_ns AS clear_ns
FROM process_fault f JOIN fault_price p ON p.class = f.class
LEFT JOIN thinning d ON d.what = 'fault' AND f.class NOT LIKE '%!_populated' ESCAPE '!';

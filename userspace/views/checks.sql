-- SPDX-License-Identifier: GPL-2.0
--
-- checks.sql: our counts against the kernel's, what was lost, and what either means for the bounds.
-- Follows spent.sql.

-- One row: major faults that were counted and no more, as faults are thinned.
CREATE VIEW major_passed AS
SELECT COALESCE(SUM(count), 0) AS passed FROM loss WHERE name = 'faults_passed';

-- Our counts against the kernel's own: faults of the processes against /proc/PID/stat, those of a
-- cgroup that is the target against its memory.stat, swap of all processes against /proc/vmstat.
-- slack: what is too small to matter. above: how much more than the kernel we may count. Pages that
-- the kernel faults in for itself are in its count and raise no event; inside mapping calls
-- (MAP_POPULATE, mlock) they are seen by their effect, elsewhere (ioctl, process_vm_writev) not, so
-- its count may be higher. Pushed out, the kernel counts the pages it
-- writes: a page that came back and was not changed goes out again without, at most each that came.
CREATE VIEW checks AS
WITH
ours AS MATERIALIZED (
	SELECT COALESCE(SUM(CASE WHEN class LIKE '%!_major' ESCAPE '!' OR class = 'forbidden'
			THEN 0 ELSE faults END), 0) AS minor,
		COALESCE(SUM(CASE WHEN class LIKE '%!_major' ESCAPE '!' THEN faults ELSE 0 END), 0)
			+ (SELECT passed FROM major_passed) AS major,
		COALESCE(SUM(CASE WHEN class LIKE 'swap!_%' ESCAPE '!' THEN pages ELSE 0 END), 0)
			AS swap_pages
	FROM process_fault
),
kernel AS MATERIALIZED (
	SELECT COALESCE(SUM(minor_faults), 0) AS minor, COALESCE(SUM(major_faults), 0) AS major
	FROM process_slice
),
populated AS MATERIALIZED (	-- in recordings of earlier versions: faults inside calls
	-- and of one call: one that is under way at the begin or end is counted on one side only
	SELECT COALESCE(SUM(CASE populated_ns WHEN 0 THEN populated END), 0) AS minor,
		COALESCE(MAX(populated / calls), 0) AS of_call
	FROM map_call
),
everybody AS MATERIALIZED (	-- pid 0 with them: all who are not traced
	SELECT COALESCE(SUM(CASE WHEN what LIKE 'in!_%' ESCAPE '!' THEN pages END), 0) AS came,
		COALESCE(SUM(CASE WHEN what LIKE 'out!_%' ESCAPE '!' THEN pages END), 0) AS went
	FROM swap
),
vmstat AS MATERIALIZED (
	SELECT SUM(CASE WHEN name IN ('pswpin', 'zswpin', 'swpin_zero') THEN value END) AS came,
		SUM(CASE WHEN name IN ('pswpout', 'zswpout', 'swpout_zero') THEN value END) AS went
	FROM system_counter
),
cgroup AS MATERIALIZED (
	SELECT SUM(CASE name WHEN 'pgfault' THEN value WHEN 'pgmajfault' THEN -value END) AS minor,
		SUM(CASE name WHEN 'pgmajfault' THEN value END) AS major
	FROM memory_cgroup_counter c
	-- a group's counters have those of the groups below in them
	WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'cgroup')
	-- of one that was made anew the first moment is not seen
	AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'container_restarts') AND NOT EXISTS (
		SELECT 1 FROM memory_cgroup m
		WHERE m.path <> '/' AND SUBSTR(c.path, 1, LENGTH(m.path) + 1) = m.path || '/')
),
counted(position, name, ours, kernel, slack, above, toll) AS (
	SELECT 1, 'minor_faults', o.minor + p.minor, k.minor,
		3 + MIN(2 * p.of_call, k.minor / 10), 0, 'zero.kernel'
	FROM ours o, populated p, kernel k
	UNION ALL SELECT 2, 'major_faults', o.major, k.major, 3, 0, 'zero.kernel' FROM ours o,
		kernel k
	UNION ALL SELECT 3, 'swapped_in', CASE WHEN EXISTS (SELECT 1 FROM meta
			WHERE key = 'swap_in_counted' AND value = '1') THEN e.came
				ELSE o.swap_pages END,
		v.came, 64, 0, 'swap.in'
	FROM ours o, everybody e, vmstat v WHERE v.came IS NOT NULL
	UNION ALL SELECT 4, 'swapped_out', e.went, v.went, 64, v.came, 'swap.out'
	FROM everybody e, vmstat v WHERE v.went IS NOT NULL
	UNION ALL SELECT 5, 'cgroup_minor_faults', o.minor + p.minor, c.minor, 64, 0, 'zero.kernel'
	FROM ours o, populated p, cgroup c WHERE c.minor IS NOT NULL
	UNION ALL SELECT 6, 'cgroup_major_faults', o.major, c.major, 64, 0, 'zero.kernel'
	FROM ours o, cgroup c WHERE c.major IS NOT NULL
)
SELECT c.position, c.name, c.ours, c.kernel, c.ours - c.kernel AS difference,
	c.ours - c.kernel BETWEEN -MAX(c.slack, 0.01 * c.kernel)
		AND MAX(c.slack, 0.01 * c.kernel) + c.above AS ok
FROM counted c JOIN toll_kind k ON k.toll = c.toll
-- faults that were not watched are no disagreement
WHERE k.not_captured IS NULL;

-- One row: faults that the kernel counts and nothing has seen, where those are more than slack, and
-- what they may take that the tolls lack.
--
-- Minor ones: what they take if each clears a page, and how much of that CPU samples do not explain
-- (doubt_ns): no more than samples in unknown code of the kernel have room for (Agresti and Coull,
-- as in call_cost). unseen_share: those faults, as a part of all.
--
-- Major ones (major_missed; with those that thinning passed over) may each have read a page of a
-- file, or, where pages were on swap (of_swap), brought one back: as long as those that were seen,
-- or else 100 us, what a solid-state disk takes. major_ns: in all; major_sleep_ns: of it asleep,
-- and so not in the observed time either.
--
-- Pages that came from swap by the kernel's count only (swap_missed), where those of all processes
-- are counted and the target has some there: as long as the others, or else an eighth of a read, as
-- the kernel reads eight at once.
--
-- over: faults that are in our count only; over_ns: what tolls may have too much for them.
CREATE VIEW fault_doubt AS
SELECT d.*, d.doubt_ns + d.major_cpu_ns + d.major_sleep_ns + d.swap_ns AS all_ns,
	d.major_cpu_ns + d.major_sleep_ns AS major_ns
FROM (SELECT missed, kernel, missed_ns, major_missed, over, over * fault_ns AS over_ns, of_swap,
	swap_missed * of_swap AS swap_missed, swap_missed * of_swap * swap_page_ns AS swap_ns,
	MAX(0.0, MIN(missed_ns - explained_ns, room_ns)) AS doubt_ns,
	CASE WHEN missed_ns > 0
		THEN 1.0 * missed / kernel * MAX(0.0, MIN(missed_ns - explained_ns, room_ns))
			/ missed_ns
		ELSE 1.0 * missed / MAX(kernel, 1) END AS unseen_share,
	MIN(major_missed * major_cpu_ns, room_ns) AS major_cpu_ns,
	major_missed * major_blocked_ns AS major_sleep_ns
FROM (
	SELECT CASE WHEN n > 0 THEN cpu_ns * MIN(1.0, (k + 2.0) / (n + 4.0) + 1.96 *
		(SELECT root FROM square_root WHERE v = (k + 2.0) / (n + 4.0)
			* (n - k + 2.0) / (n + 4.0) / (n + 4.0))) ELSE 9e18 END AS room_ns
	FROM (SELECT COALESCE(SUM(CASE place WHEN 'kernel' THEN samples END), 0) AS k,
		COALESCE(SUM(samples), 0) AS n FROM sample) JOIN observed
) s JOIN (
	SELECT c.*, c.missed * p.mean_ns AS missed_ns, p.mean_ns AS fault_ns,
		w.time_ns AS explained_ns,
		COALESCE(p.major_cpu_ns, 0.0) AS major_cpu_ns,
		COALESCE(p.major_blocked_ns, 100000.0) AS major_blocked_ns,
		COALESCE(p.swap_page_ns, 12500.0) AS swap_page_ns,
		EXISTS (SELECT 1 FROM swap WHERE pid > 0 AND what NOT LIKE 'reclaim%')
			OR EXISTS (SELECT 1 FROM process_slice WHERE swap_bytes > 0)
			OR EXISTS (SELECT 1 FROM fault WHERE class LIKE 'swap!_%' ESCAPE '!')
			AS of_swap
	FROM (
		SELECT COALESCE(SUM(CASE name WHEN 'minor_faults' THEN MAX(0, -difference) END), 0)
				AS missed,
			COALESCE(SUM(CASE WHEN name = 'minor_faults' AND difference < 0
				THEN kernel END), 0) AS kernel,
			COALESCE(SUM(CASE name WHEN 'major_faults' THEN MAX(0, -difference) END), 0)
				+ (SELECT passed FROM major_passed) AS major_missed,
			COALESCE(SUM(CASE WHEN name = 'swapped_in' AND EXISTS (SELECT 1 FROM meta
				WHERE key = 'swap_in_counted' AND value = '1')
				THEN MAX(0, -difference) END), 0) AS swap_missed,
			COALESCE(SUM(CASE WHEN name IN ('minor_faults', 'major_faults')
				THEN MAX(0, difference) END), 0) AS over
		FROM checks WHERE NOT ok
	) c JOIN (
		SELECT MAX(CASE class WHEN 'zero' THEN mean_ns END) AS mean_ns,
			SUM(CASE WHEN major THEN faults * mean_ns END)
				/ SUM(CASE WHEN major THEN faults END) AS major_cpu_ns,
			SUM(CASE WHEN major THEN faults * blocked_mean_ns END)
				/ SUM(CASE WHEN major THEN faults END) AS major_blocked_ns,
			SUM(CASE WHEN swap THEN faults * (mean_ns + blocked_mean_ns) END)
				/ SUM(CASE WHEN swap THEN faults END) AS swap_page_ns
		FROM (SELECT *, class LIKE '%!_major' ESCAPE '!' AND timed_faults > 0 AS major,
			toll = 'swap.in' AND timed_faults > 0 AS swap FROM fault_price)
	) p JOIN (
		SELECT COALESCE(SUM(time_ns + error_ns), 0.0) AS time_ns FROM sampled_work
		WHERE toll = 'zero.kernel' AND NOT clears
	) w)) d;

-- Every loss this version knows or this recording has, with its total and, where the loss has a
-- kind of event to be measured against, its part of that kind (ring_faults counts faults, not
-- sweeps). exceeds: counts that cannot be repaired, more than 1 % of their kind (exit status 4).
-- Rests on tables alone: it is asked where no other view is made (recording_schema.h).
CREATE VIEW losses AS
WITH
total AS MATERIALIZED (
	SELECT name, SUM(count) AS count FROM (
		SELECT name, 0 AS count FROM loss_kind UNION ALL SELECT name, count FROM loss)
	GROUP BY name
),
measured AS MATERIALIZED (
	SELECT t.name, t.count, COALESCE(k.meaning, '') AS meaning, COALESCE(k.remedy, '')
		AS remedy,
		CASE WHEN t.name = 'calls_full' THEN 'call'
		     WHEN t.name = 'call_sites' THEN 'site'
		     WHEN t.name = 'stacks_full' THEN 'walk'
		     WHEN t.name IN ('maps_full', 'maps_unwatched') THEN 'map'
		     WHEN t.name IN ('reads_full', 'read_async', 'reads_unwatched', 'reads_passed',
				'ring_read')
			THEN 'read'
		     WHEN t.name IN ('ring_faults', 'walk_failed', 'faults_passed')
			THEN 'fault'
		     WHEN t.name = 'swaps_full' THEN 'swap'
		     WHEN t.name = 'drops_full' THEN 'drop'
		     WHEN t.name = 'ring_fill' THEN 'fill'
		     WHEN t.name = 'answers_full' THEN 'answer'
		     WHEN t.name = 'ring_block' THEN 'block'
		     WHEN t.name = 'ring_mapping' THEN 'mapping'
		     WHEN t.name = 'ring_sample' THEN 'sample'
		     WHEN t.name = 'ring_process' THEN 'process'
		     WHEN t.name = 'thread_state' THEN 'any'
		     WHEN t.name LIKE 'ring!_%' ESCAPE '!' THEN 'event'
		END AS measure
	FROM total t LEFT JOIN loss_kind k ON k.name = t.name
),
kept(measure, count) AS MATERIALIZED (
	SELECT 'call', (SELECT COALESCE(SUM(calls), 0) FROM call)
	-- calls that are counted, but nobody knows where
	UNION ALL SELECT 'site', (SELECT COALESCE(SUM(calls), 0) FROM call WHERE stack_id <> 0)
	UNION ALL SELECT 'map', (SELECT COALESCE(SUM(calls), 0) FROM map_call)
	UNION ALL SELECT 'read', (SELECT COALESCE(SUM(calls), 0) FROM file_read)
	UNION ALL SELECT 'mapping', (SELECT COALESCE(SUM(calls), 0) FROM map_call)
	UNION ALL SELECT 'fault', (SELECT COALESCE(SUM(faults), 0) FROM fault)
	UNION ALL SELECT 'block', (SELECT COALESCE(SUM(made + freed), 0) FROM block)
	UNION ALL SELECT 'sample', (SELECT COALESCE(SUM(samples), 0) FROM sample)
	UNION ALL SELECT 'process', (SELECT COUNT(*) FROM process)
	UNION ALL SELECT 'swap', (SELECT COALESCE(SUM(pages), 0) FROM swap)
	UNION ALL SELECT 'drop', (SELECT COALESCE(SUM(pages), 0) FROM page_drop)
	UNION ALL SELECT 'fill', (SELECT COALESCE(SUM(first_pages + in_pages + vain_pages
		+ untracked_pages), 0) FROM page_fill)
	UNION ALL SELECT 'answer', (SELECT COALESCE(SUM(waits), 0) FROM handler)
),
everything AS (
	SELECT measure, count FROM kept
	UNION ALL SELECT 'event', SUM(count) FROM kept
		WHERE measure IN ('fault', 'block', 'mapping', 'sample', 'process')
	-- whatever a thread without a state does is lost: blocks and mappings are calls, too
	UNION ALL SELECT 'any', SUM(count) FROM kept
		WHERE measure IN ('call', 'map', 'read', 'fault', 'sample')
	-- each walked a stack, and is counted where that was not kept, too: not a part of the
	-- stacks, which are one for many events
	UNION ALL SELECT 'walk', MAX(0, SUM(count)
			- (SELECT count FROM total WHERE name = 'stacks_full'))
		FROM kept WHERE measure IN ('call', 'map', 'read', 'fault', 'sample')
)
SELECT m.name, m.count, m.meaning, m.remedy, m.measure,
	CASE WHEN m.count > 0 THEN 1.0 * m.count / (m.count + COALESCE(e.count, 0)) ELSE 0.0 END
		AS share,
	(m.name IN ('calls_full', 'call_sites', 'stacks_full', 'maps_full', 'reads_full',
		'read_async', 'swaps_full', 'drops_full', 'answers_full', 'thread_state')
		OR m.name LIKE 'ring!_%' ESCAPE '!') AND m.count > 0
		AND 1.0 * m.count / (m.count + COALESCE(e.count, 0)) > 0.01 AS exceeds
FROM measured m LEFT JOIN everything e ON e.measure = m.measure;

-- By how much of itself a toll's bounds are widened: lost events, or faults that do not agree
-- with the kernel's count (lost ones are among these: the larger of the two counts).
CREATE VIEW widening AS
WITH
lost AS (
	SELECT COALESCE(MAX(CASE measure WHEN 'call' THEN share END), 0.0) AS call_share,
		COALESCE(MAX(CASE measure WHEN 'map' THEN share END), 0.0) AS map_share,
		COALESCE(SUM(CASE WHEN name IN ('reads_full', 'read_async', 'reads_unwatched')
			THEN share END), 0.0)
			AS read_share,
		COALESCE(SUM(CASE measure WHEN 'fault' THEN share END), 0.0) AS fault_share,
		COALESCE(MAX(CASE measure WHEN 'swap' THEN share END), 0.0) AS swap_share,
		COALESCE(MAX(CASE measure WHEN 'sample' THEN share END), 0.0) AS sample_share,
		COALESCE(SUM(CASE WHEN measure IN ('event', 'any') THEN share END), 0.0)
			AS event_share
	FROM losses
),
disagreement AS (
	SELECT COALESCE(MAX(CASE WHEN name LIKE '%minor_faults' THEN share END), 0.0) AS share,
		COALESCE(MAX(CASE WHEN name LIKE '%major_faults' THEN share END), 0.0)
			AS major_share,
		COALESCE(MAX(CASE WHEN name LIKE 'swapped%' THEN share END), 0.0) AS swap_share
	FROM (SELECT c.name, CASE WHEN c.name = 'minor_faults' AND c.difference < 0
			THEN d.unseen_share
			-- they stand in the bounds by their time
			WHEN c.name = 'major_faults' AND c.difference < 0 THEN 0.0
			ELSE ABS(c.difference) * 1.0 / MAX(c.kernel, c.ours, 1) END AS share
		FROM checks c JOIN fault_doubt d WHERE NOT c.ok)
)
SELECT k.toll, MIN(1.0, l.event_share + CASE
	WHEN k.toll IN ('zero.libc', 'alloc') THEN l.call_share
	WHEN k.toll = 'map' THEN l.map_share
	WHEN k.toll IN ('zero.app', 'copy.app') THEN l.sample_share
	WHEN k.toll = 'file.read' THEN l.read_share
	WHEN k.toll = 'compute' THEN 0.0
	WHEN k.family = 'swap' THEN MAX(l.fault_share, l.swap_share, d.share, d.major_share,
		d.swap_share)
	WHEN k.toll IN ('file.fault', 'cow') THEN MAX(l.fault_share, d.share, d.major_share)
	ELSE MAX(l.fault_share, d.share) END) AS share
FROM toll_kind k JOIN lost l JOIN disagreement d;

-- SPDX-License-Identifier: GPL-2.0
--
-- tolls.sql: the judgements of a recording. Every figure of a report comes from here; C and Python
-- print and plot, they do not calculate. Works in the plain sqlite3 shell, SQLite 3.37 and later,
-- without its mathematical functions. Follows checks.sql.
--
-- A view uses only views above it: the report turns them into temporary tables one after the
-- other, so that each is computed once. SQLite allows a statement 65,535 references to one table
-- and expands every mention of a view: hence one mention, with CASE or a window, where several
-- would be plainer.
--
-- Errors are 95 % bounds. Where several add up they are added as they are, not as a root of
-- squares: too wide rather than too narrow.

-- The toll table: one row per toll, in the order of the report; every number is NULL where the
-- toll was not captured. low and high bound the share: the toll's own error, its widening, the
-- error of the overhead that was taken out of the observed time, and faults that nothing has seen
-- (fault_doubt), which may have cleared pages, or waited for them: each toll that they may belong
-- to may have all of them, and what they slept is added to the observed time. compute is what the
-- others leave. When the others add up to more than was observed nothing is scaled: each one's
-- lower bound is lowered by its part of the excess.
--
-- bytes_low, bytes_high: of zero.app and copy.app, whose bytes are estimates; else bytes.
--
-- Where the faults of zero.kernel take more than 64 times what clearing their pages and the
-- calibrated work of a fault do, it is not known what else they did: cold caches and the locks of a
-- busy machine make it a few times as much, memory that the host of a virtual machine has yet to
-- find some 20 times. It is called strange, and its lower bound is what clearing can have taken.
CREATE VIEW toll AS
WITH
summed AS (
	SELECT toll, SUM(time_ns) AS time_ns, SUM(error_ns) AS error_ns, SUM(count) AS count,
		SUM(bytes) AS bytes, SUM(pages) AS pages, SUM(clear_ns) AS clear_ns,
		SUM(blocked_ns) AS blocked_ns
	FROM process_toll GROUP BY toll
),
-- The bounds of zero.app and copy.app, Agresti and Coull as in call_cost: k of all samples, as a
-- part of the CPU time; and k of those in user code outside the allocator, as a part of the time no
-- other toll measured. The narrower upper one holds: where the probes take most of the CPU time,
-- the second.
app AS MATERIALIZED (
	SELECT toll, k, n, user,
		(k + 2.0) / (n + 4.0) * (n - k + 2.0) / (n + 4.0) / (n + 4.0) AS v,
		(k + 2.0) / (user + 4.0) * (user - k + 2.0) / (user + 4.0) / (user + 4.0) AS v_user
	FROM (SELECT t.column1 AS toll,
		COALESCE(SUM(CASE place WHEN t.column2 THEN samples END), 0) AS k,
		COALESCE(SUM(CASE WHEN place IN ('memset', 'copy', 'user') THEN samples END), 0)
			AS user,
		COALESCE(SUM(samples), 0) AS n
		FROM (VALUES ('zero.app', 'memset'), ('copy.app', 'copy')) t LEFT JOIN sample
		GROUP BY t.column1)
),
computing AS MATERIALIZED (
	SELECT COALESCE(SUM(samples), 0) AS samples FROM sample WHERE place IN ('user', 'kernel')
),
app_range AS MATERIALIZED (
	SELECT toll, MAX(0.0, (k + 2.0) / (n + 4.0) - 1.96 * x) AS low,
		MIN(1.0, (k + 2.0) / (n + 4.0) + 1.96 * x) AS high,
		MIN(1.0, (k + 2.0) / (user + 4.0) + 1.96 * x_user) AS high_user
	FROM (SELECT *, (SELECT r.root FROM square_root r WHERE r.v = app.v) AS x,
		(SELECT r.root FROM square_root r WHERE r.v = app.v_user) AS x_user FROM app)
),
-- What the bytes of clearing and copying may be, as parts of the estimate.
estimate AS MATERIALIZED (
	SELECT toll, SUM(bytes_low) / SUM(bytes) AS low, SUM(bytes_high) / SUM(bytes) AS high
	FROM storing GROUP BY toll HAVING SUM(bytes) > 0
),
present AS (
	SELECT k.position, k.toll, k.family, k.not_captured, w.share AS wider,
		o.observed_ns, o.overhead_error_ns,
		COALESCE(s.time_ns, 0.0) AS time_ns, COALESCE(s.error_ns, 0.0) AS error_ns,
		CASE k.toll WHEN 'compute' THEN n.samples ELSE COALESCE(s.count, 0) END AS count,
		COALESCE(s.bytes, 0) AS bytes, COALESCE(s.pages, 0) AS pages,
		COALESCE(s.clear_ns, 0.0) AS clear_ns, COALESCE(s.blocked_ns, 0.0) AS blocked_ns,
		CASE WHEN k.toll = 'zero.kernel' THEN d.doubt_ns
			WHEN k.toll = 'file.fault' OR (k.toll = 'swap.in' AND d.of_swap)
				THEN d.major_ns ELSE 0.0 END
			+ CASE k.toll WHEN 'swap.in' THEN d.swap_ns ELSE 0.0 END AS doubt_ns,
		d.all_ns AS all_doubt_ns, d.major_sleep_ns, c.fault_ns,
		SUM(CASE WHEN r.toll IS NOT NULL THEN COALESCE(s.time_ns, 0.0) ELSE 0.0 END)
			OVER () AS stored_ns,
		r.low * o.cpu_ns AS app_low_ns, r.high * o.cpu_ns AS app_high_ns, r.high_user,
		-- Of nothing that happened the sum is none.
		COALESCE(SUM(CASE WHEN k.not_captured IS NULL THEN s.time_ns END) OVER (), 0.0)
			AS whole_ns
	FROM toll_kind k JOIN widening w ON w.toll = k.toll JOIN observed o JOIN computing n
	JOIN fault_doubt d JOIN calibrated c LEFT JOIN app_range r ON r.toll = k.toll
	LEFT JOIN summed s ON s.toll = k.toll
),
bounded AS (
	SELECT *,
		MAX(0.0, (CASE WHEN app_low_ns IS NOT NULL THEN MIN(time_ns, app_low_ns)
			ELSE time_ns - error_ns END) * (1 - wider)
			- MAX(0.0, whole_ns - observed_ns) * time_ns / MAX(whole_ns, 1.0))
				AS sure_ns,
		(CASE WHEN app_high_ns IS NOT NULL THEN MAX(time_ns, MIN(app_high_ns, high_user
				* (stored_ns + MAX(0.0, observed_ns - whole_ns))))
			ELSE time_ns + error_ns END) * (1 + wider) + doubt_ns AS high_ns
	FROM present
),
consistent AS (
	SELECT *, CASE WHEN strange THEN MIN(sure_ns, count * fault_ns + clear_ns)
		ELSE sure_ns END AS low_ns
	FROM (SELECT *, toll = 'zero.kernel' AND fault_ns > 0
		AND time_ns > 64 * (count * fault_ns + clear_ns) AS strange FROM bounded)
),
rest AS (
	SELECT *,
		MAX(0.0, observed_ns - whole_ns) AS rest_ns,
		-- A toll whose probes were left out may be all of the rest.
		CASE WHEN MAX(not_captured IS NOT NULL AND toll IN ('zero.kernel', 'zero.libc',
			'zero.app', 'alloc', 'map')) OVER () THEN 0.0
		-- What no sample saw copying is computing, as far as their family goes.
		ELSE MAX(0.0, observed_ns - (all_doubt_ns - major_sleep_ns)
			- COALESCE(SUM(CASE WHEN not_captured IS NULL
			AND toll <> 'compute' AND NOT (toll = 'copy.app' AND count = 0)
			THEN high_ns - doubt_ns END) OVER (), 0.0)) END AS rest_low_ns,
		MAX(0.0, observed_ns - COALESCE(SUM(CASE WHEN not_captured IS NULL
			AND toll <> 'compute' THEN low_ns END) OVER (), 0.0)) AS rest_high_ns
	FROM consistent
),
every AS (
	SELECT position, toll, family, not_captured, observed_ns, overhead_error_ns, count, bytes,
		pages, clear_ns, blocked_ns, strange, major_sleep_ns,
		CASE WHEN toll IN ('swap.in', 'file.fault') AND doubt_ns >= major_sleep_ns
			THEN major_sleep_ns ELSE 0.0 END AS asleep_ns,
		CASE toll WHEN 'compute' THEN rest_ns ELSE time_ns END AS time_ns,
		CASE toll WHEN 'compute' THEN rest_low_ns ELSE low_ns END AS low_ns,
		CASE toll WHEN 'compute' THEN rest_high_ns ELSE high_ns END AS high_ns
	FROM rest
)
SELECT position, toll, family, not_captured,
	CASE WHEN not_captured IS NULL THEN time_ns END AS time_ns,
	CASE WHEN not_captured IS NULL THEN low_ns END AS low_ns,
	CASE WHEN not_captured IS NULL THEN high_ns END AS high_ns,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, time_ns / observed_ns) ELSE 0.0 END AS share,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, low_ns / (observed_ns + overhead_error_ns + major_sleep_ns))
		ELSE 0.0 END AS low,
	CASE WHEN not_captured IS NOT NULL THEN NULL WHEN observed_ns > 0
		THEN MIN(1.0, high_ns / MAX(observed_ns - overhead_error_ns + asleep_ns, 1.0))
		ELSE 0.0 END AS high,
	CASE WHEN not_captured IS NULL THEN count END AS count,
	CASE WHEN not_captured IS NULL THEN bytes END AS bytes,
	CASE WHEN not_captured IS NULL THEN pages END AS pages,
	CASE WHEN not_captured IS NULL THEN clear_ns END AS clear_ns,
	CASE WHEN not_captured IS NULL THEN blocked_ns END AS blocked_ns,
	CASE WHEN not_captured IS NULL AND toll = 'file.read'
		THEN (SELECT reread_factor FROM file_reuse WHERE file = 0) END AS reread_factor,
	CASE WHEN not_captured IS NULL THEN toll IN ('zero.app', 'copy.app') AND bytes > 0 END
		AS bytes_estimated,
	CASE WHEN not_captured IS NULL THEN strange END AS strange,
	CASE WHEN not_captured IS NULL THEN CAST(bytes * CASE WHEN b.toll IS NULL THEN 1.0
		ELSE b.low * MIN(1.0, low_ns / MAX(time_ns, 1.0)) END AS INTEGER) END AS bytes_low,
	CASE WHEN not_captured IS NULL THEN CAST(bytes * CASE WHEN b.toll IS NULL THEN 1.0
		ELSE b.high * MAX(1.0, high_ns / MAX(time_ns, 1.0)) END AS INTEGER) END
		AS bytes_high
FROM every LEFT JOIN estimate b USING (toll);

-- Families by share. NULL where nothing of a family was captured.
CREATE VIEW family AS
SELECT ROW_NUMBER() OVER (ORDER BY time_ns IS NULL, time_ns DESC, position) AS rank, family,
	time_ns, share, low, high, main_toll
FROM (
	SELECT family, MIN(position) AS position, SUM(time_ns) AS time_ns,
		MIN(1.0, SUM(share)) AS share, MIN(1.0, SUM(low)) AS low,
		MIN(1.0, SUM(high)) AS high, MAX(CASE number WHEN 1 THEN toll END) AS main_toll
	FROM (
		SELECT *, ROW_NUMBER() OVER (PARTITION BY family
			ORDER BY time_ns IS NULL, time_ns DESC, position) AS number
		FROM toll)
	GROUP BY family);

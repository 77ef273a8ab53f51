-- SPDX-License-Identifier: GPL-2.0
--
-- json.sql: the report as one JSON object, and folded stacks. Follows page.sql.

-- The frames of a stack, leaf first.
CREATE VIEW frames_json AS
SELECT s.stack_id, (SELECT json_group_array(json(frame)) FROM (
	SELECT json_object('function', f.function, 'module', f.module, 'file', f.file, 'line',
		f.line,
		'kind', f.kind) AS frame
	FROM stack_frame l JOIN frame f ON f.frame_id = l.frame_id WHERE l.stack_id = s.stack_id
	ORDER BY l.depth)) AS json
FROM stack s;

-- Sites whose rows would have the same toll, call, area and frames are one row, their figures added
-- up: each process has stacks of its own, and a line may make several calls. alike: one number for
-- all stacks that have the same frames.
CREATE VIEW alike_json AS
WITH
kind AS MATERIALIZED (
	SELECT frame_id, DENSE_RANK() OVER (ORDER BY function, module, file, line, kind) AS kind
	FROM frame
)
SELECT stack_id, DENSE_RANK() OVER (ORDER BY kinds) AS alike
FROM (
	SELECT stack_id, group_concat(kind, ' ') AS kinds FROM (
		SELECT s.stack_id, k.kind FROM stack_frame s JOIN kind k ON k.frame_id = s.frame_id
		WHERE s.stack_id IN (SELECT allocated_stack FROM sites
			UNION SELECT touched_stack FROM sites)
		ORDER BY s.stack_id, s.depth)
	GROUP BY stack_id);

CREATE VIEW site_row_json AS
SELECT ROW_NUMBER() OVER (ORDER BY w.time_ns DESC, w.bytes DESC, w.first) AS rank, w.*,
	CASE WHEN o.observed_ns > 0 THEN MIN(1.0, w.time_ns / o.observed_ns) ELSE 0.0 END AS share
FROM (
	SELECT s.toll, s.call, s.area, s.allocated_stack, s.touched_stack, MIN(s.rank) AS first,
		SUM(s.time_ns) AS time_ns, SUM(s.bytes) AS bytes, SUM(s.count) AS count
	FROM sites s LEFT JOIN alike_json a ON a.stack_id = s.allocated_stack
	LEFT JOIN alike_json t ON t.stack_id = s.touched_stack
	GROUP BY s.toll, s.call, s.area, a.alike, t.alike
) w JOIN observed o;

-- Sites and allocations with their frames.
CREATE VIEW site_json AS
SELECT s.rank, json_object('toll', s.toll, 'time_s', ROUND(s.time_ns / 1e9, 9),
	'share', ROUND(s.share, 6), 'bytes', s.bytes, 'count', s.count, 'call', s.call,
	'area', s.area, 'allocated_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = s.allocated_stack), '[]')),
	'touched_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = s.touched_stack),
			'[]'))) AS json
FROM site_row_json s;

CREATE VIEW allocation_json AS
SELECT a.call, a.stack_id, a.bytes, a.calls, json_object('call', a.call, 'calls', a.calls,
	'bytes', a.bytes, 'freed', a.freed, 'live_bytes', a.live_bytes,
	'estimated', json(CASE WHEN a.estimated THEN 'true' ELSE 'false' END),
	'calls_error', a.calls_error, 'bytes_error', a.bytes_error,
	'at_least', json(CASE WHEN a.at_least THEN 'true' ELSE 'false' END),
	'allocated_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = a.stack_id), '[]'))) AS json
FROM allocation a;

CREATE VIEW access_json AS
SELECT a.rank, json_object('call', a.call, 'area', a.area, 'area_name', a.area_name,
	'pattern', a.pattern, 'first_pages', a.first_pages, 'swap_in_pages', a.in_pages,
	'distinct_pages', a.distinct_pages, 'returns', ROUND(a.returns, 3),
	'max_returns', a.max_returns, 'sequential_pages', a.in_sequential_pages,
	'untracked_pages', a.untracked_pages,
	'allocated_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = a.allocated_stack),
			'[]'))) AS json
FROM access_pattern a;

CREATE VIEW giveback_json AS
SELECT g.rank, json_object('pid', g.pid, 'how', g.how, 'gave_call', g.gave_call, 'got_call',
	g.got_call, 'allocator', g.allocator, 'calls', g.calls, 'gave_bytes', g.gave_bytes,
	'again_bytes', g.again_bytes, 'twice_bytes', g.twice_bytes, 'again_faults', g.again_faults,
	'largest_bytes', g.largest_bytes, 'span_bytes', g.span_bytes,
	'gave_bytes_per_s', ROUND(g.gave_bytes_per_s, 1),
	'again_bytes_per_s', ROUND(g.again_bytes_per_s, 1),
	'again_s', ROUND(g.again_ns / 1e9, 9), 'gave_s', ROUND(g.gave_ns / 1e9, 9),
	'gave_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = g.gave_stack), '[]')),
	'got_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = g.got_stack), '[]'))) AS json
FROM giveback_site g;

-- Points of the miss-ratio curve of a file, or of all (file 0).
CREATE VIEW curve_json AS
SELECT subject, file, json_group_array(json_object('cache_bytes', cache_bytes, 'miss_ratio',
	ROUND(miss_ratio, 6))) AS json
FROM (SELECT * FROM miss_ratio ORDER BY subject, file, cache_bytes)
GROUP BY subject, file;

CREATE VIEW file_json AS
SELECT f.rank, json_object('path', f.path, 'device', f.dev, 'inode', f.inode, 'kind', f.kind,
	'file_bytes', f.file_bytes, 'count', f.calls, 'bytes', f.bytes,
	'time_s', ROUND(f.time_ns / 1e9, 9), 'blocked_s', ROUND(f.blocked_ns / 1e9, 9),
	'direct_bytes', f.direct_bytes, 'cached_bytes', f.cached_bytes,
	'filled_bytes', f.filled_bytes, 'reread_factor', ROUND(r.reread_factor, 4),
	'reread_low', ROUND(r.low, 4), 'reread_high', ROUND(r.high, 4),
	'different_bytes', CAST(r.different_bytes AS INTEGER),
	'miss_ratio_curve', json(COALESCE(c.json, '[]'))) AS json
FROM files f LEFT JOIN file_reuse r ON r.file = f.file
LEFT JOIN curve_json c ON c.subject = 'file' AND c.file = f.file;

CREATE VIEW outlier_json AS
SELECT o.rank, json_patch(json_object('call', o.call, 'cause', o.cause,
	'inferred', json(CASE WHEN o.inferred THEN 'true' ELSE 'false' END),
	'pid', o.pid, 'tid', o.tid, 'start_ns', o.start_ns, 'size_bytes', o.size_bytes,
	'wall_ns', o.wall_ns, 'cpu_ns', o.cpu_ns, 'median_ns', o.median_ns, 'frees', o.frees,
	'cleared_bytes', o.cleared_bytes, 'samples', o.samples,
	'lock_waits', o.lock_waits, 'voluntary', o.voluntary, 'involuntary', o.involuntary,
	'faults', json_object('zero', o.zero_faults, 'swap', o.swap_faults,
		'other', o.other_faults),
	'map_calls', json_object('mmap', o.mmap_calls, 'munmap', o.munmap_calls,
		'mremap', o.mremap_calls, 'brk', o.brk_calls, 'madvise', o.madvise_calls)),
	json_object('parts_ns', json_object('swap', ROUND(o.swap_part_ns, 1),
		'first touch', ROUND(o.touch_part_ns, 1), 'other faults', ROUND(o.other_part_ns, 1),
		'mapping calls', o.map_ns, 'lock', o.lock_ns, 'off', ROUND(o.off_part_ns, 1),
		'cpu', ROUND(o.cpu_part_ns, 1)),
	'allocated_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = o.stack_id), '[]')))) AS json
FROM outlier_cause o WHERE o.rank <= 100;

CREATE VIEW threshold_json AS
SELECT t.pid, t.name, json_object('pid', t.pid, 'name', t.name, 'low_bytes', t.low_bytes,
	'high_bytes', t.high_bytes, 'how', t.how, 'changes', t.changes, 'changed_s',
	ROUND(MAX(0, t.changed_ns - (SELECT MIN(start_ns) FROM slice)) / 1e9, 9),
	'before_bytes', CASE WHEN t.before_low_bytes = t.before_high_bytes
		THEN t.before_low_bytes END,
	'call', t.call, 'changed_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = t.stack_id), '[]'))) AS json
FROM threshold_state t;

CREATE VIEW sampled_json AS
SELECT e.call, e.stack_id, e.bytes, json_object('call', e.call, 'chosen', e.chosen,
	'bytes', e.bytes,
	'bytes_error', e.bytes_error, 'live_bytes', e.live_bytes,
	'live_bytes_error', e.live_bytes_error,
	'allocated_at', json(COALESCE(
		(SELECT f.json FROM frames_json f WHERE f.stack_id = e.stack_id), '[]'))) AS json
FROM sample_estimate e;

-- The object of the contract: one row, one column.
CREATE VIEW report_json AS
SELECT json_object(
	'format', 1,
	'complete', json(CASE WHEN t.complete THEN 'true' ELSE 'false' END),
	'target', (SELECT json_object(
		'pids', json((SELECT json_group_array(pid) FROM (SELECT pid
			FROM process ORDER BY pid))),
		'command', t.command, 'host', (SELECT value FROM meta WHERE key = 'host'),
		'started', (SELECT strftime('%Y-%m-%dT%H:%M:%SZ', value / 1000000000, 'unixepoch')
			FROM meta WHERE key = 'start_realtime_ns'),
		'exit_status', (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'exit_status'),
		'container', t.container,
		'duration_s', ROUND(t.duration_ns / 1e9, 9),
		'observed_s', ROUND(t.observed_ns / 1e9, 9))),
	'tool_version', (SELECT value FROM meta WHERE key = 'tool_version'),
	'verdict', (SELECT json_object('dominant', v.dominant, 'share', ROUND(v.share, 6),
		'low', ROUND(v.low, 6), 'high', ROUND(v.high, 6), 'sentence', v.sentence,
		'advice', json((SELECT json_group_array(json(json)) FROM (
			SELECT json FROM advice_json ORDER BY position)))) FROM verdict v),
	'toll', json((SELECT json_group_object(toll, json(figures)) FROM (
		SELECT toll, json_insert(json_object('time_s', ROUND(time_ns / 1e9, 9),
				'blocked_s', ROUND(blocked_ns / 1e9, 9), 'share', ROUND(share, 6),
				'low', ROUND(low, 6), 'high', ROUND(high, 6),
				'count', count, 'bytes', bytes, 'pages', pages),
			-- time_s again, as it is, where the toll has no figure of its own
			CASE toll WHEN 'zero.kernel' THEN '$.clear_s' WHEN 'file.read'
				THEN '$.reread_factor' ELSE '$.time_s' END,
			CASE toll WHEN 'zero.kernel' THEN ROUND(clear_ns / 1e9, 9) WHEN 'file.read'
				THEN
				ROUND(reread_factor, 4) END,
			CASE WHEN toll IN ('zero.app', 'copy.app') THEN '$.bytes_estimated'
				ELSE '$.time_s' END,
			json(CASE WHEN bytes_estimated THEN 'true' ELSE 'false' END),
			CASE WHEN toll IN ('zero.app', 'copy.app') THEN '$.bytes_low'
				ELSE '$.time_s' END, bytes_low,
			CASE WHEN toll IN ('zero.app', 'copy.app') THEN '$.bytes_high'
				ELSE '$.time_s' END, bytes_high) AS figures
		FROM toll ORDER BY position))),
	'zeroing', (SELECT json_object('bytes_kernel', bytes_kernel, 'bytes_libc', bytes_libc,
		'bytes_app', bytes_app,
		'bytes_twice', bytes_twice, 'bytes_never_used', bytes_never_used) FROM zeroing),
	'sites', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM site_json ORDER BY rank))),
	'allocations', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM allocation_json ORDER BY bytes DESC, calls DESC, call, stack_id))),
	'calls', json((SELECT json_group_object(call, calls) FROM (
		SELECT call, SUM(calls) AS calls FROM allocation GROUP BY call ORDER BY call))),
	'past_cache', json((SELECT json_group_object(call, cached_bytes) FROM (
		SELECT call, cached_bytes FROM cached_call ORDER BY call))),
	'processes', json((SELECT json_group_array(json(process)) FROM (
		SELECT json_object('pid', p.pid, 'comm', p.comm, 'command', p.command,
			'exit_code', p.exit_code, 'container', (SELECT c.title
				FROM container c WHERE c.id = p.container),
			'pid_inside', p.pid_inside,
			'observed_s', ROUND(COALESCE(o.observed_ns, 0.0) / 1e9, 9),
			'toll_s', json(COALESCE(x.tolls, '{}'))) AS process
		FROM process p LEFT JOIN process_observed o ON o.pid = p.pid
		-- joined, not looked for: of twenty thousand processes each would read the tolls of
		-- all
		LEFT JOIN (SELECT pid, json_group_object(toll, ROUND(time_ns / 1e9, 9)) AS tolls
			FROM (SELECT pid, toll, time_ns FROM process_toll ORDER BY pid, toll)
			GROUP BY pid) x ON x.pid = p.pid
		ORDER BY p.pid))),
	'containers', json((SELECT json_group_array(json_object('id', id, 'title', title,
		'runtime', runtime, 'name', name, 'image', image, 'pod', pod,
		'namespace', pod_namespace, 'pod_uid', pod_uid,
		'processes', (SELECT COUNT(*) FROM process p WHERE p.container = c.id)))
		FROM (SELECT * FROM container ORDER BY title, id) c)),
	'memory', (SELECT json_object('limit_bytes', m.limit_bytes, 'limit_path', m.limit_path,
		'cgroup_version', m.cgroup_version, 'swap_limit_bytes', m.swap_limit_bytes,
		'rss_peak_bytes', m.rss_peak_bytes, 'swap_peak_bytes', m.swap_peak_bytes,
		'came_back_bytes', m.came_back_bytes, 'fits_bytes', m.fits_bytes,
		'swap_in_pages', json_object('cache', s.cache_pages, 'device', s.device_pages,
			'zram', s.zram_pages, 'zswap', s.zswap_pages, 'zero', s.zero_pages),
		'readahead_pages', s.readahead_pages) FROM memory m JOIN swap_source s),
	'page_cache', (SELECT json_object('filled_pages', fill_pages, 'again_pages', again_pages,
		'vain_pages', vain_pages, 'thrash', json(CASE WHEN thrash THEN 'true'
			ELSE 'false' END), 'partial', json(CASE WHEN partial THEN 'true'
			ELSE 'false' END), 'path', COALESCE(path, ''), 'pattern', pattern,
		'returns', ROUND(returns, 3), 'code', json(CASE WHEN code THEN 'true'
			ELSE 'false' END), 'working_bytes', working_bytes, 'fits_bytes', fits_bytes,
		'limit_bytes', box_bytes, 'refaults', COALESCE(group_refaults, all_refaults))
		FROM page_cache),
	'dropped', json((SELECT json_group_array(json_object('what', what, 'how', how,
		'pid', pid, 'comm', comm, 'memory_cgroup', memory_cgroup, 'pages', pages)) FROM (
		SELECT what, how, pid, comm, memory_cgroup, SUM(pages) AS pages FROM page_drop
		GROUP BY 1, 2, 3, 4, 5 ORDER BY SUM(pages) DESC, pid, what, how))),
	'handlers', (SELECT json_object('waits', waits, 'wait_s', ROUND(wait_ns / 1e9, 9),
		'p50_ns', ROUND(p50_ns, 1), 'p99_ns', ROUND(p99_ns, 1), 'longest_ns', longest_ns,
		'longest_place', longest_place,
		'threads', json((SELECT json_group_array(json_object('pid', handler_pid,
			'tid', handler_tid, 'comm', comm, 'process', process,
			'request', request, 'place', place, 'waits', waits,
			'wait_s', ROUND(wait_ns / 1e9, 9)))
			FROM (SELECT * FROM handler_thread ORDER BY rank))))
		FROM handler_measure WHERE waits > 0),
	'access', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM access_json ORDER BY rank))),
	'thresholds', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM threshold_json ORDER BY pid, name))),
	'giveback', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM giveback_json ORDER BY rank))),
	'files', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM file_json ORDER BY rank))),
	'latency', json((SELECT json_group_object(call, json_object('calls', calls,
		'p50_ns', ROUND(p50_ns, 1), 'p90_ns', ROUND(p90_ns, 1), 'p99_ns', ROUND(p99_ns, 1),
		'p999_ns', ROUND(p999_ns, 1), 'max_ns', max_ns,
		'resolution_ns', ROUND(resolution_ns, 1), 'wall_s', ROUND(wall_ns / 1e9, 9),
		'own_s', ROUND(own_ns / 1e9, 9), 'fault_s', ROUND(fault_ns / 1e9, 9),
		'map_s', ROUND(map_ns / 1e9, 9), 'lock_s', ROUND(lock_ns / 1e9, 9),
		'off_s', ROUND(off_ns / 1e9, 9), 'faults', faults, 'lock_waits', lock_waits))
		FROM (SELECT * FROM latency_call ORDER BY call))),
	'outliers', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM outlier_json ORDER BY rank))),
	'miss_ratio_curve', json_object(
		'files', json(COALESCE((SELECT json FROM curve_json WHERE subject = 'files'),
			'[]')),
		'swap', json((SELECT json_group_array(json_object('more_bytes',
			CAST(more_bytes AS INTEGER), 'saved', ROUND(saved, 6)))
			FROM (SELECT * FROM swap_saved ORDER BY more_bytes)))),
	'own_cache', json((SELECT json_group_array(json_object('pid', pid, 'program', program,
		'setting', setting, 'bytes', bytes, 'source', source))
		FROM (SELECT * FROM own_cache ORDER BY pid))),
	'stacks', (SELECT json_object('whole_share',
		ROUND(COALESCE(SUM(CASE stopped WHEN '' THEN share
		END), 0.0), 6), 'stopped', json(COALESCE(json_group_object(stopped, ROUND(share, 6))
		FILTER (WHERE stopped <> ''), '{}'))) FROM stack_quality),
	'allocators', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM allocator_json ORDER BY pid, module))),
	'notes', json((SELECT json_group_array(text) FROM (
		SELECT text FROM note ORDER BY position, text))),
	'not_captured', json((SELECT json_group_object(toll, not_captured) FROM (
		SELECT toll, not_captured FROM toll_kind WHERE not_captured IS NOT NULL
		ORDER BY position))),
	'checks', json((SELECT json_group_object(name, json_object('ours', ours, 'kernel', kernel,
		'difference', difference, 'ok', json(CASE WHEN ok THEN 'true' ELSE 'false' END)))
		FROM (SELECT * FROM checks ORDER BY position))),
	'losses', json((SELECT json_group_object(name, count) FROM (
		SELECT name, count FROM losses ORDER BY name))),
	'sampled', json((SELECT json_group_array(json(json)) FROM (
		SELECT json FROM sampled_json ORDER BY bytes DESC, call, stack_id))),
	'hold', json((SELECT json FROM hold_json)),
	'overhead', (SELECT json_object('limit_pct', o.limit_pct,
		'estimated_pct', ROUND(o.estimated_pct, 4), 'error_pct', ROUND(e.error_pct, 4),
		'source', e.source, 'hits', o.hits, 'held_s', ROUND(o.held_ns / 1e9, 6),
		'ns_per_hit', json((SELECT json_group_object(probe, ROUND(hit_ns, 1)) FROM (
			SELECT probe, hit_ns FROM price ORDER BY probe))),
		'ns_per_hit_error', json((SELECT json_group_object(probe, ROUND(error_ns, 1)) FROM (
			SELECT probe, error_ns FROM price ORDER BY probe))),
		'duty_cycle', json((SELECT json_group_object(call, ROUND(share, 4)) FROM (
			SELECT call, share FROM duty_cycle ORDER BY call))))
		FROM overhead o JOIN overhead_error e)
) AS json
FROM target t;

-- Folded stacks: root first, weights in microseconds. Allocation stack; where the allocation is not
-- known, the touching one.
CREATE VIEW folded AS
SELECT toll, stack, CAST(ROUND(SUM(time_ns) / 1000) AS INTEGER) AS weight
FROM (
	SELECT s.toll, s.time_ns, COALESCE((
		SELECT group_concat(name, ';') FROM (
			SELECT REPLACE(l.name, ';', ':') AS name FROM stack_line l
			WHERE l.stack_id = CASE WHEN s.allocated_stack <> 0 THEN s.allocated_stack
				ELSE s.touched_stack END
			ORDER BY l.depth DESC)), '[unknown]') AS stack
	FROM sites s)
GROUP BY toll, stack HAVING SUM(time_ns) >= 500;

-- SPDX-License-Identifier: GPL-2.0
--
-- handlers.sql: who answers faults that wait for a userfaultfd's handler, and how long they wait.
-- Follows stacks.sql.

-- Handlers, by what they answered.
CREATE VIEW handler_thread AS
SELECT ROW_NUMBER() OVER (ORDER BY SUM(waits) DESC, handler_tid, stack_id) AS rank, handler_pid,
	handler_tid, MAX(comm) AS comm, MAX(process) AS process, MAX(request) AS request, stack_id,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = handler.stack_id) AS place,
	SUM(waits) AS waits, SUM(wait_ns) AS wait_ns,
	handler_pid IN (SELECT pid FROM process) AS traced, MIN(pid = handler_pid) AS own
FROM handler GROUP BY handler_pid, handler_tid, stack_id;

-- One row; NULL where none was seen. text: who answers most. Quantiles as in view latency_call.
CREATE VIEW handler_measure AS
WITH
bucket AS MATERIALIZED (
	SELECT low_ns, high_ns, waits, SUM(waits) OVER (ORDER BY low_ns) - waits AS before,
		SUM(waits) OVER () AS n
	FROM (SELECT low_ns, MAX(high_ns) AS high_ns, SUM(waits) AS waits FROM fault_wait
		GROUP BY low_ns)
),
quantile(q) AS (VALUES (0.5), (0.99)),
placed AS (
	SELECT q.q, b.low_ns + (COALESCE(b.high_ns, 2 * b.low_ns) - b.low_ns)
		* MIN(1.0, MAX(0.0, (q.q * b.n - b.before) / b.waits)) AS ns
	FROM bucket b JOIN quantile q
		ON b.before < q.q * b.n AND b.before + b.waits >= q.q * b.n
),
longest AS (SELECT * FROM longest_wait ORDER BY wait_ns DESC, pid LIMIT 1),
total AS (
	SELECT SUM(waits) AS waits, SUM(wait_ns) AS wait_ns,
		COUNT(DISTINCT handler_tid) AS threads FROM handler
),
first AS (
	SELECT 'thread ' || comm || ' (' || handler_tid || ')' || CASE WHEN own THEN ''
		ELSE ' of process ' || process || ' (' || handler_pid || ')'
			|| CASE WHEN traced THEN '' ELSE ', which is not traced' END END
		|| CASE WHEN place IS NOT NULL THEN ', ' || COALESCE(NULLIF(request, '') || ' ',
			'') || 'at ' || place
		WHEN request <> '' THEN ', by ' || request ELSE '' END AS text, waits
	FROM handler_thread WHERE rank = 1
)
SELECT t.waits, t.wait_ns, t.threads, f.text, 1.0 * f.waits / t.waits AS first_share,
	-- no quantile lies above the longest, where that is known
	MIN(q.p50_ns, COALESCE(l.wait_ns, q.p50_ns)) AS p50_ns,
	MIN(q.p99_ns, COALESCE(l.wait_ns, q.p99_ns)) AS p99_ns,
	l.wait_ns AS longest_ns,
	(SELECT p.code FROM stack_place p WHERE p.stack_id = l.stack_id) AS longest_place
FROM total t JOIN (SELECT MAX(CASE q WHEN 0.5 THEN ns END) AS p50_ns,
	MAX(CASE q WHEN 0.99 THEN ns END) AS p99_ns FROM placed) q
LEFT JOIN first f LEFT JOIN longest l;

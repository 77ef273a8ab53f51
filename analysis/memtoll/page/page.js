/* SPDX-License-Identifier: GPL-2.0
 *
 * The sites and the flame graph of a page, from the JSON in it. Rows are made as they are asked for.
 * Names come from traced programs: they enter the page as text only. Follows charts.js.
 */
(() => {
	const data = JSON.parse(document.getElementById("data").textContent);
	const { sites, parent, frame, frames, texts, tolls, colours } = data;
	const number = sites.toll.length;
	const PAGE = 25;
	const STACKS = 10;
	const LEAST = 3;
	const ROW = 21;
	const DRAWN = 3000;
	const $ = (id) => document.getElementById(id);

	/* ---- figures, as the report prints them */

	const digits = (value) => value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
	function formatTime(ns) {
		for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]])
			if (ns >= size)
				return `${digits(ns / size)} ${unit}`;
		return `${ns > 0 ? digits(ns) : 0} ns`;
	}
	function formatBytes(value) {
		for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])
			if (value >= size)
				return `${digits(value / size)} ${unit}`;
		return `${value.toFixed(0)} B`;
	}
	const formatCount = (value) => value.toLocaleString("en-US");
	const formatShare = (part) => `${(100 * part).toFixed(1)} %`;

	/* Relative luminance (WCAG 2.2) decides between black and white letters. */
	function inkOn(colour) {
		const [r, g, b] = [1, 3, 5].map((at) => {
			const part = parseInt(colour.slice(at, at + 2), 16) / 255;
			return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
		});
		return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
	}

	function make(tag, className, ...inside) {
		const element = document.createElement(tag);
		if (className)
			element.className = className;
		element.append(...inside);
		return element;
	}
	const bdi = (text) => make("bdi", "", text);

	function chip(toll) {
		const colour = make("i", "");
		colour.style.background = colours[toll];
		return make("span", "toll", colour, tolls[toll]);
	}

	/* ---- searching: a frame is looked at once, not once for each site */

	function framesWith(words) {
		const found = new Uint8Array(frames.function.length);
		for (let at = 0; at < found.length; at++) {
			const text = `${texts[frames.function[at]]} ${texts[frames.place[at]]} ${texts[frames.module[at]]}`.toLowerCase();
			found[at] = words.every((word) => text.includes(word));
		}
		return found;
	}
	function nodesBelow(found) {
		const below = new Uint8Array(parent.length);
		for (let node = 1; node < parent.length; node++)
			below[node] = below[parent[node]] || found[frame[node]];
		return below;
	}
	const split = (text) => text.toLowerCase().split(/\s+/).filter((word) => word);

	/* ---- the list of sites */

	const COMPUTE = tolls.indexOf("compute");
	const RECLAIM = tolls.indexOf("reclaim");
	const FAULTS = new Set(["swap.in", "zero.kernel", "cow", "file.fault", "fault.user", "fault.other"]
		.map((name) => tolls.indexOf(name)));
	let order = [];
	let shown = 0;

	/* Sites of one toll, call and kind of memory, allocated at one place and touched at one. */
	function groupsOf(hit, folded) {
		const groups = new Map();
		for (let at = 0; at < number; at++) {
			if (!hit(at))
				continue;
			const fold = folded && sites.toll[at] === COMPUTE;
			const where = fold ? "" : `${sites.call[at]}|${sites.area[at]}|${sites.ap[at]}|${sites.tp[at]}`;
			const key = `${sites.toll[at]}|${where}`;
			let group = groups.get(key);
			if (!group) {
				group = { toll: sites.toll[at], first: at, where, fold, time: 0, bytes: 0, count: 0, share: 0, least: 0, members: [] };
				groups.set(key, group);
			}
			group.time += sites.time[at];
			group.bytes += sites.bytes[at];
			group.count += sites.count[at];
			group.share += sites.share[at];
			group.least |= sites.least[at];
			group.members.push(at);
		}
		return [...groups.values()];
	}

	/* What reclaim cost stands below the faults that it happened in: those of the same places. */
	function joined(groups) {
		const faults = new Map();
		for (const each of groups)
			if (FAULTS.has(each.toll) && !faults.has(each.where))
				faults.set(each.where, each);
		const below = new Map();
		const rest = groups.filter((each) => {
			const fault = each.toll === RECLAIM && faults.get(each.where);
			if (fault) {
				each.inside = fault;
				below.set(fault, each);
			}
			return !fault;
		});
		const weight = (each) => each.time + (below.get(each)?.time ?? 0);
		return rest.sort((a, b) => weight(b) - weight(a)).flatMap((each) => below.has(each) ? [each, below.get(each)] : [each]);
	}

	function choose() {
		const words = split($("site-search").value);
		const toll = $("site-toll").value;
		const key = document.querySelector("[data-sort][aria-pressed=true]").dataset.sort;
		const below = words.length ? nodesBelow(framesWith(words)) : null;
		const plain = !below && toll === "";
		const hit = (at) => {
			if (toll !== "" && sites.toll[at] !== Number(toll))
				return false;
			if (!below || below[sites.a[at]] || below[sites.t[at]])
				return true;
			const text = `${tolls[sites.toll[at]]} ${texts[sites.call[at]]} ${texts[sites.area[at]]}`.toLowerCase();
			return words.every((word) => text.includes(word));
		};
		const groups = groupsOf(hit, plain).sort((a, b) => b[key] - a[key] || b.bytes - a.bytes || a.first - b.first);
		const kept = plain ? groups.filter((each) => each[key] > 0) : groups;
		order = key === "time" ? joined(kept) : kept;
		const time = order.reduce((sum, each) => sum + each.time, 0);
		const many = groups.reduce((sum, each) => sum + each.members.length, 0);
		const all = number + data.left.sites;
		const of = plain ? "" : ` of ${formatCount(number)}`;
		let text = `${formatCount(many)}${of} sites at ${formatCount(groups.length)} place${groups.length === 1 ? "" : "s"}, ${formatTime(time)}`;
		if (kept.length < groups.length)
			text += `; ${formatCount(groups.length - kept.length)} of them without any ${key}, left out`;
		if (data.left.sites)
			text += `; ${formatCount(data.left.sites)} more of ${formatCount(all)}, ${formatTime(data.left.time)} in all, are not in this page: python3 -m memtoll report --sites 0`;
		$("site-status").textContent = text;
		$("site-list").replaceChildren();
		shown = 0;
		more();
	}

	function more() {
		let next = Math.min(shown + PAGE, order.length);
		if (!shown)	/* what rounds to nothing waits to be asked for */
			while (next > LEAST && order[next - 1].share < 500)
				next--;
		const rows = [];
		for (; shown < next; shown++)
			rows.push(row(order[shown]));
		$("site-list").append(...rows);
		$("site-more").hidden = shown >= order.length;
		$("site-more").textContent = `Show ${Math.min(PAGE, order.length - shown)} more of ${formatCount(order.length - shown)}`;
		return rows[0];
	}

	function amount(each) {
		const toll = tolls[each.toll];
		if (each.least)
			return ["", `at least ${formatBytes(each.bytes)}`];
		const stored = toll === "zero.app" || toll === "copy.app";
		if (toll === "compute" || stored)
			return [`${formatCount(each.count)} sample${each.count === 1 ? "" : "s"}`, stored ? `~${formatBytes(each.bytes)}` : ""];
		return [`${formatCount(each.count)} x`, each.bytes ? formatBytes(each.bytes) : ""];
	}

	/* Where it was allocated, or else what memory it is; and the code that touched it. */
	function places(group) {
		const at = group.first;
		const call = texts[sites.call[at]], made = texts[sites.ap[at]], touched = texts[sites.tp[at]];
		const box = make("span", "place");
		if (group.inside)
			box.append(make("span", "", `in these faults on ${tolls[group.inside.toll]}`));
		else if (group.fold)
			box.append(make("span", "", "wherever it computes: choose the toll compute for its places"));
		else if (call || made)
			box.append(make("span", "", bdi(call && made ? `${call} at ${made}` : call || made)));
		else if (texts[sites.area[at]])
			box.append(make("span", "", bdi(texts[sites.area[at]])));
		if (touched && !group.fold && !group.inside)
			box.append(make("span", "", `${tolls[group.toll] === "compute" ? "" : "touched "}at `, bdi(touched)));
		if (!box.children.length)
			box.append("-");
		return box;
	}

	function row(group) {
		const [count, bytes] = amount(group);
		const summary = make("summary", "",
			make("strong", "", formatShare(group.share / 1e6)),
			make("span", "", formatTime(group.time)), chip(group.toll),
			places(group),
			make("span", "number figure", count), make("span", "number figure", bytes));
		const details = make("details", group.inside ? "site inside" : "site", summary);
		details.addEventListener("toggle", () => {
			if (details.open && details.children.length === 1)
				details.append(...members(group));
		});
		return details;
	}

	/* The stacks of a place, those with most time first. */
	function members(group) {
		const taken = group.members.slice(0, STACKS);
		const boxes = taken.map((at) => stacks(at, group.members.length > 1));
		if (group.members.length > taken.length)
			boxes.push(make("p", "rest", `and ${formatCount(group.members.length - taken.length)} more stacks`));
		return boxes;
	}

	function stacks(at, alone) {
		const toll = tolls[sites.toll[at]];
		const box = make("div", "stacks");
		if (alone)
			box.append(make("p", "rest", `${formatShare(sites.share[at] / 1e6)}, ${formatTime(sites.time[at])}`));
		if (texts[sites.area[at]])
			box.append(make("div", "", make("h4", "", "in"), make("ol", "", make("li", "", bdi(texts[sites.area[at]])))));
		const made = toll === "map" ? "called at" : texts[sites.call[at]] === "free" ? "freed at" : "allocated at";
		for (const [title, node] of [[made, sites.a[at]], [toll === "compute" ? "sampled at" : "touched at", sites.t[at]]])
			if (node)
				box.append(make("div", "", make("h4", "", title), stackList(node)));
		if (!box.querySelector("h4"))
			box.append("No stack is known.");
		return box;
	}

	function stackList(leaf) {
		const list = make("ol", "");
		for (let node = leaf; node; node = parent[node])
			list.append(make("li", frames.own[frame[node]] ? "own" : "", bdi(nameOf(node)), " ", make("span", "", bdi(texts[frames.place[frame[node]]]))));
		return list;
	}

	const nameOf = (node) => texts[frames.function[frame[node]]] || "?";

	/* ---- the flame graph */

	const flame = { total: null, toll: "", owner: "a", zoom: 0, cells: [], focus: null, found: null, tree: null };

	/* Children of each node, as slices of one array. at: the node of each node of the whole tree. */
	function treeOf(parent, frame, at) {
		const first = new Uint32Array(parent.length + 1);
		const child = new Uint32Array(parent.length);
		for (let node = 1; node < parent.length; node++)
			first[parent[node] + 1]++;
		for (let node = 0; node < parent.length; node++)
			first[node + 1] += first[node];
		const fill = first.slice();
		for (let node = 1; node < parent.length; node++)
			child[fill[parent[node]]++] = node;
		return { parent, frame, at, below: (node) => child.subarray(first[node], first[node + 1]) };
	}

	/* Without the frames of libraries, allocators and interpreters: what is left of two stacks may be one. */
	function ownTree() {
		const parents = [0], kinds = [-1], known = new Map();
		const at = new Uint32Array(parent.length);
		for (let node = 1; node < parent.length; node++) {
			const above = at[parent[node]];
			if (!frames.own[frame[node]]) {
				at[node] = above;
				continue;
			}
			const key = above * frames.own.length + frame[node];
			if (!known.has(key)) {
				known.set(key, parents.length);
				parents.push(above);
				kinds.push(frame[node]);
			}
			at[node] = known.get(key);
		}
		return treeOf(parents, kinds, at);
	}
	const trees = new Map();
	function tree(own) {
		if (!trees.has(own))
			trees.set(own, own ? ownTree() : treeOf(parent, frame, null));
		return trees.get(own);
	}

	function weigh() {
		const { parent, at: nodes } = flame.tree;
		const total = new Float64Array(parent.length);
		const own = new Map();	/* node -> time by toll, for the cells on top */
		for (let at = 0; at < number; at++) {
			const toll = sites.toll[at];
			if (flame.toll === "" ? tolls[toll] === "compute" : toll !== Number(flame.toll))
				continue;
			const whole = sites[flame.owner][at], node = nodes ? nodes[whole] : whole;
			total[node] += sites.time[at];
			if (!own.has(node))
				own.set(node, new Map());
			const mine = own.get(node);
			mine.set(toll, (mine.get(toll) || 0) + sites.time[at]);
		}
		for (let node = parent.length - 1; node > 0; node--)
			total[parent[node]] += total[node];
		flame.total = total;
		flame.own = own;
	}

	function layout() {
		const { parent, below } = flame.tree;
		const cells = [];
		const graph = $("flame-graph");
		const width = graph.clientWidth;
		const path = [];
		for (let node = flame.zoom; node; node = parent[node])
			path.unshift(node);
		path.unshift(0);
		path.forEach((node, depth) => {
			if (node !== flame.zoom)
				cells.push({ node, depth, left: 0, width, outer: true });
		});
		const scale = width / (flame.total[flame.zoom] || 1);
		const waiting = [[flame.zoom, path.length - 1, 0]];
		while (waiting.length && cells.length < DRAWN) {
			const [node, depth, left] = waiting.shift();
			cells.push({ node, depth, left, width: flame.total[node] * scale });
			let at = left;
			for (const [toll, time] of [...(flame.own.get(node) || [])].sort((a, b) => b[1] - a[1])) {
				if (time * scale >= 0.7)
					cells.push({ node, toll, time, depth: depth + 1, left: at, width: time * scale });
				at += time * scale;
			}
			for (const each of Array.from(below(node)).sort((a, b) => flame.total[b] - flame.total[a])) {
				if (flame.total[each] * scale < 0.7)
					break;
				waiting.push([each, depth + 1, at]);
				at += flame.total[each] * scale;
			}
		}
		return cells;
	}

	function labelOf(cell) {
		if (cell.toll !== undefined)
			return tolls[cell.toll];
		if (!cell.node)
			return "all";
		return texts[frames.function[flame.tree.frame[cell.node]]] || "?";
	}
	/* With its part of what is shown, where there is room. */
	function wordsOf(cell) {
		const part = (cell.time ?? flame.total[cell.node]) / (flame.total[0] || 1);
		const label = labelOf(cell);
		return cell.width > 7 * label.length + 50 || cell.width > 110 ? `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %  ${label}` : label;
	}
	function describe(cell) {
		const time = cell.time ?? flame.total[cell.node];
		const place = cell.node && cell.toll === undefined ? ` ${texts[frames.place[flame.tree.frame[cell.node]]]}` : "";
		const unknown = cell.toll !== undefined && !cell.node ? " of no known stack" : "";
		return `${labelOf(cell)}${unknown}${place}: ${formatTime(time)}, ${formatShare(time / (flame.total[0] || 1))} of what is shown, ${formatShare(time / (data.observed || 1))} of the observed time`;
	}

	function draw() {
		flame.cells = layout();
		const rows = Math.max(...flame.cells.map((cell) => cell.depth)) + 1;
		const graph = $("flame-graph");
		graph.replaceChildren();
		graph.style.height = `${rows * ROW + 2}px`;
		flame.cells.forEach((cell) => {
			const box = make("div", cell.outer ? "outer" : "", cell.width > 24 ? bdi(wordsOf(cell)) : "");
			box.style.left = `${cell.left}px`;
			box.style.width = `${Math.max(cell.width, 0.7)}px`;
			box.style.top = `${(rows - 1 - cell.depth) * ROW}px`;
			if (cell.width < 8)
				box.style.padding = "0";
			if (cell.width < 3)
				box.style.borderRightWidth = "0";
			if (cell.toll !== undefined) {
				box.style.background = colours[cell.toll];
				box.style.color = inkOn(colours[cell.toll]);
			} else if (flame.found && cell.node && flame.found[flame.tree.frame[cell.node]]) {
				box.classList.add("found");
			}
			box.setAttribute("role", "treeitem");
			box.setAttribute("aria-level", cell.depth + 1);
			box.setAttribute("aria-label", describe(cell));
			box.title = describe(cell);
			box.tabIndex = -1;
			box.cell = cell;
			cell.box = box;
		});
		graph.append(...flame.cells.map((cell) => cell.box));
		const start = flame.cells.find((cell) => cell.node === flame.zoom && cell.toll === undefined);
		start.box.tabIndex = 0;
		flame.focus = start;
		graph.scrollTop = graph.scrollHeight;
	}

	function say(cell) {
		$("flame-status").textContent = cell ? describe(cell) : "";
	}
	function focus(cell) {
		if (!cell)
			return;
		flame.focus.box.tabIndex = -1;
		flame.focus = cell;
		cell.box.tabIndex = 0;
		cell.box.focus({ preventScroll: false });
		say(cell);
	}
	function zoom(node) {
		flame.zoom = node;
		draw();
		focus(flame.focus);
	}
	/* The cell beside: below or above in the stack, or to a side in the same row. */
	function beside(cell, key) {
		const middle = cell.left + cell.width / 2;
		const rowAt = (depth) => flame.cells.filter((each) => each.depth === depth);
		if (key === "ArrowDown")
			return rowAt(cell.depth - 1).find((each) => each.left <= middle && middle < each.left + each.width + 0.7);
		if (key === "ArrowUp")
			return rowAt(cell.depth + 1).filter((each) => each.left >= cell.left - 0.1 && each.left < cell.left + cell.width)
				.sort((a, b) => b.width - a.width)[0];
		const row = rowAt(cell.depth).sort((a, b) => a.left - b.left);
		return row[row.indexOf(cell) + (key === "ArrowRight" ? 1 : -1)];
	}

	function startFlame() {
		const graph = $("flame-graph");
		$("flame").hidden = false;
		for (const [at, toll] of tolls.entries())
			if (sites.toll.includes(at))
				$("flame-toll").append(new Option(toll, at));
		const again = () => {
			flame.toll = $("flame-toll").value;
			flame.owner = $("flame-owner").value;
			flame.zoom = 0;
			flame.tree = tree($("flame-own").checked);
			weigh();
			draw();
			say(null);
		};
		$("flame-toll").addEventListener("change", again);
		$("flame-owner").addEventListener("change", again);
		for (const [one, other] of [["flame-own", "site-own"], ["site-own", "flame-own"]])
			$(one).addEventListener("change", () => {
				$(other).checked = $(one).checked;
				$("site-list").classList.toggle("own-only", $(one).checked);
				again();
			});
		$("flame-form").addEventListener("submit", (event) => event.preventDefault());
		$("flame-reset").addEventListener("click", () => { zoom(0); });
		$("flame-search").addEventListener("input", () => {
			const words = split($("flame-search").value);
			flame.found = words.length ? framesWith(words) : null;
			draw();
			if (!flame.found)
				return say(null);
			let time = 0;
			const { parent, frame } = flame.tree;
			const counted = new Uint8Array(parent.length);
			for (let node = 1; node < parent.length; node++) {
				counted[node] = counted[parent[node]];
				if (!counted[node] && flame.found[frame[node]]) {
					counted[node] = 1;
					time += flame.total[node];
				}
			}
			$("flame-status").textContent = `Found in ${formatTime(time)}, ${formatShare(time / (flame.total[0] || 1))} of what is shown`;
		});
		graph.addEventListener("click", (event) => {
			const cell = event.target.closest("[role=treeitem]")?.cell;
			if (cell)
				zoom(cell.node);
		});
		graph.addEventListener("mouseover", (event) => {
			const cell = event.target.closest("[role=treeitem]")?.cell;
			if (cell)
				say(cell);
		});
		graph.addEventListener("focusin", (event) => say(event.target.cell));
		graph.addEventListener("keydown", (event) => {
			const cell = event.target.cell;
			if (!cell)
				return;
			if (event.key.startsWith("Arrow")) {
				focus(beside(cell, event.key));
			} else if (event.key === "Enter" || event.key === " ") {
				zoom(cell.node);
			} else if (event.key === "Escape") {
				zoom(flame.zoom ? flame.tree.parent[flame.zoom] : 0);
			} else {
				return;
			}
			event.preventDefault();
		});
		let width = 0;
		new ResizeObserver(() => {
			if (graph.clientWidth !== width) {
				width = graph.clientWidth;
				draw();
			}
		}).observe(graph);
		flame.tree = tree(false);
		weigh();
		draw();
		width = graph.clientWidth;
	}

	/* ---- tables */

	function sortTable(button) {
		const head = button.closest("th");
		const table = button.closest("table");
		const column = [...head.parentNode.children].indexOf(head);
		const numeric = head.classList.contains("number") || table.tBodies[0].rows[0].cells[column].classList.contains("share");
		const before = head.getAttribute("aria-sort");
		const descending = before ? before === "ascending" : numeric;
		for (const each of head.parentNode.children)
			each.removeAttribute("aria-sort");
		head.setAttribute("aria-sort", descending ? "descending" : "ascending");
		const key = (row) => row.cells[column]?.dataset.key ?? "";
		const compare = (a, b) => numeric ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b));
		const rows = [...table.tBodies[0].rows].sort((a, b) => descending ? compare(b, a) : compare(a, b));
		table.tBodies[0].append(...rows);
	}

	/* ---- what changed */

	function startChange() {
		const root = document.documentElement;
		for (const button of document.querySelectorAll("[data-view]"))
			button.addEventListener("click", () => {
				root.dataset.shown = button.dataset.view;
				for (const each of document.querySelectorAll("[data-view]"))
					each.setAttribute("aria-pressed", each === button);
			});
		if (document.getElementById("change")) {
			root.dataset.shown = "after";
			$("change-switch").hidden = false;
		}
	}

	/* ---- start */

	for (const button of document.querySelectorAll("thead button"))
		button.addEventListener("click", () => sortTable(button));
	for (const [at, toll] of tolls.entries())
		if (sites.toll.includes(at))
			$("site-toll").append(new Option(toll, at));
	$("site-form").hidden = false;
	$("site-form").addEventListener("submit", (event) => event.preventDefault());
	let waiting = 0;
	$("site-search").addEventListener("input", () => {
		clearTimeout(waiting);
		waiting = setTimeout(choose, 120);
	});
	$("site-toll").addEventListener("change", choose);
	for (const button of document.querySelectorAll("[data-sort]"))
		button.addEventListener("click", () => {
			for (const each of document.querySelectorAll("[data-sort]"))
				each.setAttribute("aria-pressed", each === button);
			choose();
		});
	$("site-more").addEventListener("click", () => more().querySelector("summary").focus());
	choose();
	if (number)
		startFlame();
	startChange();
	drawCharts(data, { make, bdi, formatTime, formatBytes, formatCount, formatShare });
	document.documentElement.dataset.ready = "yes";
})();

/* SPDX-License-Identifier: GPL-2.0
 *
 * The timeline and the map of a page, from the JSON in it. Both show the same time: what is zoomed in
 * one is in the other. Names enter the page as text only.
 */
"use strict";
function drawCharts(data, { make, bdi, formatTime, formatBytes, formatCount, formatShare }) {
	const SECOND = 1e6;	/* times are in us */
	const PAGE = 4096;
	const NEAR = 12;	/* pixels */
	const DRAG = 5;
	const charts = [];
	const all = { from: 0, to: 1 };
	const view = { from: 0, to: 1 };

	const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const round = (value, step) => Number(value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));

	/* 1, 2 or 5 times a power of ten, so that there are about so many steps. */
	function stepOf(span, wanted) {
		const power = 10 ** Math.floor(Math.log10(span / wanted));
		return [1, 2, 5, 10].map((each) => each * power).find((each) => span / each <= wanted);
	}

	/* ---- what both have: a canvas, its margins, time from left to right */

	function chart(name, draw, at) {
		const box = document.getElementById(`chart-${name}`);
		const canvas = box.querySelector("canvas");
		const self = {
			name, box, canvas, tip: box.querySelector(".chart-tip"), status: box.querySelector("[role=status]"),
			tools: canvas.getContext("2d"), drag: null, at,
			x: (time) => self.left + (time - view.from) / (view.to - view.from) * self.wide,
			time: (x) => view.from + (x - self.left) / self.wide * (view.to - view.from),
		};
		self.draw = () => {
			const room = canvas.parentNode.clientWidth;
			if (!room)
				return;
			const dots = window.devicePixelRatio || 1;
			self.width = room;
			self.height = room < 560 ? 300 : 340;
			canvas.style.height = `${self.height}px`;
			canvas.width = Math.round(room * dots);
			canvas.height = Math.round(self.height * dots);
			self.tools.setTransform(dots, 0, 0, dots, 0, 0);
			self.tools.clearRect(0, 0, room, self.height);
			self.tools.font = `12px ${colour("--sans")}`;
			self.top = 10;
			self.below = self.height - 38;
			self.tall = self.below - self.top;
			draw(self);
			axis(self);
			selection(self);
		};
		box.hidden = false;
		listen(self);
		charts.push(self);
		return self;
	}

	function axis(self) {
		const { tools } = self;
		const step = stepOf((view.to - view.from) / SECOND, Math.max(2, self.wide / 90));
		tools.fillStyle = colour("--ink");
		tools.strokeStyle = colour("--faint");
		tools.textAlign = "center";
		tools.textBaseline = "top";
		tools.lineWidth = 1;
		for (let at = Math.ceil(view.from / SECOND / step) * step; at <= view.to / SECOND + 1e-9; at += step) {
			const x = self.x(at * SECOND);
			tools.beginPath();
			tools.moveTo(x, self.below);
			tools.lineTo(x, self.below + 4);
			tools.stroke();
			tools.fillText(`${round(at, step)}`, Math.min(x, self.width - 14), self.below + 6);
		}
		tools.fillStyle = colour("--faint");
		tools.fillText("time since the start (s)", self.left + self.wide / 2, self.below + 21);
		tools.beginPath();
		tools.moveTo(self.left, self.below);
		tools.lineTo(self.left + self.wide, self.below);
		tools.stroke();
	}

	function selection(self) {
		if (!self.drag || Math.abs(self.drag.x1 - self.drag.x0) < DRAG)
			return;
		self.tools.fillStyle = colour("--accent");
		self.tools.globalAlpha = 0.25;
		self.tools.fillRect(Math.min(self.drag.x0, self.drag.x1), self.top, Math.abs(self.drag.x1 - self.drag.x0), self.tall);
		self.tools.globalAlpha = 1;
	}

	/* ---- zoom */

	const redraw = () => charts.forEach((each) => each.draw());
	function show(from, to) {
		const least = Math.min(all.to - all.from, 100);
		const span = Math.min(Math.max(to - from, least), all.to - all.from);
		view.from = Math.min(Math.max(from, all.from), all.to - span);
		view.to = view.from + span;
		redraw();
		for (const each of charts)
			each.tip.hidden = true;
	}
	function zoom(how, middle = (view.from + view.to) / 2) {
		if (how === "all") {
			return show(all.from, all.to);
		}
		const factor = how === "in" ? 0.5 : 2;
		show(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
	}
	const move = (part) => {
		const span = view.to - view.from;
		show(view.from + part * span, view.to + part * span);
	};

	/* ---- pointer and keys */

	function listen(self) {
		const { canvas } = self;
		const place = (event) => {
			const box = canvas.getBoundingClientRect();
			return [event.clientX - box.left, event.clientY - box.top];
		};
		canvas.addEventListener("pointerdown", (event) => {
			if (event.button || event.pointerType === "touch")
				return;
			const [x, y] = place(event);
			self.drag = { x0: x, x1: x, y0: y, y1: y };
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => {
			const [x, y] = place(event);
			if (self.drag) {
				self.drag.x1 = x;
				self.drag.y1 = y;
				self.draw();
			}
			tell(self, x, y);
		});
		canvas.addEventListener("pointerup", (event) => {
			const drag = self.drag;
			const [x, y] = place(event);
			self.drag = null;
			if (!drag || Math.abs(drag.x1 - drag.x0) < DRAG)
				return tell(self, x, y);
			const [from, to] = [drag.x0, drag.x1].map(self.time).sort((a, b) => a - b);
			show(from, to);
		});
		canvas.addEventListener("pointercancel", () => { self.drag = null; self.draw(); });
		canvas.addEventListener("pointerleave", () => { self.tip.hidden = true; });
		canvas.addEventListener("dblclick", () => zoom("all"));
		canvas.addEventListener("wheel", (event) => {
			if (!event.ctrlKey)
				return;	/* the page scrolls */
			event.preventDefault();
			zoom(event.deltaY < 0 ? "in" : "out", self.time(place(event)[0]));
		}, { passive: false });
		canvas.addEventListener("keydown", (event) => {
			const keys = {
				"+": () => zoom("in"), "=": () => zoom("in"), "-": () => zoom("out"), "0": () => zoom("all"),
				Escape: () => zoom("all"), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
			};
			if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey)
				return;
			keys[event.key]();
			self.status.textContent = `${formatTime((view.from) * 1e3)} to ${formatTime(view.to * 1e3)} is shown`;
			event.preventDefault();
		});
		for (const button of self.box.querySelectorAll("[data-zoom]"))
			button.addEventListener("click", () => zoom(button.dataset.zoom));
	}

	function tell(self, x, y) {
		const lines = x < self.left || x > self.left + self.wide ? null : self.at(self, x, y);
		self.tip.hidden = !lines;
		if (!lines)
			return;
		self.tip.replaceChildren(...lines.map(([text, mark]) => {
			const line = make("div", "", bdi(text));
			if (mark) {
				const chip = make("i", "");
				chip.style.background = mark;
				line.prepend(chip);
			}
			return line;
		}));
		self.tip.style.left = `${Math.max(0, Math.min(x + 14, self.width - self.tip.offsetWidth - 2))}px`;
		self.tip.style.top = `${Math.max(0, y - self.tip.offsetHeight - 12)}px`;
		self.status.textContent = lines.map(([text]) => text).join("; ");
	}

	function legend(self, entries) {
		self.box.querySelector(".legend").append(...entries.map(([text, mark]) => {
			const chip = make("i", "");
			chip.style.background = mark;
			return make("li", "", chip, bdi(text));
		}));
	}

	/* ---- the timeline: time by toll in each slice, stacked */

	function timeline({ edges, layers }) {
		const count = edges.length - 1;
		const lengths = edges.slice(1).map((edge, at) => Math.max(edge - edges[at], 1e-3) * 1e3);
		const sums = lengths.map((_, at) => layers.reduce((sum, layer) => sum + layer.times[at], 0));
		const most = Math.max(...sums.map((sum, at) => sum / lengths[at]), 1e-9) * 1.06;
		const sliceAt = (time) => {
			let low = 0, high = count - 1;
			while (low < high) {
				const middle = (low + high + 1) >> 1;
				if (edges[middle] <= time)
					low = middle;
				else
					high = middle - 1;
			}
			return low;
		};
		const draw = (self) => {
			const { tools } = self;
			const step = stepOf(most, 5);
			tools.textAlign = "right";
			tools.textBaseline = "middle";
			self.left = 46;
			self.wide = self.width - self.left - 8;
			for (let at = 0; at <= most; at += step) {
				const y = self.below - at / most * self.tall;
				tools.fillStyle = colour("--line");
				tools.fillRect(self.left, y, self.wide, 1);
				tools.fillStyle = colour("--ink");
				tools.fillText(`${round(at, step)}`, self.left - 6, y);
			}
			tools.save();
			tools.beginPath();
			tools.rect(self.left, self.top, self.wide, self.tall);
			tools.clip();
			for (let at = sliceAt(view.from); at < count && edges[at] < view.to; at++) {
				const x = self.x(edges[at]), width = self.x(edges[at + 1]) - x;
				let y = self.below;
				for (const layer of layers) {
					const height = layer.times[at] / lengths[at] / most * self.tall;
					tools.fillStyle = layer.colour.startsWith("#") ? layer.colour : colour("--line");
					tools.fillRect(x, y - height, width > 4 ? width - 1 : width + 0.3, height);
					y -= height;
				}
			}
			tools.restore();
			tools.save();
			tools.translate(10, self.top + self.tall / 2);
			tools.rotate(-Math.PI / 2);
			tools.textAlign = "center";
			tools.fillStyle = colour("--faint");
			tools.fillText("observed time per second", 0, 0);
			tools.restore();
		};
		const at = (self, x) => {
			const slice = sliceAt(self.time(x));
			const from = formatTime(edges[slice] * 1e3), to = formatTime(edges[slice + 1] * 1e3);
			return [[`${from} to ${to}: ${formatTime(sums[slice])} observed`, ""],
				...layers.filter((layer) => layer.times[slice] > 0)
					.sort((a, b) => b.times[slice] - a.times[slice]).slice(0, 6)
					.map((layer) => [`${layer.label.split("  ")[0]} ${formatTime(layer.times[slice])}, ${formatShare(layer.times[slice] / sums[slice])}`, layer.colour])];
		};
		legend(chart("timeline", draw, at), layers.map((layer) => [layer.label, layer.colour]));
		all.to = Math.max(all.to, edges[count]);
	}

	/* ---- the map: each run of faults as a line from its first to its last page */

	function map({ tolls, stretches, lines, limit }) {
		const number = lines.begin.length;
		const last = stretches[stretches.length - 1];
		const whole = last.base + last.height;
		const from = (at) => stretches[lines.stretch[at]].base
			+ lines.page[at] * stretches[lines.stretch[at]].height / stretches[lines.stretch[at]].pages;
		const low = Float64Array.from({ length: number }, (_, at) => from(at));
		const high = Float64Array.from({ length: number }, (_, at) => from(at)
			+ lines.pages[at] * stretches[lines.stretch[at]].height / stretches[lines.stretch[at]].pages);
		const total = tolls.map(() => 0);
		for (let at = 0; at < number; at++)
			total[lines.toll[at]] += lines.pages[at];
		const order = tolls.map((_, at) => at).sort((a, b) => total[b] - total[a]);
		const draw = (self) => {
			const { tools } = self;
			const y = (value) => self.below - value / whole * self.tall;
			self.y = y;
			self.left = self.width < 560 ? 8 : 118;
			self.wide = self.width - self.left - (limit ? 22 : 8);
			tools.textBaseline = "middle";
			for (const each of stretches) {
				tools.fillStyle = colour("--band");
				tools.fillRect(self.left, y(each.base + each.height), self.wide, each.height / whole * self.tall);
			}
			ticks(self, y);
			tools.save();
			tools.beginPath();
			tools.rect(self.left, self.top - 3, self.wide, self.tall + 6);
			tools.clip();
			for (const toll of order) {
				tools.strokeStyle = tolls[toll].colour;
				tools.lineWidth = 3 * total[toll] >= total[order[0]] ? 2 : 1.4;
				tools.beginPath();
				for (let at = 0; at < number; at++) {
					if (lines.toll[at] !== toll || lines.end[at] < view.from || lines.begin[at] > view.to)
						continue;
					const x0 = self.x(lines.begin[at]), x1 = self.x(lines.end[at]);
					const y0 = y(low[at]), y1 = y(high[at]);
					tools.moveTo(x0, y0);
					tools.lineTo(Math.max(x1, x0 + (y0 - y1 < 1 ? 1.5 : 0)), y1);
				}
				tools.stroke();
			}
			tools.restore();
			names(self, y);
			if (limit)
				limitBar(self, y);
		};
		const ticks = (self, y) => {
			const { tools } = self;
			if (self.width < 560)
				return;
			tools.fillStyle = colour("--ink");
			tools.textAlign = "right";
			tools.font = `11px ${colour("--mono")}`;
			let above = Infinity;
			for (const each of stretches) {
				if (above - y(each.base) > 14) {
					above = y(each.base);
					tools.fillText(each.first, self.left - 6, Math.min(above, self.below - 4));
				}
				let step = 256;
				while (step / each.pages * each.height / whole * self.tall < 40)
					step *= 2;
				for (let pages = step; pages < each.pages; pages += step) {
					const at = y(each.base + pages / each.pages * each.height);
					if (above - at < 16 || at - y(each.base + each.height) < 8)
						continue;
					above = at;
					tools.fillText(`+ ${formatBytes(pages * PAGE).replace(/\.0+ /, " ")}`, self.left - 6, at);
				}
			}
			tools.font = `12px ${colour("--sans")}`;
		};
		const names = (self, y) => {
			const { tools } = self;
			tools.textAlign = "left";
			tools.textBaseline = "top";
			for (const each of stretches) {
				if (each.height / whole * self.tall < 24)
					continue;
				let text = `${formatBytes(each.pages * PAGE)}: ${each.owner}`;
				while (text.length > 8 && tools.measureText(text).width > self.wide - 12)
					text = `${text.slice(0, -5)}\u2026`;
				const width = tools.measureText(text).width;
				tools.globalAlpha = 0.85;
				tools.fillStyle = colour("--band");
				tools.fillRect(self.left + self.wide - width - 8, y(each.base + each.height) + 2, width + 6, 16);
				tools.globalAlpha = 1;
				tools.fillStyle = colour("--ink");
				tools.fillText(text, self.left + self.wide - width - 5, y(each.base + each.height) + 4);
			}
			tools.textBaseline = "middle";
		};
		const limitBar = (self, y) => {
			const { tools } = self;
			const tallest = stretches.reduce((a, b) => a.height >= b.height ? a : b);
			const part = limit.pages / tallest.pages;
			if (part < 0.02 || part >= 1)
				return;
			const x = self.left + self.wide + 5, top = y(tallest.base + part * tallest.height), foot = y(tallest.base);
			tools.strokeStyle = tools.fillStyle = colour("--ink");
			tools.lineWidth = 1.2;
			tools.beginPath();
			tools.moveTo(x - 3, top);
			tools.lineTo(x + 3, top);
			tools.moveTo(x, top);
			tools.lineTo(x, foot);
			tools.moveTo(x - 3, foot);
			tools.lineTo(x + 3, foot);
			tools.stroke();
			tools.save();
			tools.translate(x + 10, foot);
			tools.rotate(-Math.PI / 2);
			tools.textAlign = "left";
			tools.fillText(limit.label, 0, 0);
			tools.restore();
		};
		const at = (self, x, y) => {
			let best = -1, least = NEAR * NEAR;
			for (let line = 0; line < number; line++) {
				const x0 = self.x(lines.begin[line]), x1 = self.x(lines.end[line]);
				const y0 = self.y(low[line]), y1 = self.y(high[line]);
				const long = (x1 - x0) ** 2 + (y1 - y0) ** 2;
				const part = long ? Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / long)) : 0;
				const far = (x - x0 - part * (x1 - x0)) ** 2 + (y - y0 - part * (y1 - y0)) ** 2;
				if (far < least) {
					least = far;
					best = line;
				}
			}
			if (best < 0)
				return null;
			const stretch = stretches[lines.stretch[best]], toll = tolls[lines.toll[best]];
			return [
				[`${toll.toll}: ${formatBytes(lines.pages[best] * PAGE)}, ${formatCount(lines.faults[best])} fault${lines.faults[best] === 1 ? "" : "s"}`, toll.colour],
				[`${formatTime(lines.begin[best] * 1e3)} to ${formatTime(lines.end[best] * 1e3)}`, ""],
				[`${stretch.first} + ${formatBytes(lines.page[best] * PAGE)}, ${stretch.owner}`, ""],
			];
		};
		legend(chart("map", draw, at), tolls.map((toll) => [toll.label, toll.colour]));
		for (const end of lines.end)
			all.to = Math.max(all.to, end);
	}

	if (data.timeline)
		timeline(data.timeline);
	if (data.map)
		map(data.map);
	if (!charts.length)
		return;
	show(all.from, all.to);
	let width = 0;
	new ResizeObserver(() => {
		const now = charts[0].canvas.parentNode.clientWidth;
		if (now !== width) {
			width = now;
			redraw();
		}
	}).observe(charts[0].canvas.parentNode);
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	window.addEventListener("beforeprint", redraw);
}

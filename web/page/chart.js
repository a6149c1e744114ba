// One chart: lines of several runs over steps, with a crosshair that reads all of them.

import { el, clamp } from './dom.js';

const W = 560,
  H = 220,
  left = 54,
  bottom = 24,
  top = 10,
  right = 10;
const svg = (tag, attrs, ...children) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};

// nice gives about n round values between lo and hi.
function nice(lo, hi, n) {
  const raw = (hi - lo) / n || 1,
    p = 10 ** Math.floor(Math.log10(raw)),
    step = [1, 2, 5, 10].find(k => k * p >= raw) * p,
    out = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + step * 1e-6; v += step)
    out.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return out;
}
const short = v =>
  Math.abs(v) >= 1e4 ? (v / 1000).toFixed(Math.abs(v) < 1e5 ? 1 : 0) + 'k' : String(Number(v.toPrecision(4)));

// thin keeps at most n points, each the mean of its neighbours, so that long runs stay quick to draw.
function thin(points, n = 800) {
  const k = Math.ceil(points.length / n);
  if (k < 2) return points;
  const out = [];
  for (let i = 0; i < points.length; i += k) {
    const part = points.slice(i, i + k);
    out.push([part[part.length - 1][0], part.reduce((s, p) => s + p[1], 0) / part.length]);
  }
  return out;
}

export class Chart {
  constructor(title, root) {
    this.title = title;
    this.svg = svg('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', class: 'chart' });
    this.read = el('p', { class: 'soft chart-read' });
    this.box = el('figure', { class: 'chart-box' }, el('figcaption', {}, title), this.svg, this.read);
    root.append(this.box);
    this.svg.addEventListener('pointermove', e => this.point(e));
    this.svg.addEventListener('pointerleave', () => this.mark());
  }

  // draw takes lines: { name, points: [[x, y]…], n (number of its colour), dash }.
  draw(lines) {
    this.lines = lines
      .map(l => ({ ...l, points: thin(l.points.filter(p => Number.isFinite(p[1]))) }))
      .filter(l => l.points.length);
    const all = this.lines.flatMap(l => l.points);
    this.box.hidden = all.length === 0;
    if (this.box.hidden) return;
    const xs = all.map(p => p[0]),
      ys = all.map(p => p[1]).sort((a, b) => a - b);
    this.x = [Math.min(...xs), Math.max(...xs)];
    // The first steps of a loss would flatten all others: the axis ends at the 98th percentile unless that hides
    // little.
    const high = ys[Math.floor(0.98 * (ys.length - 1))],
      hi = high > ys[0] && ys[ys.length - 1] - ys[0] > 3 * (high - ys[0]) ? high : ys[ys.length - 1],
      pad = (hi - ys[0]) * 0.04 || Math.abs(hi) * 0.05 || 1;
    this.y = [ys[0] - pad, hi + pad];
    const px = x => left + ((x - this.x[0]) / (this.x[1] - this.x[0] || 1)) * (W - left - right),
      py = y => clamp(H - bottom - ((y - this.y[0]) / (this.y[1] - this.y[0])) * (H - bottom - top), top, H - bottom);
    Object.assign(this, { px, py });
    const parts = [svg('title', {}, this.summary())];
    for (const v of nice(...this.y, 5))
      parts.push(
        svg('path', { class: 'gridline', d: `M${left} ${py(v)}H${W - right}` }),
        svg('text', { x: left - 6, y: py(v) + 4, class: 'tick end' }, short(v)),
      );
    for (const v of nice(...this.x, 6)) parts.push(svg('text', { x: px(v), y: H - 6, class: 'tick mid' }, short(v)));
    for (const l of this.lines) {
      if (l.points.length === 1)
        parts.push(svg('circle', { cx: px(l.points[0][0]), cy: py(l.points[0][1]), r: 3, class: 'dot c' + (l.n % 8) }));
      parts.push(
        svg('path', {
          class: 'line c' + (l.n % 8) + (l.dash ? ' dash' : ''),
          d: 'M' + l.points.map(p => px(p[0]).toFixed(1) + ' ' + py(p[1]).toFixed(1)).join('L'),
        }),
      );
    }
    this.cross = svg('path', { class: 'cross', d: '' });
    this.svg.replaceChildren(...parts, this.cross);
    this.mark();
  }

  summary() {
    return (
      this.title +
      ': ' +
      this.lines
        .map(l => {
          const p = l.points[l.points.length - 1];
          return `${l.name} ${short(p[1])} at step ${p[0]}`;
        })
        .join(', ')
    );
  }

  point(e) {
    const r = this.svg.getBoundingClientRect(),
      at = (((e.clientX - r.left) / r.width) * W - left) / (W - left - right);
    this.mark(this.x[0] + clamp(at, 0, 1) * (this.x[1] - this.x[0]));
  }

  // mark reads all lines at a step, the last one by default.
  mark(x) {
    this.cross.setAttribute('d', x === undefined ? '' : `M${this.px(x)} ${top}V${H - bottom}`);
    const at = l => {
      let p = l.points[l.points.length - 1];
      if (x !== undefined) for (const c of l.points) if (Math.abs(c[0] - x) < Math.abs(p[0] - x)) p = c;
      return p;
    };
    const step = x === undefined ? '' : `step ${Math.round(x)}: `;
    this.read.textContent = step + this.lines.map(l => `${l.name} ${short(at(l)[1])}`).join(' · ');
  }
}

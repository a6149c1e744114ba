// The equation of maps: A1 − λ × A2 = difference, and the twin's map beside it, all on one signed scale.

import { el, options, clamp, fixed, signed, shown, segments } from './dom.js';
import { paint, paintKey, setScale, height } from './colour.js';
import { cancels } from './maps.js';

const kinds = [
  { id: 'a1', title: 'A₁', about: 'first look' },
  { id: 'a2', title: 'A₂', about: 'second look' },
  { id: 'df', title: 'A₁ − λA₂', about: 'what the head uses' },
  { id: 'tf', title: 'Beside it', about: '' },
];

export class Figures {
  constructor(lab, root) {
    this.lab = lab;
    this.key = el('canvas', {
      class: 'key',
      role: 'img',
      'aria-label': 'Colour scale from −1, blue, through 0, pale, to 1, orange; the same for all maps',
    });
    root.append(
      el(
        'div',
        { class: 'legend' },
        el('span', {}, '−1'),
        this.key,
        el('span', {}, '+1'),
        el('span', { class: 'soft' }, '↓ the token that looks, → the token looked at'),
      ),
    );
    this.eq = el('div', { class: 'eq' });
    root.append(this.eq);
    this.figs = {};
    for (const k of kinds) {
      if (k.id === 'a2') this.eq.append(this.lambdaPanel());
      this.eq.append(this.figure(k));
    }
  }

  figure(k) {
    const f = {
      canvas: el('canvas', { role: 'img' }),
      row: el('div', { class: 'q' }),
      span: el('div', { class: 's' }),
      column: el('div', { class: 'k', hidden: true }),
      ticks: el('div', { class: 'ticks', 'aria-hidden': 'true' }),
      profile: el('canvas', { class: 'profile', 'aria-hidden': 'true' }),
      foot: el('p', { class: 'foot' }),
      about: el('small', {}, k.about),
      title: el('b', { class: k.id }, k.title),
    };
    f.plot = el('div', { class: 'plot' }, f.canvas, f.ticks, f.row, f.span, f.column);
    f.read = el('p', { class: 'read', 'aria-hidden': 'true' });
    f.box = el(
      'figure',
      { class: 'map ' + k.id },
      el('figcaption', {}, f.title, f.about),
      f.plot,
      f.read,
      f.profile,
      f.foot,
    );
    if (k.id === 'tf') {
      this.twinHead = el('select', {
        'aria-label': 'Head of the model beside it',
        onchange: e => {
          const [tl, th] = e.target.value.split('.').map(Number);
          this.lab.set({ tl, th });
          if (this.lab.twin && !this.lab.twin.reply.whole) this.lab.fetchDetail();
        },
      });
      f.about.append(this.twinHead);
    }
    const cell = e => {
      const r = f.plot.getBoundingClientRect(),
        n = f.n || 1,
        tile = f.tile || 1,
        T = this.lab.base.tokens.length;
      const at = x => clamp(Math.floor(clamp(x, 0, 0.9999) * n) * tile, 0, T - 1);
      return [at((e.clientY - r.top) / r.height), at((e.clientX - r.left) / r.width)];
    };
    f.plot.addEventListener('pointermove', e => {
      const [i, j] = cell(e);
      this.lab.set(j <= i ? { peek: i, key: j } : { peek: -1, key: -1 });
    });
    f.plot.addEventListener('pointerleave', () => this.lab.set({ peek: -1, key: -1 }));
    f.plot.addEventListener('click', e => {
      const [i, j] = cell(e);
      if (j <= i) this.lab.select(i);
    });
    this.figs[k.id] = f;
    return f.box;
  }

  lambdaPanel() {
    const lab = this.lab,
      step = lab.source.step;
    this.slider = el('input', {
      type: 'range',
      id: 'lab-lambda',
      min: 0,
      max: 2,
      step,
      value: 1,
      oninput: e => lab.change({ x: Number(e.target.value) }),
      ondblclick: () => lab.change({ x: 1 }),
    });
    this.value = el('output', { class: 'lamval', for: 'lab-lambda' });
    this.scope = segments(
      'Where λ and the second map are changed',
      [
        ['layer', 'this layer'],
        ['all', 'all layers'],
      ],
      v => lab.change({ scope: v }),
    );
    this.second = segments(
      'The second map',
      [
        ['', 'as it is'],
        ['drop', 'drop', 'λ = 0: an ordinary head'],
        ['shuffled', 'shuffle', 'Its entries in random places'],
        ['averaged', 'average', 'The same everywhere'],
      ],
      v =>
        lab.change(
          v === 'drop'
            ? { second: '', x: 0 }
            : v === ''
              ? { second: '', x: lab.S.x === 0 ? 1 : lab.S.x }
              : { second: v, x: lab.S.x === 0 ? 1 : lab.S.x },
        ),
    );
    this.knock = el(
      'button',
      { class: 'btn', type: 'button', id: 'lab-knock', onclick: () => lab.toggleHead(lab.S.layer + '.' + lab.S.head) },
      'Knock this head out',
    );
    this.reset0 = el(
      'button',
      {
        class: 'btn',
        type: 'button',
        id: 'lab-reset',
        onclick: () => lab.change({ x: 1, second: '', knocked: new Set() }),
      },
      'As trained',
    );
    this.lam = el(
      'div',
      { class: 'lam' },
      el('label', { for: 'lab-lambda' }, 'λ'),
      this.value,
      this.slider,
      el(
        'div',
        { class: 'scale soft', 'aria-hidden': 'true' },
        el('span', {}, '0'),
        el('span', {}, '1 ×'),
        el('span', {}, '2 ×'),
      ),
      this.scope,
      el('span', { class: 'lab' }, 'Second map'),
      this.second,
      this.knock,
      this.reset0,
      (this.truth = el('p', { class: 'soft', id: 'lab-truth', role: 'status' })),
    );
    return this.lam;
  }

  // reset is called when the text or a model has changed.
  reset() {
    const { lab } = this,
      t = lab.twin,
      two = lab.base.two();
    this.eq.classList.toggle('single', !two);
    this.figs.a2.box.hidden = this.figs.df.box.hidden = !two;
    for (const e of [this.value, this.slider, this.scope, this.second]) e.hidden = !two;
    this.figs.tf.box.hidden = !t;
    this.figs.a1.title.textContent = two ? 'A₁' : 'A';
    if (!t) return;
    this.figs.tf.title.textContent = lab.S.twin;
    const list = [];
    for (let l = 0; l < t.reply.layers; l++)
      for (let h = 0; h < t.reply.heads; h++) list.push([l + '.' + h, `layer ${l + 1}, head ${h + 1}`]);
    options(this.twinHead, list);
  }

  draw() {
    const { lab } = this,
      S = lab.S,
      theme = document.documentElement.dataset.theme;
    setScale(theme, S.curve);
    paintKey(this.key);
    this.twinHead.value = S.tl + '.' + S.th;
    for (const [id, f] of Object.entries(this.figs)) {
      if (f.box.hidden) continue;
      const twin = id === 'tf',
        q = twin && !lab.same() ? lab.twin.tokens.length - 1 : lab.query();
      const tri = twin ? lab.twin.triangle(S.tl, S.th, 'df') : lab.triangle(S.layer, S.head, id);
      const row = twin ? lab.twin.row(S.tl, S.th, 'df', q) : lab.row(S.layer, S.head, id, q);
      if (tri) this.map(f, id, tri, q, twin ? lab.twin.tokens : lab.base.tokens);
      this.profile(f.profile, row, (twin ? lab.twin : lab.base).tokens.length);
      this.words(f, id, row, q);
    }
    this.lambda();
  }

  map(f, id, tri, q, tokens) {
    const S = this.lab.S,
      T = tokens.length,
      c = f.canvas,
      percent = x => (100 * x) / tri.n + '%',
      own = id !== 'tf' || this.lab.same();
    paint(c, tri.data, tri.n);
    Object.assign(f, { n: tri.n, tile: tri.tile });
    c.setAttribute(
      'aria-label',
      `Map ${f.title.textContent}, ${T} tokens` + (tri.tile > 1 ? ` in tiles of ${tri.tile}` : ''),
    );
    const i = Math.floor(q / tri.tile);
    Object.assign(f.row.style, { top: percent(i), height: percent(1), width: percent(i + 1) });
    f.span.hidden = !S.span || !own;
    if (S.span && own) {
      const a = Math.floor(S.span[0] / tri.tile),
        b = Math.ceil(S.span[1] / tri.tile);
      Object.assign(f.span.style, { left: percent(a), width: percent(b - a) });
    }
    f.column.hidden = S.key < 0 || !own;
    if (S.key >= 0) {
      const j = Math.floor(S.key / tri.tile);
      Object.assign(f.column.style, { left: percent(j), width: percent(1), height: percent(tri.n - i - 1) });
    }
    this.ticks(f, tri, tokens);
  }

  // ticks label rows where they end, beside the diagonal: the upper triangle is empty.
  ticks(f, tri, tokens) {
    const size = f.plot.clientWidth,
      id = [tri.n, tri.tile, size, tokens.length].join();
    if (f.tickID === id && f.tickFor === tokens) return;
    f.tickID = id;
    f.tickFor = tokens;
    const every = Math.max(1, Math.ceil((tri.n * 15) / Math.max(size, 1))),
      list = [];
    for (let i = 0; i < tri.n; i += every) {
      const room = size * (1 - (i + 1) / tri.n) - 6;
      if (room < 24) break;
      const t = el('span', {}, shown(tokens[i * tri.tile].text).trim() || '␣');
      Object.assign(t.style, {
        top: (100 * (i + 0.5)) / tri.n + '%',
        left: `calc(${(100 * (i + 1)) / tri.n}% + 4px)`,
        maxWidth: room + 'px',
      });
      list.push(t);
    }
    f.ticks.replaceChildren(...list);
  }

  profile(c, row, T) {
    const w = c.clientWidth,
      h = c.clientHeight,
      r = devicePixelRatio || 1,
      S = this.lab.S;
    if (!w) return;
    c.width = Math.round(w * r);
    c.height = Math.round(h * r);
    const g = c.getContext('2d'),
      cell = w / T,
      style = getComputedStyle(document.documentElement);
    g.scale(r, r);
    if (S.span) {
      g.fillStyle = style.getPropertyValue('--field');
      g.fillRect(S.span[0] * cell, 0, (S.span[1] - S.span[0]) * cell, h);
    }
    for (let j = 0; row && j < row.length; j++) {
      const y = height(row[j]) * (h / 2 - 1);
      g.fillStyle = style.getPropertyValue(y < 0 ? '--neg' : '--pos');
      g.fillRect(j * cell, y < 0 ? h / 2 : h / 2 - y, Math.max(1, cell - 0.6), Math.abs(y));
    }
    g.fillStyle = style.getPropertyValue('--edge');
    g.fillRect(0, h / 2 - 0.5, w, 1);
  }

  words(f, id, row, q) {
    const { lab } = this,
      S = lab.S;
    f.read.textContent = '';
    f.foot.textContent = '';
    delete f.foot.dataset.sum;
    if (!row) {
      f.foot.textContent = 'exact rows follow when a token is chosen';
      return;
    }
    const sum = row.reduce((a, b) => a + b, 0);
    f.foot.textContent =
      `row sums to ${fixed(sum, 3)}` +
      (id === 'df' ? `; ${Math.round(100 * cancels(row, lab.lambda()))} % cancels` : '');
    f.foot.dataset.sum = sum;
    if (S.key >= 0 && S.key < row.length && (id !== 'tf' || lab.same()))
      f.read.textContent = `${lab.name(q)} → ${lab.name(S.key)}: ${signed(row[S.key], 4)}`;
  }

  // whose says which model the maps are of, where λ, the second map or a head was changed.
  whose() {
    const { lab } = this;
    if (lab.edits().length === 0) return '';
    if (lab.current().look !== lab.base) return 'Maps of the changed model, computed anew in every layer.';
    if (lab.source.live) return 'Maps as trained, λ scaled; the changed model is being computed.';
    return (
      'Maps as trained: this file has none of changed models. The difference follows λ, which is exact in the first changed layer only' +
      (lab.S.second ? '; another second map is not drawn' : '') +
      '. Loss and next token are those of the changed model.'
    );
  }

  lambda() {
    const { lab } = this,
      S = lab.S,
      here = S.layer + '.' + S.head;
    this.knock.setAttribute('aria-pressed', String(S.knocked.has(here)));
    this.knock.textContent = S.knocked.has(here) ? 'This head is knocked out' : 'Knock this head out';
    this.knock.disabled =
      !lab.source.live &&
      !S.knocked.has(here) &&
      !lab.source.has([{ layers: [S.layer], heads: [S.head], knockout: true }]);
    this.reset0.disabled = lab.edits().length === 0;
    this.truth.textContent = this.whose();
    if (!lab.base.two()) return;
    const lam = lab.lambda(),
      times = S.x === 1 ? 'as trained' : `${fixed(S.x, 2)} × trained`;
    this.value.textContent = `${fixed(lam, 3)}, ${times}`;
    this.slider.value = S.x;
    this.slider.setAttribute('aria-valuetext', `λ ${fixed(lam, 3)}, ${times}`);
    this.scope.press(S.scope);
    this.second.press(S.x === 0 && !S.second ? 'drop' : S.second);
  }
}

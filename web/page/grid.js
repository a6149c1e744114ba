// All heads of both models, small; the number below each is its share on the span, or how much of it cancels.

import { el, segments, percent, fixed } from './dom.js';
import { paint } from './colour.js';
import { share, cancels } from './maps.js';

export class Grid {
  constructor(lab, root) {
    this.lab = lab;
    this.kind = segments(
      'Number below each map',
      [
        ['share', 'on the span'],
        ['cancels', 'cancels'],
      ],
      v => lab.set({ grid: v }),
    );
    this.box = el('div', { class: 'grids' });
    root.append(
      el('section', { class: 'part' }, el('div', { class: 'headrow' }, el('h2', {}, 'All heads'), this.kind), this.box),
    );
    this.seen = new IntersectionObserver(
      list => {
        for (const e of list) {
          const c = this.cells.get(e.target);
          if (c) {
            c.visible = e.isIntersecting;
            if (c.visible) this.cell(c);
          }
        }
      },
      { rootMargin: '200px' },
    );
  }

  reset() {
    this.seen.disconnect();
    this.cells = new Map();
    this.box.replaceChildren(this.table('d', this.lab.S.model, this.lab.base));
    if (this.lab.twin) this.box.append(this.table('t', this.lab.S.twin, this.lab.twin));
  }

  table(kind, name, look) {
    const { layers, heads } = look.reply,
      table = el('table', { class: 'heads' }, el('caption', {}, name));
    for (let l = 0; l < layers; l++) {
      const first = look.head(l, 0),
        tr = el(
          'tr',
          {},
          el(
            'th',
            { scope: 'row' },
            `${l + 1}`,
            look.two() && first && !first.lambdas ? el('small', {}, `λ ${fixed(first.lambda, 2)}`) : null,
          ),
        );
      for (let h = 0; h < heads; h++) {
        const c = { kind, l, h, look, canvas: el('canvas', { 'aria-hidden': 'true' }), label: el('span') };
        c.button = el(
          'button',
          {
            type: 'button',
            class: 'thumb',
            'aria-label': `layer ${l + 1}, head ${h + 1}`,
            onclick: () => (kind === 'd' ? this.lab.head(l, h) : this.lab.set({ tl: l, th: h })),
          },
          c.canvas,
          c.label,
        );
        this.cells.set(c.button, c);
        this.seen.observe(c.button);
        tr.append(el('td', {}, c.button));
      }
      table.append(tr);
    }
    return table;
  }

  draw() {
    this.kind.press(this.lab.S.grid);
    for (const c of this.cells.values()) if (c.visible) this.cell(c);
  }

  cell(c) {
    const { lab } = this,
      S = lab.S,
      own = c.kind === 'd',
      name = own && (S.src === 'a1' || S.src === 'a2') ? S.src : 'df';
    const tri = own ? lab.triangle(c.l, c.h, name) : c.look.triangle(c.l, c.h, name),
      q = lab.query();
    if (tri) paint(c.canvas, tri.data, tri.n);
    const row = own ? lab.row(c.l, c.h, name, q) : lab.same() ? c.look.row(c.l, c.h, name, q) : null;
    let value = null;
    if (row && S.grid === 'share' && S.span) value = share(row, S.span).share;
    if (row && S.grid === 'cancels' && own && c.look.two()) {
      const { look, factor } = lab.current();
      value = cancels(lab.row(c.l, c.h, 'df', q), factor(c.l) * look.lambda(c.l, c.h, q));
    }
    const out = own && S.knocked.has(c.l + '.' + c.h),
      lam = c.look.two() && c.look.head(c.l, c.h);
    const each = lam && lam.lambdas ? `λ ${fixed(lam.lambda, 2)} ` : ''; // differs by head: DIFF V2
    c.label.textContent = out ? 'out' : each + (value === null ? '' : percent(value));
    c.button.setAttribute(
      'aria-pressed',
      String(own ? c.l === S.layer && c.h === S.head : c.l === S.tl && c.h === S.th),
    );
    c.button.setAttribute(
      'aria-label',
      `layer ${c.l + 1}, head ${c.h + 1}` +
        (lam ? `, λ ${fixed(lam.lambda, 3)}` : '') +
        (out ? ', knocked out' : '') +
        (value === null ? '' : `, ${percent(value)} ${S.grid === 'share' ? 'on the span' : 'cancels'}`),
    );
    c.button.title = c.button.getAttribute('aria-label');
  }
}

// The text, coloured by the row of the token that looks. Arrow keys move that token; Shift and arrows, or a drag, mark
// a span.

import { el, segments, shown, signed } from './dom.js';
import { colour, ink } from './colour.js';

export class Words {
  constructor(lab, root) {
    this.lab = lab;
    this.title = el('h2');
    this.src = segments(
      'Colour the text by',
      [
        ['a1', 'A₁'],
        ['a2', 'A₂'],
        ['df', 'difference'],
        ['tf', 'beside it'],
      ],
      v => lab.set({ src: v }),
    );
    this.box = el('div', {
      class: 'words',
      id: 'lab-words',
      role: 'listbox',
      'aria-label':
        'Tokens. Arrow keys choose the token that looks; Shift and arrow keys mark a span; Escape clears it.',
    });
    root.append(
      el(
        'section',
        { class: 'part' },
        el('div', { class: 'headrow' }, this.title, this.src),
        this.box,
        el(
          'p',
          { class: 'soft hint' },
          'Click or ← → choose the token that looks. Drag or Shift with ← → marks a span. Esc clears it. Comma and full stop change the head.',
        ),
      ),
    );
    this.box.addEventListener('keydown', e => this.keys(e));
    this.box.addEventListener('pointerdown', e => this.down(e));
    this.box.addEventListener('pointermove', e => this.move(e));
    this.box.addEventListener('pointerup', () => {
      this.drag = null;
    });
    this.box.addEventListener('pointerleave', () => {
      this.drag = null;
      lab.set({ peek: -1 });
    });
  }

  reset() {
    const { tokens } = this.lab.base;
    this.spans = tokens.map((t, i) => el('span', { class: 'tok', role: 'option', 'data-i': i }, shown(t.text)));
    const nodes = [];
    tokens.forEach((t, i) => {
      nodes.push(this.spans[i]);
      if (t.text.includes('\n')) nodes.push(el('br'));
    });
    this.box.replaceChildren(...nodes);
  }

  at(e) {
    const t = e.target.closest('.tok');
    return t ? Number(t.dataset.i) : -1;
  }
  down(e) {
    const i = this.at(e);
    if (i < 0) return;
    this.drag = i;
    this.lab.select(i);
    this.spans[i].focus({ preventScroll: true });
  }
  move(e) {
    const i = this.at(e);
    if (i < 0) return;
    if (this.drag !== null && this.drag !== undefined && e.buttons && i !== this.drag)
      this.lab.set({ span: [Math.min(i, this.drag), Math.max(i, this.drag) + 1], peek: -1 });
    else if (!e.buttons) this.lab.set({ peek: i });
  }

  keys(e) {
    if (this.lab.stale) return;
    const { lab } = this,
      S = lab.S,
      n = this.spans.length,
      to = { ArrowLeft: S.q - 1, ArrowRight: S.q + 1, Home: 0, End: n - 1 }[e.key];
    if (e.key === 'Escape') lab.set({ span: null });
    else if (to === undefined || to < 0 || to >= n) return;
    else if (e.shiftKey) {
      if (!this.anchored || !S.span) {
        this.anchored = true;
        this.anchor = S.q;
      }
      this.lab.set({ span: [Math.min(this.anchor, to), Math.max(this.anchor, to) + 1], q: to });
    } else {
      this.anchored = false;
      lab.select(to);
    }
    e.preventDefault();
    requestAnimationFrame(() => this.spans[lab.S.q].focus());
  }

  draw() {
    const { lab } = this,
      S = lab.S,
      q = lab.query(),
      twin = S.src === 'tf' && lab.twin && lab.same();
    const row = twin ? lab.twin.row(S.tl, S.th, 'df', q) : lab.row(S.layer, S.head, S.src === 'tf' ? 'df' : S.src, q);
    this.title.textContent = `Where ${lab.name(q)} looks`;
    this.src.press(S.src);
    for (const b of this.src.children)
      b.hidden =
        b.value === 'tf' ? !lab.twin || !lab.same() : b.value === 'a2' || b.value === 'df' ? !lab.base.two() : false;
    this.spans.forEach((s, i) => {
      const v = row && i <= q ? row[i] : 0,
        c = Math.abs(v) < 5e-4 ? null : colour(v);
      s.style.backgroundColor = c ? `rgb(${c})` : '';
      s.style.color = c ? ink(c) : '';
      s.classList.toggle('query', i === q);
      s.classList.toggle('in', !!S.span && i >= S.span[0] && i < S.span[1]);
      s.setAttribute('aria-selected', String(i === S.q));
      s.setAttribute(
        'aria-label',
        (shown(lab.base.tokens[i].text).trim() || 'space') + (row && i <= q ? ', ' + signed(v, 3) : ''),
      );
      s.tabIndex = i === S.q ? 0 : -1;
    });
  }
}

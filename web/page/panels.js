// Numbers beside the text: the marked span's share in each map, what could come next, and the loss of the prompt.

import { el, fixed, signed, percent, shown } from './dom.js';
import { share } from './maps.js';
import { nameOf } from './link.js';

export class Panels {
  constructor(lab, root) {
    this.lab = lab;
    this.spanTitle = el('h2');
    this.spanBox = el('table', { class: 'bars', id: 'lab-span' });
    this.nextTitle = el('h2');
    this.nextBox = el('table', { class: 'bars', id: 'lab-next' });
    this.note = el('p', { class: 'soft', role: 'status', id: 'lab-note' });
    this.loss = el('p', { id: 'lab-loss' });
    root.append(
      el('section', { class: 'part' }, this.spanTitle, this.spanBox),
      el(
        'section',
        { class: 'part' },
        this.nextTitle,
        this.nextBox,
        this.note,
        el('h2', {}, 'Loss of the text'),
        this.loss,
      ),
    );
  }

  // Until the next frame the table is still that of the text before.
  reset() {
    this.nextBox.dataset.state = 'waiting';
  }

  draw() {
    this.span();
    this.next();
    this.lossLine();
  }

  span() {
    const { lab } = this,
      S = lab.S,
      q = lab.query();
    if (!S.span) {
      this.spanTitle.textContent = 'Mark a span to measure it';
      this.spanBox.replaceChildren();
      return;
    }
    const text = shown(
      lab.base.tokens
        .slice(...S.span)
        .map(t => t.text)
        .join(''),
    ).trim();
    this.spanTitle.textContent = `Attention on “${text.length > 40 ? text.slice(0, 40) + '…' : text}”`;
    const names = lab.base.two()
      ? [
          ['a1', 'A₁'],
          ['a2', 'A₂'],
          ['df', 'difference'],
        ]
      : [['a1', 'A']];
    const rows = names.map(([id, name]) => [id, name, lab.row(S.layer, S.head, id, q)]);
    if (lab.twin && lab.same()) rows.push(['tf', S.twin, lab.twin.row(S.tl, S.th, 'df', q)]);
    const fair = Math.max(0, Math.min(S.span[1], q + 1) - S.span[0]) / (q + 1);
    this.spanBox.replaceChildren(
      header('map', 'share of the row', 'share', 'sum'),
      el('tbody', {}, ...rows.map(([id, name, row]) => this.line(id, name, row, fair))),
    );
  }

  line(id, name, row, fair) {
    if (!row) return el('tr', {}, el('th', { scope: 'row' }, name), el('td', { colSpan: 3 }, '–'));
    const s = share(row, this.lab.S.span);
    return el(
      'tr',
      { 'data-map': id, 'data-share': s.share, 'data-sum': s.sum, 'data-signed': s.total ? s.sum / s.total : 0 },
      el('th', { scope: 'row' }, name),
      el('td', { class: 'graph' }, bar(s.share, id, fair)),
      el('td', {}, percent(s.share)),
      el('td', { class: 'soft' }, signed(s.sum, 3)),
    );
  }

  next() {
    const { lab } = this,
      S = lab.S,
      q = lab.query(),
      edits = lab.edits(),
      e = lab.arrived();
    const was = lab.base.next.get(q),
      now = edits.length === 0 ? was : e && e.next.get(q),
      twin = lab.twin && lab.same() && lab.twin.next.get(q);
    this.nextTitle.textContent = `What comes after ${lab.name(q)}?`;
    this.note.textContent =
      edits.length === 0
        ? ''
        : e
          ? 'Dotted: as trained.'
          : lab.source.live
            ? 'Computing…'
            : 'This file has no answer for this combination.';
    if (edits.length && e && !now) this.note.textContent = 'Saved for the last token only.';
    const list = now || was;
    this.nextBox.dataset.state = now ? 'now' : 'waiting';
    this.nextBox.dataset.edits = nameOf(edits);
    if (!list) {
      this.nextBox.replaceChildren();
      return;
    }
    const p = (from, id) => {
      const t = from && from.find(x => x.id === id);
      return t ? Math.exp(t.logprob) : undefined;
    };
    const truth = lab.base.tokens[q + 1];
    const lines = list.map(t => {
      const other = twin && twin.find(x => x.text === t.text),
        real = truth && truth.id === t.id;
      return el(
        'tr',
        { 'data-id': t.id, 'data-p': Math.exp(t.logprob) },
        el(
          'th',
          { scope: 'row', class: real ? 'real' : '' },
          visible(t.text),
          real ? el('span', { class: 'vh' }, ' (what does come)') : null,
        ),
        el('td', { class: 'graph' }, bar(Math.exp(t.logprob), 'df', edits.length ? p(was, t.id) : undefined)),
        el('td', {}, percent(Math.exp(t.logprob))),
        el('td', { class: 'soft' }, twin ? (other ? percent(Math.exp(other.logprob)) : '<') : ''),
      );
    });
    this.nextBox.replaceChildren(
      header('token', 'probability', S.model, twin ? S.twin : ''),
      el('tbody', {}, ...lines),
    );
  }

  lossLine() {
    const { lab } = this,
      e = lab.arrived(),
      was = lab.base.reply.loss,
      now = e ? e.reply.loss : was;
    this.loss.dataset.loss = now;
    this.loss.dataset.trained = was;
    this.loss.textContent =
      `${fixed(now, 4)} nats per token` +
      (e ? ` (${signed(now - was, 4)} against as trained)` : '') +
      (lab.twin ? `; ${lab.S.twin}: ${fixed(lab.twin.reply.loss, 4)}` : '');
  }
}

const header = (...names) =>
  el(
    'thead',
    {},
    el('tr', {}, ...names.map((n, i) => el('th', { scope: 'col' }, i === 1 ? el('span', { class: 'vh' }, n) : n))),
  );
const visible = t => (t.startsWith(' ') ? '␣' + shown(t.slice(1)) : shown(t));
function bar(x, kind, mark) {
  const fill = el('i', { class: 'fill ' + kind });
  fill.style.width = 100 * x + '%';
  const box = el('div', { class: 'barx' }, fill);
  if (mark !== undefined) {
    const u = el('u');
    u.style.left = 100 * mark + '%';
    box.append(u);
  }
  return box;
}

// Runs of a folder, drawn from the files that training writes, while it writes them.

import { el, problem } from './dom.js';
import { get, ServerError } from './api.js';
import { Chart } from './chart.js';

const every = 2000;
const charts = [
  { id: 'loss', title: 'Training loss (running mean), nats per token', of: r => r.loss_ema },
  { id: 'valid', title: 'Held-out loss, nats per token', of: r => r.valid_loss },
  { id: 'lambda', title: 'λ by layer (mean over heads)', layers: true },
  { id: 'grad', title: 'Gradient norm', of: r => r.grad_norm },
  { id: 'speed', title: 'Tokens per second', of: r => r.tok_s },
];

export class Runs {
  constructor(root) {
    this.runs = new Map(); // name → { rows, cursor, shown, n }
    this.list = el('ul', { class: 'runlist', id: 'runs-list' });
    this.pause = el(
      'button',
      {
        class: 'btn',
        type: 'button',
        id: 'runs-pause',
        'aria-pressed': 'false',
        onclick: () => {
          const on = this.pause.getAttribute('aria-pressed') === 'true';
          this.pause.setAttribute('aria-pressed', String(!on));
        },
      },
      'Pause',
    );
    this.note = el('p', { class: 'soft', role: 'status' });
    this.charts = el('div', { class: 'charts' });
    this.said = el('div', { class: 'said-list', id: 'runs-samples', hidden: true });
    root.append(
      el(
        'p',
        { class: 'lede' },
        'Curves come from each run’s metrics.jsonl and follow it while it trains. Point at a curve to read all of them at that step.',
      ),
      el('div', { class: 'runs' }, el('div', {}, this.list, this.pause, this.note), el('div', {}, this.charts, this.said)),
    );
    this.drawn = charts.map(c => ({ ...c, chart: new Chart(c.title, this.charts) }));
    this.tick();
    setInterval(() => {
      if (this.visible && !document.hidden && this.pause.getAttribute('aria-pressed') !== 'true') this.tick();
    }, every);
  }

  async tick() {
    if (this.ticking) return;
    this.ticking = true;
    try {
      const found = await get('/v1/runs');
      this.note.textContent = found.more
        ? 'The folder holds more than is searched: some runs may be missing here.'
        : found.data.length
          ? ''
          : 'The folder has no runs yet.';
      for (const r of found.data) if (!this.runs.has(r.id)) this.add(r);
      for (const [id, r] of this.runs) if (r.shown) await this.follow(id, r);
      problem('');
    } catch (e) {
      if (e instanceof ServerError && e.status === 404) {
        this.note.textContent = 'Start the server with --runs FOLDER to see training here.';
        this.pause.hidden = true;
      } else problem(e.message);
    }
    this.ticking = false;
    this.draw();
  }

  add(card) {
    const n = this.runs.size,
      run = { rows: [], cursor: 0, shown: n < 4, n },
      id = 'run-' + n;
    this.runs.set(card.id, run);
    run.last = el('span', { class: 'soft' });
    const box = el('input', {
      type: 'checkbox',
      id,
      checked: run.shown,
      onchange: e => {
        run.shown = e.target.checked;
        this.tick();
      },
    });
    this.list.append(
      el(
        'li',
        {},
        box,
        el('label', { for: id }, el('i', { class: 'swatch c' + (n % 8), 'aria-hidden': 'true' }), card.id),
        run.last,
      ),
    );
  }

  // follow reads what a run has written since the last time.
  async follow(id, run) {
    for (;;) {
      const part = await get(`/v1/runs/${encodeURIComponent(id)}?cursor=${run.cursor}`);
      if (part.reset) run.rows = [];
      run.rows.push(...part.rows);
      run.cursor = part.cursor;
      run.samples = part.samples || [];
      if (!part.more) break;
    }
    const r = run.rows[run.rows.length - 1];
    if (r) run.last.textContent = `step ${r.step} of ${r.total_steps}, loss ${(r.loss_ema ?? r.loss).toFixed(4)}`;
  }

  draw() {
    const shown = [...this.runs].filter(([, r]) => r.shown && r.rows.length);
    this.sampled(shown);
    for (const c of this.drawn) {
      c.chart.draw(
        shown.flatMap(([name, r]) =>
          c.layers
            ? this.layers(name, r)
            : [{ name, n: r.n, points: r.rows.filter(x => c.of(x) !== undefined).map(x => [x.step, c.of(x)]) }],
        ),
      );
    }
  }

  // sampled shows what the models of the chosen runs said last.
  sampled(shown) {
    const list = shown.flatMap(([name, r]) => (r.samples || []).slice(0, 2).map(s => ({ name, ...s })));
    this.said.hidden = list.length === 0;
    this.said.replaceChildren(
      el('h2', {}, 'Samples'),
      ...list.map(s =>
        el('p', {}, el('b', {}, `${s.name}, step ${s.step}: `), el('span', { class: 'soft' }, s.prompt), s.text),
      ),
    );
  }

  // layers makes a line of each layer; those of one run share its colour.
  layers(name, r) {
    const L = r.rows.length ? (r.rows[r.rows.length - 1].lambda || []).length : 0;
    return Array.from({ length: L }, (_, l) => ({
      name: `${name} ${l + 1}`,
      n: r.n + l,
      dash: r.n % 2 === 1,
      points: r.rows.filter(x => x.lambda && x.lambda.length > l).map(x => [x.step, x.lambda[l]]),
    }));
  }
}

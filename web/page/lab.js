// The attention lab: its state, where its numbers come from, and when to draw. One file draws each part: figures.js,
// words.js, panels.js, grid.js.

import { el, options, segments, problem, debounce, quoted } from './dom.js';
import { Look, share } from './maps.js';
import { examples, findSpan } from './examples.js';
import { toHash, fromHash, interventions, nameOf } from './link.js';
import { Figures } from './figures.js';
import { Words } from './words.js';
import { Panels } from './panels.js';
import { Grid } from './grid.js';
import { saveFile } from './save.js';

export class Lab {
  constructor(root, source, hash) {
    this.source = source;
    this.S = fromHash(hash);
    this.S.peek = this.S.key = -1;
    this.base = this.twin = this.edited = null;
    this.edit = debounce(() => this.fetchEdited(), source.live ? 60 : 0);
    this.fetchDetail = debounce(() => this.detail().catch(e => problem(e.message)), 120);
    this.remember = debounce(() => this.visible && history.replaceState(null, '', toHash(this.S)), 250);
    this.build(root);
    this.chooseModels();
    this.load();
  }

  build(root) {
    this.lede = el(
      'p',
      { class: 'lede' },
      'Two attention maps, one subtraction: what both looks share cancels. Choose a text, a head and a word; pull λ and see what the model would say.',
    );
    this.modelBox = el('select', {
      id: 'lab-model',
      onchange: e => {
        this.S.model = e.target.value;
        this.load(true);
      },
    });
    this.twinBox = el('select', {
      id: 'lab-twin',
      onchange: e => {
        this.S.twin = e.target.value;
        this.load(true);
      },
    });
    this.texts = segments('Text', [...examples.map(x => [x.id, x.name]), ['own', 'Your own']], v => this.example(v));
    this.layerBox = el('select', { id: 'lab-layer', onchange: e => this.head(Number(e.target.value), this.S.head) });
    this.headBox = el('select', { id: 'lab-head', onchange: e => this.head(this.S.layer, Number(e.target.value)) });
    this.curves = segments(
      'Colour scale',
      [
        ['sqrt', '√', 'Makes one per cent visible'],
        ['linear', 'linear'],
        ['symlog', 'symlog'],
      ],
      v => this.set({ curve: v }),
    );
    this.text = el('textarea', { id: 'lab-text', rows: 3, spellcheck: false, maxLength: 65536 });
    this.own = el(
      'form',
      {
        class: 'own',
        onsubmit: e => {
          e.preventDefault();
          this.S.text = this.text.value;
          this.load(true);
        },
      },
      el(
        'label',
        { for: 'lab-text' },
        this.source.live ? 'Text. It goes to this server only.' : 'The text of this file',
      ),
      this.text,
      el('button', { class: 'btn main', disabled: !this.source.live }, 'Look'),
    );
    this.status = el('p', { class: 'soft status', role: 'status' });
    const grp = (id, label, box) => el('div', { class: 'grp' }, el('label', { for: id }, label), box);
    root.append(
      this.lede,
      el(
        'div',
        { class: 'tools' },
        el('div', { class: 'grp' }, el('span', { class: 'lab' }, 'Text'), this.texts),
        grp('lab-model', 'Model', this.modelBox),
        grp('lab-twin', 'Beside it', this.twinBox),
        grp('lab-layer', 'Layer', this.layerBox),
        grp('lab-head', 'Head', this.headBox),
        this.curves,
      ),
      this.own,
      this.status,
    );
    this.body = el('div', { hidden: true });
    root.append(this.body);
    this.figures = new Figures(this, this.body);
    const below = el('div', { class: 'below' }),
      left = el('div'),
      right = el('div');
    this.words = new Words(this, left);
    this.grid = new Grid(this, left);
    this.panels = new Panels(this, right);
    below.append(left, right);
    this.body.append(
      below,
      el(
        'div',
        { class: 'tools keep' },
        el('button', { class: 'btn', type: 'button', onclick: () => this.copyLink() }, 'Copy a link to this view'),
        el(
          'button',
          {
            class: 'btn',
            type: 'button',
            id: 'lab-save',
            hidden: !this.source.live,
            onclick: () => saveFile(this).catch(e => problem(e.message)),
          },
          'Save as one file',
        ),
        (this.linkNote = el('span', { class: 'soft', role: 'status' })),
      ),
    );
    root.addEventListener('keydown', e => this.keys(e));
  }

  chooseModels() {
    const list = this.source.models,
      two = list.filter(m => m.meta.n_maps === 2);
    if (!this.source.card(this.S.model)) this.S.model = (two[0] || list[0]).id;
    if (this.S.twin !== 'none' && !this.source.card(this.S.twin))
      this.S.twin = (list.find(m => m.id !== this.S.model) || { id: 'none' }).id;
    options(
      this.modelBox,
      list.map(m => [m.id, `${m.id} (${m.meta.arch})`]),
    );
    options(this.twinBox, [['none', 'nothing'], ...list.map(m => [m.id, `${m.id} (${m.meta.arch})`])]);
    if (!this.S.text) this.S.text = this.source.live ? examples[0].text : this.source.data.text;
  }

  example(id) {
    if (id === 'own') {
      this.text.focus();
      this.text.select();
      return;
    }
    this.S.text = examples.find(x => x.id === id).text;
    this.load(true);
  }

  set(change) {
    Object.assign(this.S, change);
    this.draw();
  }
  head(layer, head) {
    const far = layer !== this.S.layer && (this.S.x !== 1 || this.S.second) && this.S.scope === 'layer';
    this.set({ layer, head });
    if (!this.base.head(layer, head)) {
      this.load();
      return;
    }
    if (far) this.edit();
    if (!this.base.reply.whole) this.fetchDetail();
  }

  // change alters an intervention.
  change(c) {
    Object.assign(this.S, c);
    this.draw();
    this.edit();
  }
  toggleHead(id) {
    const out = new Set(this.S.knocked);
    if (!out.delete(id)) out.add(id);
    this.change({ knocked: out });
  }

  query() {
    return this.S.peek >= 0 ? this.S.peek : this.S.q;
  }
  edits() {
    return interventions(this.S, this.base && this.base.two());
  }
  arrived() {
    const list = this.edits();
    return this.edited && this.edited.name === nameOf(list) ? this.edited : null;
  }

  // current is the look to draw maps from and the factor of λ in a layer that it does not have yet.
  current() {
    const e = this.arrived();
    if (e && e.look) return { look: e.look, factor: () => 1 };
    return { look: this.base, factor: l => (this.S.scope === 'all' || l === this.S.layer ? this.S.x : 1) };
  }
  triangle(l, h, name) {
    const { look, factor } = this.current(),
      t = look.triangle(l, h, name, factor(l));
    return t && name === 'df' && this.S.knocked.has(l + '.' + h) ? { ...t, data: new Float32Array(t.data.length) } : t;
  }
  row(l, h, name, q) {
    const { look, factor } = this.current(),
      r = look.row(l, h, name, q, factor(l));
    return r && name === 'df' && this.S.knocked.has(l + '.' + h) ? new Float32Array(r.length) : r;
  }
  lambda() {
    const { look, factor } = this.current(),
      S = this.S;
    return look.head(S.layer, S.head) ? factor(S.layer) * look.lambda(S.layer, S.head, this.query()) : NaN;
  }

  // reopen shows what another link says.
  reopen(hash) {
    if (hash === toHash(this.S)) return;
    this.S = { ...fromHash(hash), peek: -1, key: -1 };
    this.chooseModels();
    this.load();
  }

  // load asks for the text in both models.
  async load(fresh) {
    this.stale = true; // what is shown is of another text until the answer is here
    if (this.loading) this.loading.abort();
    const stop = (this.loading = new AbortController()),
      S = this.S;
    if (fresh) Object.assign(S, { q: -1, span: null, x: 1, second: '', knocked: new Set(), peek: -1, key: -1 });
    this.edited = null;
    this.text.value = S.text;
    this.status.textContent = 'Looking…';
    problem('');
    try {
      const ask = id => (id === 'none' ? null : this.source.look(id, S.text, S, [], stop.signal));
      const [a, b] = await Promise.all([ask(S.model), ask(S.twin)]);
      this.base = new Look(a);
      this.twin = b && new Look(b);
      this.settle(fresh);
      this.stale = false;
      this.body.hidden = false;
      this.status.textContent =
        `${a.tokens.length} tokens` + (a.whole ? '' : `, maps in tiles of ${a.tile}; the chosen head is shown finer`);
      this.draw();
      if (this.edits().length) this.edit();
      if (!a.whole) await this.detail();
    } catch (e) {
      if (e.name === 'AbortError') return;
      this.status.textContent = '';
      this.body.hidden = true;
      problem(e.message);
    }
  }

  // settle makes the state fit what was found, and begins with the head that looks most at the example's span.
  settle(fresh) {
    const S = this.S,
      { tokens, reply } = this.base,
      known = examples.find(x => x.text === S.text);
    if (S.q < 0 || S.q >= tokens.length) S.q = tokens.length - 1;
    if (!S.span && known) S.span = findSpan(tokens, known.span);
    if (S.span && S.span[1] > tokens.length) S.span = null;
    if (S.layer >= reply.layers || S.head >= reply.heads) S.layer = S.head = 0;
    if (this.twin && (S.tl >= this.twin.reply.layers || S.th >= this.twin.reply.heads)) S.tl = S.th = 0;
    if ((fresh || !location.hash.includes('layer=')) && S.span && reply.whole) this.best();
    for (const id of S.knocked) if (!this.base.head(...id.split('.'))) S.knocked.delete(id);
    options(
      this.layerBox,
      Array.from({ length: reply.layers }, (_, i) => [i, i + 1]),
    );
    options(
      this.headBox,
      Array.from({ length: reply.heads }, (_, i) => [i, i + 1]),
    );
    this.figures.reset();
    this.words.reset();
    this.panels.reset();
    this.grid.reset();
  }

  best() {
    const S = this.S,
      find = (look, put) => {
        let most = -1;
        for (const id of look.heads.keys()) {
          const [l, h] = id.split('.').map(Number),
            r = look.row(l, h, 'df', look.tokens.length - 1),
            s = r && share(r, S.span);
          if (s && s.share * (s.sum > 0 ? 1 : 0.5) > most) {
            most = s.share * (s.sum > 0 ? 1 : 0.5);
            put(l, h);
          }
        }
      };
    find(this.base, (l, h) => {
      S.layer = l;
      S.head = h;
    });
    if (this.twin && this.same())
      find(this.twin, (l, h) => {
        S.tl = l;
        S.th = h;
      });
  }

  // same says that both models split the text alike, so that rows and spans mean the same in both.
  same() {
    return (
      this.twin.tokens.length === this.base.tokens.length &&
      this.twin.tokens.every((t, i) => t.text === this.base.tokens[i].text)
    );
  }

  // detail asks for exact rows of a long prompt, and for finer maps of the chosen heads.
  async detail() {
    const S = this.S,
      { base, twin } = this;
    for (const r of await this.source.detail(S.model, S.text, S.layer, S.head, S.q, [])) base.add(r);
    if (twin && !twin.reply.whole) {
      const q = Math.min(S.q, twin.tokens.length - 1);
      for (const r of await this.source.detail(S.twin, S.text, S.tl, S.th, q, [])) twin.add(r);
    }
    this.draw();
  }

  async fetchEdited() {
    if (this.editing) this.editing.abort();
    const stop = (this.editing = new AbortController()),
      list = this.edits(),
      name = nameOf(list),
      S = this.S;
    if (!list.length) {
      this.edited = null;
      this.draw();
      return;
    }
    if (this.arrived()) return;
    try {
      const reply = await this.source.outcome(S.model, S.text, S, list, stop.signal);
      if (!reply) {
        this.draw();
        return;
      }
      const look = reply.shown ? new Look(reply) : null;
      if (look && !reply.whole)
        for (const r of await this.source.detail(S.model, S.text, S.layer, S.head, S.q, list)) look.add(r);
      this.edited = { name, reply, look, next: look ? look.next : new Map(reply.next.map(n => [n.token, n.top])) };
      problem('');
      this.draw();
    } catch (e) {
      if (e.name !== 'AbortError') problem(e.message);
    }
  }

  select(q) {
    this.set({ q, peek: -1 });
    if (!this.base.reply.whole) this.fetchDetail();
  }

  draw() {
    if (this.queued || this.stale) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      if (!this.stale) this.frame();
    });
  }
  frame() {
    const S = this.S,
      known = examples.find(x => x.text === S.text);
    this.texts.press(known ? known.id : 'own');
    this.curves.press(S.curve);
    for (const [box, v] of [
      [this.modelBox, S.model],
      [this.twinBox, S.twin],
      [this.layerBox, S.layer],
      [this.headBox, S.head],
    ])
      box.value = v;
    this.figures.draw();
    this.words.draw();
    this.panels.draw();
    this.grid.draw();
    this.remember();
  }

  keys(e) {
    if (/INPUT|TEXTAREA|SELECT/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey || this.stale) return;
    const S = this.S,
      { layers, heads } = this.base.reply,
      n = layers * heads,
      i = S.layer * heads + S.head;
    const step = { ',': n - 1, '.': 1 }[e.key];
    if (step) {
      const k = (i + step) % n;
      this.head(Math.floor(k / heads), k % heads);
      e.preventDefault();
    }
  }

  async copyLink() {
    history.replaceState(null, '', toHash(this.S));
    try {
      await navigator.clipboard.writeText(location.href);
      this.linkNote.textContent = 'Copied.';
    } catch {
      this.linkNote.textContent = 'The address bar holds the link.';
    }
  }
  name(q) {
    return quoted(this.base.tokens[q].text);
  }
}

// Chat with one model, or with two on one prompt. Answers stream; each token shows what else it could have been.

import { el, options, tip, percent, shown, problem } from './dom.js';
import { stream } from './api.js';

const settings = [
  { id: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.1, value: 0.7 },
  { id: 'top_p', label: 'Top-p', min: 0.01, max: 1, step: 0.01, value: 1 },
  { id: 'top_k', label: 'Top-k, 0: all', min: 0, max: 1000, step: 1, value: 0 },
  { id: 'min_p', label: 'Min-p', min: 0, max: 1, step: 0.01, value: 0 },
  { id: 'max_tokens', label: 'Most tokens', min: 1, max: 100000, step: 1, value: 128 },
  { id: 'seed', label: 'Seed, empty: random', min: 0, max: 2 ** 31, step: 1, value: '' },
];

export class Chat {
  constructor(root, source) {
    this.source = source;
    this.turns = []; // { text, answers: [{ model, text, box }] }
    const list = source.models.map(m => [m.id, `${m.id} (${m.meta.arch})`]);
    this.left = el('select', { id: 'chat-left' });
    this.right = el('select', { id: 'chat-right' });
    options(this.left, list);
    options(this.right, [['none', 'nobody'], ...list]);
    this.right.value = list.length > 1 ? list[1][0] : 'none';
    this.log = el('div', { class: 'log', id: 'chat-log', role: 'log', 'aria-label': 'Conversation' });
    this.box = el('textarea', {
      id: 'chat-say',
      rows: 2,
      maxLength: 65536,
      onkeydown: e => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
          e.preventDefault();
          this.send();
        }
      },
    });
    this.sendButton = el('button', { class: 'btn main', id: 'chat-send' }, 'Send');
    this.stopButton = el(
      'button',
      { class: 'btn', id: 'chat-stop', type: 'button', disabled: true, onclick: () => this.stop.abort() },
      'Stop',
    );
    this.again = el(
      'button',
      { class: 'btn', id: 'chat-again', type: 'button', disabled: true, onclick: () => this.regenerate() },
      'Regenerate',
    );
    this.clear = el(
      'button',
      {
        class: 'btn',
        id: 'chat-clear',
        type: 'button',
        onclick: () => {
          if (!this.busy) {
            this.turns = [];
            this.log.replaceChildren();
            this.again.disabled = true;
          }
        },
      },
      'Start over',
    );
    this.fields = {};
    const grp = (id, label, box) => el('div', { class: 'grp' }, el('label', { for: id }, label), box);
    const sampling = el(
      'details',
      { class: 'sampling' },
      el('summary', {}, 'Sampling'),
      el(
        'div',
        { class: 'tools' },
        ...settings.map(s => {
          this.fields[s.id] = el('input', {
            type: 'number',
            id: 'chat-' + s.id,
            min: s.min,
            max: s.max,
            step: s.step,
            value: s.value,
          });
          return grp('chat-' + s.id, s.label, this.fields[s.id]);
        }),
      ),
    );
    root.append(
      el(
        'p',
        { class: 'lede' },
        'Point at a word of an answer, or walk along it with the arrow keys, to see what else it could have been. A model without a chat template continues the text.',
      ),
      el(
        'div',
        { class: 'tools' },
        grp('chat-left', 'Ask', this.left),
        grp('chat-right', 'and', this.right),
        this.clear,
      ),
      this.log,
      el(
        'form',
        {
          class: 'composer',
          onsubmit: e => {
            e.preventDefault();
            this.send();
          },
        },
        el('label', { for: 'chat-say' }, 'Message'),
        this.box,
        el('div', { class: 'grp' }, this.sendButton, this.stopButton, this.again),
        sampling,
      ),
    );
    this.known = new WeakMap(); // what else a token could have been, by its element
    this.log.addEventListener('keydown', e => this.walk(e));
    this.log.addEventListener('pointerover', e => this.hint(e));
    this.log.addEventListener('focusin', e => this.hint(e));
    for (const kind of ['pointerleave', 'focusout']) this.log.addEventListener(kind, () => tip());
  }

  sampling() {
    const out = {};
    for (const s of settings) {
      const v = this.fields[s.id].value;
      if (v !== '') out[s.id] = Number(v);
    }
    if (out.seed === undefined) out.seed = Math.floor(Math.random() * 2 ** 31);
    return out;
  }

  send() {
    const text = this.box.value;
    if (this.busy || !text.trim()) return;
    this.box.value = '';
    const models = [this.left.value, this.right.value].filter(id => id !== 'none'),
      turn = { text, answers: [] };
    const row = el('div', { class: 'answers' });
    models.forEach(model => {
      const words = el('div', { class: 'words answer' }),
        speed = el('span', { class: 'soft speed' });
      turn.answers.push({ model, text: '', words, speed, fresh: [], ended: 0 });
      row.append(el('article', { 'aria-label': model }, el('h2', {}, model, ' ', speed), words));
    });
    turn.box = el('section', { class: 'turn' }, el('p', { class: 'said' }, text), row);
    this.turns.push(turn);
    this.log.append(turn.box);
    this.answer(turn);
  }

  regenerate() {
    const turn = this.turns[this.turns.length - 1];
    if (this.busy || !turn) return;
    for (const a of turn.answers) {
      Object.assign(a, { text: '', ended: 0 });
      a.words.replaceChildren();
    }
    this.answer(turn);
  }

  async answer(turn) {
    this.stop = new AbortController();
    this.setBusy(true);
    problem('');
    const sampling = this.sampling();
    await Promise.all(turn.answers.map(a => this.one(turn, a, sampling)));
    this.setBusy(false);
  }

  setBusy(on) {
    this.busy = on;
    this.sendButton.disabled = this.again.disabled = on;
    this.stopButton.disabled = !on;
    this.log.setAttribute('aria-busy', String(on));
    if (!on) this.box.focus({ preventScroll: true });
  }

  // request is a chat where the model knows chats, else its text so far continued.
  request(turn, a, sampling) {
    const before = this.turns.slice(0, this.turns.indexOf(turn)),
      mine = t => t.answers.find(x => x.model === a.model);
    const base = { model: a.model, stream: true, stream_options: { include_usage: true }, ...sampling };
    if (this.source.card(a.model).meta.chat) {
      const messages = before.flatMap(t => [
        { role: 'user', content: t.text },
        { role: 'assistant', content: mine(t) ? mine(t).text : '' },
      ]);
      return [
        '/v1/chat/completions',
        { ...base, messages: [...messages, { role: 'user', content: turn.text }], logprobs: true, top_logprobs: 5 },
      ];
    }
    const prompt = before.map(t => t.text + (mine(t) ? mine(t).text : '') + '\n').join('') + turn.text;
    return ['/v1/completions', { ...base, prompt, logprobs: 5 }];
  }

  async one(turn, a, sampling) {
    const [path, body] = this.request(turn, a, sampling);
    Object.assign(a, { begin: performance.now(), first: 0, count: 0, fresh: [] });
    a.speed.textContent = '…';
    let end = '';
    try {
      await stream(path, body, this.stop.signal, v => {
        const list = pieces(v);
        if (list.length) a.first = a.first || performance.now();
        a.count = v.usage ? v.usage.completion_tokens : a.count + list.length;
        a.fresh.push(...list);
        this.draw();
      });
    } catch (e) {
      end = e.name === 'AbortError' ? 'stopped' : 'failed';
      if (end === 'failed') problem(`${a.model}: ${e.message}`);
    }
    a.ended = performance.now();
    this.put(a);
    a.speed.textContent = [a.first ? speed(a) : '', end].filter(Boolean).join(', ');
  }

  // draw shows what has come since the last frame: a fast model sends more often than a page can be laid out.
  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      const page = document.documentElement,
        below = page.scrollHeight - innerHeight - scrollY < 80; // who reads above is left there
      for (const turn of this.turns.slice(-1)) for (const a of turn.answers) if (a.fresh.length) this.put(a);
      if (below && this.busy) scrollTo(0, page.scrollHeight);
    });
  }

  put(a) {
    for (const t of a.fresh) {
      a.text += t.text;
      a.words.append(this.token(t, a.words.childElementCount === 0));
    }
    a.fresh = [];
    if (a.first && !a.ended) a.speed.textContent = speed(a);
  }

  token(t, first) {
    const s = el('span', { class: 'tok', tabIndex: first ? 0 : -1 }, t.text);
    if (!t.top) return s;
    this.known.set(s, t);
    s.setAttribute('aria-label', `${shown(t.text)}, ${percent(Math.exp(t.logprob))}`);
    s.setAttribute('role', 'button');
    if (Math.exp(t.logprob) < 0.5) s.classList.add('unsure');
    return s;
  }

  // hint shows what else the token under the pointer or the focus could have been.
  hint(e) {
    const s = e.target.closest('.tok'),
      t = s && this.known.get(s);
    if (t) tip(s, alternatives(t));
    else tip();
  }

  walk(e) {
    const t = e.target.closest('.tok'),
      to = t && { ArrowLeft: t.previousElementSibling, ArrowRight: t.nextElementSibling }[e.key];
    if (!to) return;
    t.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
    e.preventDefault();
  }
}

const speed = a =>
  `${a.count} tokens, ${(a.count / Math.max(((a.ended || performance.now()) - a.begin) / 1000, 0.001)).toFixed(1)} ` +
  `tokens/s, first after ${Math.round(a.first - a.begin)} ms`;

// pieces are the tokens of an event of either route, with what else each could have been.
function pieces(v) {
  const c = v.choices[0];
  if (!c) return [];
  if (c.delta) {
    const list = c.logprobs && c.logprobs.content;
    if (!list || list.length === 0) return c.delta.content ? [{ text: c.delta.content }] : [];
    return joined(
      list.map(t => ({
        text: t.token,
        own: t.token,
        logprob: t.logprob,
        top: t.top_logprobs.map(x => [x.token, x.logprob]),
      })),
      c.delta.content || '',
    );
  }
  const l = c.logprobs;
  if (!l || l.tokens.length === 0) return c.text ? [{ text: c.text }] : [];
  return joined(
    l.tokens.map((text, i) => ({
      text,
      own: text,
      logprob: l.token_logprobs[i],
      top: Object.entries(l.top_logprobs[i]).sort((a, b) => b[1] - a[1]),
    })),
    c.text,
  );
}

// joined keeps tokens apart where their texts make up what was said; parts of a character are one piece.
function joined(list, text) {
  if (list.map(t => t.text).join('') === text) return list;
  return text ? [{ ...list[list.length - 1], text }] : [];
}

// alternatives are the five likeliest tokens, and the one that was drawn where it is not among them.
function alternatives(t) {
  const list = t.top.slice(0, 5);
  if (!list.some(([text]) => text === t.own)) list.push([t.own, t.logprob]);
  return el(
    'table',
    {},
    ...list.map(([text, lp]) =>
      el(
        'tr',
        {},
        el('td', {}, (text === t.own ? '▸ ' : '\u2003') + (shown(text) || '␣')),
        el('td', {}, percent(Math.exp(lp))),
      ),
    ),
  );
}

// Where the lab's numbers come from: a server that computes them, or the file that holds them.

import { get, post } from './api.js';
import { nameOf } from './link.js';

const wide = 256; // rows of a map that can still be told apart

// plan says what to ask of a prompt of T tokens so that the answer stays within the server's limits.
export function plan(meta, T, layer) {
  const each = n => meta.n_layer * meta.n_head * ((meta.n_maps * n * (n + 1)) / 2 + T);
  const entries = meta.n_layer * meta.n_head * meta.n_maps * T * T;
  if (T <= wide && each(T) + 16 * T <= meta.attention_cells && entries <= meta.attention_entries) {
    return { whole: true, query: { size: wide, next: Array.from({ length: T }, (_, i) => i), topk: 8 } };
  }
  let n = 64;
  while (n > 4 && each(n) > meta.attention_cells / 2) n--;
  const query = { size: n, next: [T - 1], topk: 8 };
  if (entries > meta.attention_entries) query.layers = [layer];
  return { whole: false, query };
}

export class Server {
  constructor(models) {
    this.models = models;
    this.live = true;
    this.step = 0.01;
  }
  static async open() {
    return new Server((await get('/v1/models')).data);
  }
  card(id) {
    return this.models.find(m => m.id === id);
  }

  async length(model, text, signal) {
    return (await post('/tokenize', { model, prompt: text }, signal)).count;
  }

  maps(model) {
    return this.card(model).meta.n_maps === 2 ? ['a1', 'a2'] : ['a1'];
  }

  // look asks for all heads; of a long prompt in tiles, and then for the chosen head as fine as can be shown.
  async look(model, text, S, list, signal) {
    const T = await this.length(model, text, signal),
      meta = this.card(model).meta,
      p = plan(meta, T, S.layer);
    const reply = await post(
      '/v1/attention',
      { model, prompt: text, maps: this.maps(model), interventions: list, ...p.query },
      signal,
    );
    reply.whole = p.whole;
    return reply;
  }

  // detail asks for one head of a long prompt, with the exact row of token q in all heads of its layer.
  async detail(model, text, layer, head, q, list, signal) {
    const base = {
      model,
      prompt: text,
      interventions: list,
      layers: [layer],
      next: [q],
      topk: 8,
      maps: this.maps(model),
    };
    const fine = post('/v1/attention', { ...base, heads: [head], size: wide }, signal);
    const rows = post('/v1/attention', { ...base, size: 1, rows: [q] }, signal);
    return Promise.all([fine, rows]);
  }

  // brief is what interventions make of the loss and of the token after q, without maps.
  brief(model, text, list, q) {
    return post('/v1/attention', { model, prompt: text, interventions: list, maps: [], next: [q], topk: 8 });
  }

  // outcome is what interventions make of the prompt, maps included.
  outcome(model, text, S, list, signal) {
    return this.look(model, text, S, list, signal);
  }
  has() {
    return true;
  }
}

// Saved holds replies in the page itself.
export class Saved {
  constructor(data) {
    this.data = data;
    this.live = false;
    this.step = 0.25;
    this.models = data.models;
  }
  card(id) {
    return this.models.find(m => m.id === id);
  }
  look(model) {
    const found = this.data.looks.find(l => l.model === model);
    if (!found) throw new Error(`this file has nothing about the model ${model}`);
    return { whole: found.whole !== false, ...found };
  }
  detail() {
    return [];
  }
  outcome(model, text, S, list) {
    return this.data.outcomes[nameOf(list)] || null;
  }
  has(list) {
    return list.length === 0 || nameOf(list) in this.data.outcomes;
  }
}

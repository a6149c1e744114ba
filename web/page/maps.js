// What the server found about one prompt in one model, ready to be drawn: maps, rows, shares.

function floats(base64) {
  const raw = atob(base64), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = raw.charCodeAt(i);
  const view = new DataView(bytes.buffer), out = new Float32Array(bytes.length / 4);
  for (let i = 0; i < out.length; i++) out[i] = view.getFloat32(4 * i, true);
  return out;
}
const start = i => i * (i + 1) / 2;

export class Look {
  constructor(reply) {
    this.reply = reply;
    this.tokens = reply.tokens;
    this.tile = reply.tile;
    this.n = Math.ceil(reply.tokens.length / reply.tile);
    this.heads = new Map();
    this.add(reply);
  }

  // add takes the heads of a further reply about the same prompt, such as exact rows.
  add(reply) {
    for (const s of reply.shown) {
      const id = s.layer + '.' + s.head, h = this.heads.get(id) || { lambda: s.lambda, lambdas: s.lambdas && floats(s.lambdas), maps: {}, rows: new Map() };
      if (reply.tile === this.tile) for (const [name, data] of Object.entries(s.maps || {})) h.maps[name] = floats(data);
      for (const r of s.rows || []) h.rows.set(r.token, Object.fromEntries(Object.entries(r.maps).map(([name, data]) => [name, floats(data)])));
      this.heads.set(id, h);
    }
  }

  head(l, h) { return this.heads.get(l + '.' + h); }
  two() { return this.reply.maps === 2; }
  exact() { return this.tile === 1; }
  lambda(l, h, q) { const x = this.head(l, h); return x.lambdas ? x.lambdas[q] : x.lambda; }

  // triangle is a whole map. df is A1 − factor·λA2: a layer's own maps do not depend on its own λ, so it is exact for any factor.
  triangle(l, h, name, factor = 1) {
    const x = this.head(l, h);
    if (!x || !x.maps.a1) return null;
    if (name !== 'df' || !this.two()) return x.maps[name === 'df' ? 'a1' : name] || null;
    if (factor === 1 && x.maps.diff) return x.maps.diff;
    if (!x.maps.a2) return null;
    const out = new Float32Array(x.maps.a1.length);
    for (let i = 0, k = 0; k < out.length; i++) {
      const lam = factor * (x.lambdas ? x.lambdas[Math.min(i * this.tile, x.lambdas.length - 1)] : x.lambda);
      for (const end = k + i + 1; k < end; k++) out[k] = x.maps.a1[k] - lam * x.maps.a2[k];
    }
    return out;
  }

  // row is the row of token q, exact; null where only tiles are known.
  row(l, h, name, q, factor = 1) {
    const x = this.head(l, h);
    if (!x) return null;
    const one = n => {
      if (x.rows.has(q)) return x.rows.get(q)[n];
      return this.exact() && x.maps[n] ? x.maps[n].subarray(start(q), start(q) + q + 1) : null;
    };
    if (name !== 'df' || !this.two()) return one(name === 'df' ? 'a1' : name) || null;
    const a = one('a1'), b = one('a2');
    if (!a || !b) return null;
    const lam = factor * this.lambda(l, h, q);
    return a.map((v, j) => v - lam * b[j]);
  }
}

// share of a span in a row: its part of the row's magnitude, and its sum with the signs.
export function share(row, span) {
  let all = 0, part = 0, sum = 0;
  for (let j = 0; j < row.length; j++) {
    all += Math.abs(row[j]);
    if (j >= span[0] && j < span[1]) { part += Math.abs(row[j]); sum += row[j]; }
  }
  return { share: all ? part / all : 0, sum, total: all };
}

// cancels is how much of both looks the subtraction removes: 1 − Σ|A1 − λA2| / (1 + λ).
export function cancels(row, lambda) {
  let all = 0;
  for (const v of row) all += Math.abs(v);
  return Math.max(0, 1 - all / (1 + Math.abs(lambda)));
}

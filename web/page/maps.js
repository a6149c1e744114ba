// What the server found about one prompt in one model, ready to be drawn: maps, rows, shares.

function floats(base64) {
  const raw = atob(base64),
    bytes = new Uint8Array(raw.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = raw.charCodeAt(i);
  const view = new DataView(bytes.buffer),
    out = new Float32Array(bytes.length / 4);
  for (let i = 0; i < out.length; i++) out[i] = view.getFloat32(4 * i, true);
  return out;
}
const start = i => (i * (i + 1)) / 2;

export class Look {
  constructor(reply) {
    this.reply = reply;
    this.tokens = reply.tokens;
    this.heads = new Map();
    this.next = new Map();
    this.add(reply);
  }

  // add takes a further reply about the same prompt: finer maps, exact rows, other next tokens.
  add(reply) {
    for (const s of reply.shown) {
      const id = s.layer + '.' + s.head,
        h = this.heads.get(id) || {
          lambda: s.lambda,
          lambdas: s.lambdas && floats(s.lambdas),
          tile: Infinity,
          maps: {},
          rows: new Map(),
        };
      if (s.maps && reply.tile < h.tile) {
        h.tile = reply.tile;
        h.maps = Object.fromEntries(Object.entries(s.maps).map(([name, data]) => [name, floats(data)]));
      }
      for (const r of s.rows || [])
        h.rows.set(r.token, Object.fromEntries(Object.entries(r.maps).map(([name, data]) => [name, floats(data)])));
      this.heads.set(id, h);
    }
    for (const n of reply.next) this.next.set(n.token, n.top);
  }

  head(l, h) {
    return this.heads.get(l + '.' + h);
  }
  two() {
    return this.reply.maps === 2;
  }
  lambda(l, h, q) {
    const x = this.head(l, h);
    return x.lambdas ? x.lambdas[q] : x.lambda;
  }

  // triangle is a whole map with n rows of tile tokens each. df is A1 − factor·λA2: a layer's own maps do not depend
  // on its own λ, so it is exact for any factor.
  triangle(l, h, name, factor = 1) {
    const x = this.head(l, h),
      of = data => data && { data, tile: x.tile, n: Math.ceil(this.tokens.length / x.tile) };
    if (!x || !x.maps.a1) return null;
    if (name !== 'df' || !this.two()) return of(x.maps[name === 'df' ? 'a1' : name]);
    if (factor === 1 && x.maps.diff) return of(x.maps.diff);
    const out = new Float32Array(x.maps.a1.length);
    for (let i = 0, k = 0; k < out.length; i++) {
      const lam = factor * (x.lambdas ? x.lambdas[Math.min(i * x.tile, x.lambdas.length - 1)] : x.lambda);
      for (const end = k + i + 1; k < end; k++) out[k] = x.maps.a1[k] - lam * x.maps.a2[k];
    }
    return of(out);
  }

  // row is the row of token q, exact; null where only tiles are known.
  row(l, h, name, q, factor = 1) {
    const x = this.head(l, h);
    if (!x) return null;
    const one = n => {
      if (x.rows.has(q)) return x.rows.get(q)[n];
      return x.tile === 1 && x.maps[n] ? x.maps[n].subarray(start(q), start(q) + q + 1) : null;
    };
    if (name !== 'df' || !this.two()) return one(name === 'df' ? 'a1' : name) || null;
    const a = one('a1'),
      b = one('a2');
    if (!a || !b) return null;
    const lam = factor * this.lambda(l, h, q);
    return a.map((v, j) => v - lam * b[j]);
  }
}

// share of a span in a row: its part of the row's magnitude, and its sum with the signs.
export function share(row, span) {
  let all = 0,
    part = 0,
    sum = 0;
  for (let j = 0; j < row.length; j++) {
    all += Math.abs(row[j]);
    if (j >= span[0] && j < span[1]) {
      part += Math.abs(row[j]);
      sum += row[j];
    }
  }
  return { share: all ? part / all : 0, sum, total: all };
}

// cancels is how much of both looks the subtraction removes: 1 − Σ|A1 − λA2| / (1 + λ).
export function cancels(row, lambda) {
  let all = 0;
  for (const v of row) all += Math.abs(v);
  return Math.max(0, 1 - all / (1 + Math.abs(lambda)));
}

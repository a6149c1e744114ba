// The lab's state as text: what a permalink holds, and the names of interventions.

const plain = {
  layer: 0,
  head: 0,
  tl: 0,
  th: 0,
  x: 1,
  scope: 'layer',
  second: '',
  curve: 'sqrt',
  src: 'df',
  grid: 'share',
};

// toHash writes the state; what is as usual is left out. The prompt stays in the address's fragment, which is never
// sent to a server.
export function toHash(S) {
  const p = new URLSearchParams();
  for (const k of ['model', 'twin', 'text']) if (S[k]) p.set(k, S[k]);
  for (const [k, v] of Object.entries(plain)) if (S[k] !== v) p.set(k, S[k]);
  if (S.q >= 0) p.set('q', S.q);
  if (S.span) p.set('span', S.span.join('-'));
  if (S.knocked.size) p.set('out', [...S.knocked].join('_'));
  return '#attention?' + p;
}

// fromHash reads it back; whatever cannot be right is left as usual.
export function fromHash(hash) {
  const p = new URLSearchParams(hash.split('?')[1] || ''),
    S = { ...plain, model: '', twin: '', text: '', q: -1, span: null, knocked: new Set() };
  for (const k of ['model', 'twin', 'text', 'scope', 'second', 'curve', 'src', 'grid']) if (p.has(k)) S[k] = p.get(k);
  const whole = (k, lo, hi) => {
    const v = Number(p.get(k));
    if (p.has(k) && Number.isInteger(v) && v >= lo && v <= hi) S[k] = v;
  };
  for (const k of ['layer', 'head', 'tl', 'th']) whole(k, 0, 4096);
  whole('q', 0, 1 << 20);
  const x = Number(p.get('x')),
    span = /^(\d{1,7})-(\d{1,7})$/.exec(p.get('span') || '');
  if (p.has('x') && x >= 0 && x <= 2) S.x = x;
  if (span && Number(span[1]) < Number(span[2])) S.span = [Number(span[1]), Number(span[2])];
  for (const h of (p.get('out') || '').split('_')) if (/^\d{1,4}\.\d{1,4}$/.test(h)) S.knocked.add(h);
  const among = (k, list) => {
    if (!list.includes(S[k])) S[k] = plain[k];
  };
  among('scope', ['layer', 'all']);
  among('second', ['', 'shuffled', 'averaged']);
  among('curve', ['sqrt', 'linear', 'symlog']);
  among('src', ['a1', 'a2', 'df', 'tf']);
  among('grid', ['share', 'cancels']);
  return S;
}

// interventions is what the state changes in the model, as the server takes it.
export function interventions(S, two) {
  const list = [];
  if (two && (S.x !== 1 || S.second)) {
    const v = {};
    if (S.scope === 'layer') v.layers = [S.layer];
    if (S.x !== 1) v.lambda = S.x;
    if (S.second) v.second = S.second;
    list.push(v);
  }
  for (const h of [...S.knocked].sort()) {
    const [layer, head] = h.split('.').map(Number);
    list.push({ layers: [layer], heads: [head], knockout: true });
  }
  return list;
}

// nameOf writes interventions as the command line does: "lambda=0.5+second=shuffled@L2". Text counts from 1.
export function nameOf(list) {
  return list
    .map(v => {
      const what = [];
      if (v.lambda !== undefined) what.push('lambda=' + v.lambda);
      if (v.second) what.push('second=' + v.second);
      if (v.knockout) what.push('knockout');
      const places = (letter, l) => (l ? '@' + letter + l.map(i => i + 1).join('.') : '');
      return what.join('+') + places('L', v.layers) + places('H', v.heads);
    })
    .join(';');
}

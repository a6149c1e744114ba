// One signed scale for all maps: orange above zero, blue below, the page's own grey at zero, lightness monotone on
// both sides.

const stops = {
  light: {
    pos: ['#f1efe8', '#f6d3a8', '#ec9a50', '#c4581a', '#6f2206'],
    neg: ['#f1efe8', '#bcd6ee', '#78abdb', '#2f6fb5', '#0c3468'],
  },
  dark: {
    pos: ['#1d2126', '#5b3414', '#b0601c', '#f09a4a', '#ffe2bd'],
    neg: ['#1d2126', '#17395e', '#2b6cad', '#62abec', '#d3e9ff'],
  },
};
export const curves = { sqrt: Math.sqrt, linear: x => x, symlog: x => Math.log1p(x / 0.004) / Math.log1p(1 / 0.004) };

const N = 255,
  packed = new Uint32Array(2 * N + 1),
  rgb = [];
let curve = curves.sqrt;

const parse = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));

// setScale makes the table of a theme and a curve.
export function setScale(theme, name) {
  curve = curves[name];
  for (let k = -N; k <= N; k++) {
    const list = stops[theme][k < 0 ? 'neg' : 'pos'],
      t = (Math.abs(k) / N) * 4,
      i = Math.min(3, Math.floor(t));
    const a = parse(list[i]),
      b = parse(list[i + 1]),
      c = a.map((x, j) => Math.round(x + (b[j] - x) * (t - i)));
    rgb[k + N] = c;
    packed[k + N] = ((255 << 24) | (c[2] << 16) | (c[1] << 8) | c[0]) >>> 0;
  }
}
export const height = v => Math.sign(v) * curve(Math.min(1, Math.abs(v)));
const level = v => N + Math.round(height(v) * N);
export const colour = v => rgb[level(v)];

const linear = x => {
  x /= 255;
  return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
};
export const ink = ([r, g, b]) =>
  0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.18 ? '#000' : '#fff';

// paint draws a lower triangle, row by row, one pixel for each entry.
export function paint(canvas, tri, n) {
  if (canvas.width !== n) canvas.width = canvas.height = n;
  const g = canvas.getContext('2d'),
    img = g.createImageData(n, n),
    px = new Uint32Array(img.data.buffer);
  for (let i = 0, k = 0; i < n; i++) for (let j = 0; j <= i; j++) px[i * n + j] = packed[level(tri[k++])];
  g.putImageData(img, 0, 0);
}

// paintKey draws the scale itself from −1 to 1.
export function paintKey(canvas) {
  canvas.width = 401;
  canvas.height = 1;
  const g = canvas.getContext('2d'),
    img = g.createImageData(401, 1),
    px = new Uint32Array(img.data.buffer);
  for (let i = 0; i <= 400; i++) px[i] = packed[N + Math.round(((i - 200) / 200) * N)];
  g.putImageData(img, 0, 0);
}

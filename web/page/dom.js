// Small helpers: elements, numbers as text, and the tooltip. Text of models and users reaches the page as text nodes
// only.

export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// el makes an element. Properties of the name on… are listeners, class and for are attributes, children are nodes or
// text.
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), v);
    else if (name in e && name !== 'list' && name !== 'role' && !name.startsWith('aria')) e[name] = v;
    else e.setAttribute(name, v === true ? '' : v);
  }
  if (props.class) e.className = props.class;
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

export const clamp = (x, lo, hi) => Math.min(hi, Math.max(lo, x));

// A minus sign that is as wide as a digit, and no negative zero.
export function fixed(x, digits) {
  const s = x.toFixed(digits);
  return Number(s) === 0 ? s.replace('-', '') : s.replace('-', '−');
}
export const signed = (x, digits) => (x > 0 && Number(x.toFixed(digits)) !== 0 ? '+' : '') + fixed(x, digits);
export const percent = x => (x > 0 && x < 0.0005 ? '< 0.1 %' : (100 * x).toFixed(x < 0.0995 ? 1 : 0) + ' %');

// shown makes a token's text visible where it has no ink.
export function shown(text) {
  if (text.startsWith('<|') || /^<\/?s>$/.test(text)) return '⟨' + text.replace(/[<|>/]/g, '') + '⟩';
  return text.replace(/\n/g, '⏎').replace(/\t/g, '⇥');
}
export const quoted = text => '“' + (shown(text).trim() || '␣') + '”';

// segments is a row of buttons of which one is pressed.
export function segments(label, choices, on) {
  const box = el('div', { class: 'seg', role: 'group', 'aria-label': label });
  for (const [value, text, title] of choices)
    box.append(el('button', { type: 'button', title, value, onclick: () => on(value) }, text));
  box.press = value => {
    for (const b of box.children) b.setAttribute('aria-pressed', String(b.value === String(value)));
  };
  return box;
}

// options fills a select element.
export function options(select, list) {
  const before = select.value;
  select.replaceChildren(...list.map(([value, text]) => new Option(text, value)));
  if (list.some(([value]) => String(value) === before)) select.value = before;
}

export function problem(text) {
  const p = $('#problem');
  p.hidden = !text;
  p.textContent = text || '';
}

// tip shows nodes beside an element, or hides when there are none.
export function tip(at, ...nodes) {
  const box = $('#tip');
  box.hidden = nodes.length === 0;
  if (box.hidden) return;
  box.replaceChildren(...nodes);
  const r = at.getBoundingClientRect(),
    w = box.offsetWidth;
  box.style.left = clamp(r.left + scrollX, 8, scrollX + document.documentElement.clientWidth - w - 8) + 'px';
  box.style.top = r.bottom + scrollY + 6 + 'px';
}

export const debounce = (f, ms) => {
  let t;
  return (...args) => {
    clearTimeout(t);
    t = setTimeout(() => f(...args), ms);
  };
};

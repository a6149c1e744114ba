// Checks a page as accessibility checkers do: names, labels, contrast, ids, headings, tab order; and that nothing
// scrolls sideways.
function audit() {
  const problems = [],
    say = (e, text) =>
      problems.push(
        `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}${e.className && e.className.baseVal === undefined ? '.' + String(e.className).replace(/ /g, '.') : ''}: ${text}`,
      );
  const seen = e => {
    const r = e.getBoundingClientRect(),
      s = getComputedStyle(e);
    return r.width > 0 && r.height > 0 && s.visibility !== 'hidden' && !e.closest('[hidden]') && e.checkVisibility();
  };
  const all = [...document.querySelectorAll('body *')].filter(seen);

  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 1) {
    const out = all.filter(
      e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest('.grids'),
    );
    problems.push(
      `the page scrolls sideways by ${wide}: ` +
        out
          .slice(0, 5)
          .map(e => e.tagName + '.' + e.className)
          .join(' '),
    );
  }
  if (!document.documentElement.lang || !document.title) problems.push('no language or title');
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push('two elements have the id ' + id);
  let level = 0;
  for (const h of all.filter(e => /^H[1-6]$/.test(e.tagName))) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) say(h, `a heading of level ${n} after ${level}`);
    level = n;
  }
  if (all.filter(e => e.tagName === 'H1').length !== 1) problems.push('not exactly one h1');
  if (!document.querySelector('main') || !document.querySelector('header')) problems.push('no landmarks');

  // names of controls and pictures
  const name = e => {
    const by = e.getAttribute('aria-labelledby');
    if (by)
      return by
        .split(' ')
        .map(id => (document.getElementById(id) || {}).textContent || '')
        .join(' ')
        .trim();
    if (e.getAttribute('aria-label')) return e.getAttribute('aria-label').trim();
    if (e.labels && e.labels.length)
      return [...e.labels]
        .map(l => l.textContent)
        .join(' ')
        .trim();
    if (e.tagName === 'svg') return (e.querySelector('title') || {}).textContent || '';
    return (e.textContent || e.title || '').trim();
  };
  const controls = all.filter(e =>
    e.matches(
      'button, a[href], input, select, textarea, summary, [role="option"], [role="slider"], [role="button"], [tabindex="0"]',
    ),
  );
  for (const e of controls) {
    if (!name(e)) say(e, 'has no name');
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName) && !(e.labels && e.labels.length) && !e.getAttribute('aria-label'))
      say(e, 'has no label');
    if (e.tabIndex > 0) say(e, 'jumps the tab order');
  }
  for (const e of all.filter(e => e.matches('canvas, svg[role="img"], img, [role="img"]')))
    if (e.getAttribute('aria-hidden') !== 'true' && !e.closest('[aria-hidden="true"]') && !name(e))
      say(e, 'a picture without a name');
  for (const e of all.filter(e => e.matches('[role="group"], [role="listbox"], [role="log"], nav, section')))
    if (!e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.matches('section:not([id])'))
      say(e, 'a region without a name');
  const roles = { option: 'listbox' };
  for (const [role, owner] of Object.entries(roles))
    for (const e of all.filter(e => e.getAttribute('role') === role))
      if (!e.closest(`[role="${owner}"]`)) say(e, `a ${role} outside a ${owner}`);
  for (const e of all.filter(e => e.matches('[aria-hidden="true"]')))
    if (e.matches('[tabindex="0"], button, a') || e.querySelector('button, a[href], input, select'))
      say(e, 'hidden from readers, but can be focused');

  // contrast of text with what is behind it
  const parse = c => {
    const m = /rgba?\(([^)]+)\)/.exec(c);
    if (!m) return null;
    const [r, g, b, a = 1] = m[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a];
  };
  const lum = ([r, g, b]) => {
    const f = x => {
      x /= 255;
      return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = e => {
    for (let p = e; p; p = p.parentElement) {
      const c = parse(getComputedStyle(p).backgroundColor);
      if (c && c[3] > 0.99) return c;
    }
    return [255, 255, 255, 1];
  };
  let texts = 0;
  for (const e of all) {
    if (
      ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) ||
      e.closest('.vh, .skip, option, canvas') ||
      e.disabled ||
      e.closest(':disabled')
    )
      continue;
    const s = getComputedStyle(e),
      c = parse(e instanceof SVGElement ? s.fill : s.color);
    if (!c) continue;
    texts++;
    const a = lum(c),
      b = lum(behind(e)),
      ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
      large = parseFloat(s.fontSize) >= 24 || (parseFloat(s.fontSize) >= 18.6 && Number(s.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) say(e, `contrast ${ratio.toFixed(2)}: ${e.textContent.trim().slice(0, 40)}`);
  }

  // focus: what can be reached by Tab, in the order of the document, shows that it has the focus
  const stops = controls.filter(e => e.tabIndex === 0 && !e.disabled && !e.closest(':disabled'));
  const before = document.activeElement;
  for (const e of stops) {
    e.focus({ preventScroll: true, focusVisible: true });
    if (document.activeElement !== e) {
      say(e, 'cannot be focused');
      continue;
    }
    const s = getComputedStyle(e);
    if (s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 1) say(e, 'does not show its focus');
  }
  if (before && before.focus) before.focus({ preventScroll: true });
  else document.activeElement.blur();
  return { Problems: [...new Set(problems)], Texts: texts, Controls: controls.length, Stops: stops.length };
}

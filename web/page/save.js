// One file that shows what is seen now, without a server: the page with its scripts inside, and the replies as data.

import { interventions, nameOf, toHash } from './link.js';

const steps = [0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2];

// outcomes asks for the loss and the next token at each step of λ, in this layer and in all.
async function outcomes(lab) {
  const S = lab.S,
    out = {},
    last = lab.base.tokens.length - 1,
    lists = [];
  if (lab.base.two())
    for (const scope of ['layer', 'all']) {
      for (const x of steps) lists.push(interventions({ ...S, scope, x, second: '', knocked: new Set() }, true));
      for (const second of ['shuffled', 'averaged'])
        lists.push(interventions({ ...S, scope, x: 1, second, knocked: new Set() }, true));
    }
  if (lab.edits().length) lists.push(lab.edits());
  for (const list of lists) {
    const r = await lab.source.brief(S.model, S.text, list, last);
    out[nameOf(list)] = { loss: r.loss, next: r.next };
  }
  return out;
}

// fill puts data into the page's slot. No text in it can end the element: < is written as an escape. Tags are spelled
// in two parts here because this script itself stands inside the page.
const slot = '<' + '!--data-->',
  open = '<' + 'script type="application/json" id="data">',
  close = '<' + '/script>';
const fill = (page, data) => page.replace(slot, () => open + JSON.stringify(data).replace(/</g, '\\u003c') + close);

export async function saveFile(lab) {
  const S = lab.S,
    page = await (await fetch('/ui/file.html')).text();
  const looks = [lab.base, lab.twin].filter(Boolean).map(l => l.reply),
    models = lab.source.models.filter(m => m.id === S.model || m.id === S.twin);
  const data = { text: S.text, state: toHash(S), models, looks, outcomes: await outcomes(lab) };
  const url = URL.createObjectURL(new Blob([fill(page, data)], { type: 'text/html' })),
    a = document.createElement('a');
  a.href = url;
  a.download = 'attention.html';
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

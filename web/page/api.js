// Calls to the server that this page came from. A key is asked for once and kept in this tab.

import { $ } from './dom.js';

let key = '';
try {
  key = sessionStorage.getItem('antiphase-key') || '';
} catch {
  /* no storage: it is asked for again */
}

function askKey() {
  return new Promise(resolve => {
    const box = $('#keybox');
    $('#key').value = '';
    box.addEventListener(
      'close',
      () => {
        key = $('#key').value.trim();
        try {
          sessionStorage.setItem('antiphase-key', key);
        } catch {
          /* as above */
        }
        resolve();
      },
      { once: true },
    );
    box.showModal();
  });
}

export class ServerError extends Error {
  constructor(status, body) {
    const e = (body && body.error) || {};
    super(e.message || `the server answered ${status}`);
    this.status = status;
    this.detail = e;
  }
}

// call sends JSON and gives the response, asking for a key where one is wanted.
async function call(method, path, body, signal) {
  for (;;) {
    const headers = body ? { 'Content-Type': 'application/json' } : {};
    if (key) headers.Authorization = 'Bearer ' + key;
    const r = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
    if (r.status === 401) {
      await askKey();
      continue;
    }
    if (!r.ok) throw new ServerError(r.status, await r.json().catch(() => null));
    return r;
  }
}

export const get = async (path, signal) => (await call('GET', path, null, signal)).json();
export const post = async (path, body, signal) => (await call('POST', path, body, signal)).json();

// stream calls on for every event of a streamed answer.
export async function stream(path, body, signal, on) {
  const reader = (await call('POST', path, body, signal)).body.getReader(),
    text = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += text.decode(value, { stream: true });
    const events = rest.split('\n\n');
    rest = events.pop();
    for (const e of events) {
      if (!e.startsWith('data: ') || e === 'data: [DONE]') continue;
      const v = JSON.parse(e.slice(6));
      if (v.error) throw new ServerError(200, v);
      on(v);
    }
  }
}

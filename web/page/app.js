// The page: which view is shown, the theme, and where data comes from. A saved file has its data inside and shows the
// lab alone.

import { $, el, problem } from './dom.js';
import { Lab } from './lab.js';
import { Chat } from './chat.js';
import { Runs } from './runs.js';
import { Server, Saved } from './source.js';

const views = { attention: 'Attention', chat: 'Chat', runs: 'Runs' };
const themes = ['auto', 'light', 'dark'];
const dark = matchMedia('(prefers-color-scheme: dark)');
const open = {};
let theme = 'auto',
  source,
  saved;
try {
  theme = localStorage.getItem('antiphase-theme') || 'auto';
} catch {
  /* no storage: as the system */
}

function applyTheme() {
  document.documentElement.dataset.theme = theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme;
  $('#theme').textContent = 'Theme: ' + theme;
  for (const v of Object.values(open)) v.draw();
}

function nextTheme() {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try {
    localStorage.setItem('antiphase-theme', theme);
  } catch {
    /* as above */
  }
  applyTheme();
}

const wanted = () => {
  const name = location.hash.slice(1).split('?')[0];
  return views[name] ? name : 'attention';
};

function show() {
  const name = saved ? 'attention' : wanted();
  for (const [id, title] of Object.entries(views)) {
    const view = $('#view-' + id),
      link = $('#tab-' + id);
    view.hidden = id !== name;
    if (link) {
      if (id === name) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    if (id === name) document.title = title + ' · Antiphase';
  }
  if (!open[name]) open[name] = make(name, $('#view-' + name));
  else if (name === 'attention' && location.hash.includes('?')) open[name].reopen(location.hash);
  for (const [id, v] of Object.entries(open)) v.visible = id === name;
  open[name].draw();
}

function make(name, root) {
  if (name === 'attention') return new Lab(root, source, saved && !location.hash ? saved.state : location.hash);
  return name === 'chat' ? new Chat(root, source) : new Runs(root);
}

async function begin() {
  $('#theme').addEventListener('click', nextTheme);
  dark.addEventListener('change', applyTheme);
  applyTheme();
  const data = document.getElementById('data');
  saved = data && JSON.parse(data.textContent);
  if (!saved)
    for (const [id, title] of Object.entries(views))
      $('#tabs').append(el('a', { id: 'tab-' + id, href: '#' + id }, title));
  try {
    source = saved ? new Saved(saved) : await Server.open();
  } catch (e) {
    problem(e.message);
    return;
  }
  addEventListener('hashchange', show);
  addEventListener('resize', () => {
    for (const v of Object.values(open)) v.draw();
  });
  show();
}

begin();

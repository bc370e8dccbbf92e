// popup.js shows what holds, and lets the person pause Drover and share the tab in front.
const el = id => document.getElementById(id);
const ask = (type, more = {}) => browser.runtime.sendMessage({ type, ...more });
let now = {};

const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;

function show(state) {
  now = state;
  el('status').textContent = state.paused ? 'Paused: Drover cannot do anything in this Firefox.'
    : !state.connected ? 'Not connected to Drover.'
    : !state.hosts ? 'Connected, but not allowed to act on pages.'
    : state.sessions ? `Connected. Drover has ${plural(state.sessions, 'session')} with ${plural(state.tabs, 'tab')}.`
    : 'Connected. Drover drives nothing here now.';
  el('detail').textContent = state.connected ? (state.shared ? `${plural(state.shared, 'tab')} shared with the next session.` : '')
    : `${state.problem ? `${state.problem}. ` : ''}Run "drover provider setup firefox" in a terminal.`;
  el('pause').textContent = state.paused ? 'Resume' : 'Pause';
  el('share').textContent = state.here === 'private' ? 'Share this tab with Drover' : 'Stop sharing this tab';
  el('grant').hidden = state.hosts;
  el('retry').hidden = state.connected;
}

const front = async () => (await browser.tabs.query({ active: true, currentWindow: true }))[0]?.id;
el('pause').addEventListener('click', async () => show(await ask('pause', { on: !now.paused })));
el('share').addEventListener('click', async () => show(await ask(now.here === 'private' ? 'share' : 'unshare', { tab: await front() })));
el('grant').addEventListener('click', async () => { await browser.permissions.request({ origins: ['<all_urls>'] }); show(await ask('state')); });
el('retry').addEventListener('click', async () => show(await ask('retry')));
browser.runtime.onMessage.addListener(m => { if (m?.type === 'changed') ask('state').then(show); });
show(await ask('state'));

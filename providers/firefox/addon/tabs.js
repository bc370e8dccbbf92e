// tabs.js opens, moves and closes the tabs of sessions, and tells the providers what happens to them.
import * as documents from './documents.js';
import { Refusal } from './refusal.js';
import * as sessions from './sessions.js';

const tell = { event() {} };
export const onEvent = fn => { tell.event = fn; };
// emit sends an event to the provider that has the session.
export const emit = (s, event, params) => tell.event(s.client, event, { session: s.id, ...params });

const about = t => ({ tab: t.id, url: t.url ?? '', title: t.title ?? '', active: t.active, status: t.status ?? 'complete' });

// Every tab begins with an empty document that is loaded once more; settled waits until that is over, so that nobody meets it.
const settling = new Map(); // tab → what waits
const done = new Set();
browser.webNavigation.onCompleted.addListener(d => {
  if (d.frameId) return;
  done.add(d.tabId);
  settling.get(d.tabId)?.();
}, { url: [{ urlEquals: 'about:blank' }] });
const settled = tab => done.has(tab) ? null : new Promise(resolve => {
  const end = () => { settling.delete(tab); resolve(); };
  settling.set(tab, end);
  setTimeout(end, 1000);
});

async function open(client, p) {
  const s = sessions.add(client, p.session);
  try {
    const options = { url: 'about:blank', focused: p.focused === true };
    if (p.width) { options.width = p.width; options.height = p.height; }
    const w = await browser.windows.create(options);
    s.window = w.id;
    const tab = w.tabs[0].id;
    sessions.take(s, tab);
    for (const id of sessions.sharedTabs()) adopt(s, id, { found: true });
    await settled(tab);
    return { tab, window: w.id };
  } catch (e) {
    await close(s);
    throw new Refusal('failed', String(e?.message ?? e));
  }
}

// adopt takes a tab into a session and tells of it.
export function adopt(s, tab, { found = false, opener = null } = {}) {
  if (!sessions.take(s, tab, { found, opener })) return;
  browser.tabs.get(tab).then(t => emit(s, 'tab.opened', { ...about(t), found, opener }), () => sessions.drop(tab));
}

export async function close(s) {
  const own = sessions.remove(s);
  for (const tab of own) documents.closed(tab);
  await Promise.all(own.map(id => browser.tabs.remove(id).catch(() => {}))); // One that is gone already is closed.
  return own.length;
}

const NAVIGABLE = /^(https?:|about:blank$)/i;

async function navigate(p) {
  if (!NAVIGABLE.test(p.url)) throw new Refusal('url_refused', 'an add-on can open http: and https: addresses and about:blank alone');
  try { await browser.tabs.update(p.tab, { url: p.url }); } catch (e) { throw new Refusal('url_refused', String(e?.message ?? e)); }
  return about(await browser.tabs.get(p.tab));
}

async function create(client, p) {
  const s = sessions.find(client, p.session);
  const window = s.window !== null && await browser.windows.get(s.window).catch(() => null);
  let tab;
  if (window) tab = await browser.tabs.create({ windowId: window.id, url: 'about:blank', active: p.active !== false });
  else {
    const w = await browser.windows.create({ url: 'about:blank', focused: p.foreground === true });
    s.window = w.id;
    tab = w.tabs[0];
  }
  if (p.foreground) await browser.windows.update(tab.windowId, { focused: true });
  sessions.take(s, tab.id);
  await settled(tab.id);
  return about(tab);
}

async function travel(tab, step) {
  const came = step < 0 ? browser.tabs.goBack(tab) : browser.tabs.goForward(tab);
  try { await came; } catch (e) { throw new Refusal('no_history', String(e?.message ?? e)); }
  return {};
}

// resize gives the window of a tab the size at which the page has this viewport, as far as the screen allows.
async function resize(p) {
  const t = await browser.tabs.get(p.tab), w = await browser.windows.get(t.windowId);
  await browser.windows.update(w.id, { width: Math.max(1, w.width + p.dx), height: Math.max(1, w.height + p.dy) });
  return {};
}

export const methods = {
  'tab.get': async p => about(await browser.tabs.get(p.tab)),
  'tab.navigate': navigate,
  'tab.travel': p => travel(p.tab, p.step),
  'tab.reload': async p => { await browser.tabs.reload(p.tab); return {}; },
  'tab.stop': async () => ({}),
  'tab.activate': async p => {
    const t = await browser.tabs.update(p.tab, { active: true });
    if (p.foreground) await browser.windows.update(t.windowId, { focused: true });
    return about(t);
  },
  'tab.close': async p => { await browser.tabs.remove(p.tab); return {}; },
  'tab.resize': resize,
};
export const whole = {
  'session.open': open,
  'session.close': async (client, p) => ({ closed: await close(sessions.find(client, p.session)) }),
  'tab.new': create,
  'tab.list': async (client, p) => {
    const s = sessions.find(client, p.session);
    const list = await Promise.all([...s.tabs.keys()].map(id => browser.tabs.get(id).then(about, () => null)));
    return { tabs: list.filter(Boolean) };
  },
};

// ---- what happens

const steps = { onBeforeNavigate: 'begun', onCommitted: 'committed', onDOMContentLoaded: 'parsed', onCompleted: 'loaded', onErrorOccurred: 'failed',
  onReferenceFragmentUpdated: 'fragment', onHistoryStateUpdated: 'history' };
for (const [name, step] of Object.entries(steps)) {
  browser.webNavigation[name].addListener(d => {
    const s = sessions.ownerOf(d.tabId);
    if (!s) return;
    if (step === 'begun') s.visit(d.url);
    if (step === 'committed') documents.left(d.tabId, d.frameId);
    emit(s, 'nav', {
      step, tab: d.tabId, frame: d.frameId, parent: d.parentFrameId, url: d.url, document: d.documentId ?? '', error: String(d.error ?? ''),
      transition: d.transitionType ?? '', at: d.timeStamp,
    });
  });
}
browser.webNavigation.onCreatedNavigationTarget.addListener(d => {
  const s = sessions.ownerOf(d.sourceTabId);
  if (s) adopt(s, d.tabId, { opener: d.sourceTabId });
});
browser.tabs.onCreated.addListener(t => {
  const s = t.openerTabId !== undefined ? sessions.ownerOf(t.openerTabId) : null;
  if (s) adopt(s, t.id, { opener: t.openerTabId });
});
browser.tabs.onRemoved.addListener(tab => {
  documents.closed(tab);
  done.delete(tab);
  const s = sessions.drop(tab);
  if (s) emit(s, 'tab.closed', { tab });
});
browser.tabs.onUpdated.addListener((tab, change, t) => {
  const s = sessions.ownerOf(tab);
  if (s && (change.status || change.title !== undefined)) emit(s, 'tab.changed', { tab, status: t.status, title: t.title, url: t.url });
}, { properties: ['status', 'title'] });

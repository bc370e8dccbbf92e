// background.js joins the parts: requests come from the host by the port, and go to the methods.
import * as cookies from './cookies.js';
import * as observe from './observe.js';
import * as page from './page.js';
import { HostPort } from './port.js';
import { Refusal } from './refusal.js';
import * as sessions from './sessions.js';
import * as tabs from './tabs.js';
import ENGINE from './version.js';

let paused = false;
const calls = new Set(); // what is under way, as {client, reject}

const inTab = { ...tabs.methods, ...page.methods }; // each names session and tab
const whole = { ...tabs.whole };
const free = { ...cookies.methods }; // each names a session

async function answer(client, method, params) {
  if (method === 'ping') return { paused, time: Date.now() };
  if (paused && method !== 'session.close') throw new Refusal('paused', 'Drover is paused in this Firefox');
  if (whole[method]) {
    try { return await whole[method](client, params); } finally { observe.follow(); badge(); }
  }
  if (free[method]) { sessions.find(client, params.session); return free[method](params); }
  if (!inTab[method]) throw new Refusal('unknown_method', `this add-on has no ${method}`);
  sessions.tabOf(client, params.session, params.tab);
  return inTab[method](params);
}

async function request({ client, id, method, params }) {
  let call;
  const broken = new Promise((_, reject) => { call = { client, reject }; });
  calls.add(call);
  try {
    port.send({ client, id, result: await Promise.race([answer(client, method, params ?? {}), broken]) ?? null });
  } catch (e) {
    port.send({ client, id, error: { code: e instanceof Refusal ? e.code : 'failed', message: String(e?.message ?? e) } });
  } finally { calls.delete(call); }
}

// gone ends what a provider that went away had open here.
async function gone(client) {
  for (const c of calls) if (c.client === client) c.reject(new Refusal('cancelled', 'the provider is gone'));
  await Promise.all(sessions.all().filter(s => s.client === client).map(tabs.close));
  observe.follow();
  badge();
}

const port = new HostPort({
  async hello() {
    const { instance } = await browser.storage.local.get('instance');
    const id = instance ?? crypto.randomUUID();
    if (!instance) await browser.storage.local.set({ instance: id });
    const info = await browser.runtime.getBrowserInfo();
    return {
      kind: 'drover', protocol: 1, version: browser.runtime.getManifest().version, engine: ENGINE, instance: id,
      browser: info.name, browser_version: info.version, hosts: await browser.permissions.contains({ origins: ['<all_urls>'] }),
    };
  },
  take(m) {
    if (m.type === 'request') request(m);
    else if (m.type === 'gone') gone(m.client);
  },
  change() {
    // A host that is gone took all its providers along.
    if (!port.connected) for (const s of sessions.all()) gone(s.client);
    badge();
  },
});
tabs.onEvent((client, event, params) => port.send({ client, event, params }));

// badge says at a glance what holds: || paused, ! not connected, a number of sessions.
function badge() {
  const n = sessions.all().length;
  browser.action.setBadgeText({ text: paused ? '||' : !port.connected ? '!' : n ? String(n) : '' });
  browser.action.setBadgeBackgroundColor({ color: paused ? '#8a6d00' : port.connected ? '#1d6f42' : '#a1260d' });
  browser.runtime.sendMessage({ type: 'changed' }).catch(() => {}); // Nobody looks when the popup is closed.
}

const state = async () => {
  const [tab] = await browser.tabs.query({ active: true, currentWindow: true });
  return {
    connected: port.connected, problem: port.problem, paused, sessions: sessions.all().length,
    tabs: sessions.all().reduce((n, s) => n + s.tabs.size, 0),
    hosts: await browser.permissions.contains({ origins: ['<all_urls>'] }),
    shared: sessions.sharedTabs().length, here: tab ? (sessions.ownerOf(tab.id) ? 'driven' : sessions.sharedTabs().includes(tab.id) ? 'shared' : 'private') : 'private',
  };
};
const asked = {
  state,
  async pause({ on }) { paused = on === true; await browser.storage.local.set({ paused }); badge(); return state(); },
  async share({ tab }) {
    const s = sessions.share(tab);
    if (s) tabs.emit(s, 'tab.opened', { tab, url: (await browser.tabs.get(tab)).url, title: '', active: true, status: 'complete', found: true, opener: null });
    badge();
    return state();
  },
  async unshare({ tab }) {
    const s = sessions.drop(tab);
    if (s) tabs.emit(s, 'tab.closed', { tab });
    badge();
    return state();
  },
  async retry() { port.retry(); return state(); },
};
browser.runtime.onMessage.addListener((m, sender) => {
  // The popup alone may ask; a document that the engine runs in has no business here.
  if (sender.url !== browser.runtime.getURL('popup.html') || !Object.hasOwn(asked, m?.type)) return undefined;
  return asked[m.type](m);
});

browser.storage.local.get('paused').then(kept => { paused = kept.paused === true; port.start(); badge(); });

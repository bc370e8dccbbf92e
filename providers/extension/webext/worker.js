// The service worker: it joins the link, the tools and the pages of the extension. Listeners are set while it is read, so
// that an event can wake it.
import { brand } from './lib/brand.js';
import { checkConfig, dropOffer, loadConfig, loadOffer, parkOffer, saveConfig } from './lib/config.js';
import { listen as listenDebugger, setTeller } from './lib/debug.js';
import { listen as listenGroup } from './lib/group.js';
import { Link } from './lib/link.js';
import { runTool } from './lib/tools.js';

const link = new Link({ onCommand: runTool, onState: show });
setTeller((name, payload) => link.event(name, payload));
listenDebugger();
listenGroup();

// show puts the state where a person sees it: on the badge, and in a popup that is open.
async function show(state) {
  const { badge } = await brand();
  const offer = await loadOffer();
  const [text, color] = offer ? ['1', badge.ask] : { connected: ['on', badge.on], connecting: ['…', badge.wait], waiting: ['…', badge.wait], refused: ['!', badge.wait] }[state.phase] ?? ['', badge.off];
  await chrome.action.setBadgeText({ text });
  await chrome.action.setBadgeBackgroundColor({ color });
  chrome.runtime.sendMessage({ type: 'statusUpdate', ...(await status()) }).catch(() => {}); // nobody may be there
}

async function status() {
  const config = await loadConfig();
  let host = '';
  try { host = new URL(config.serverUrl).host; } catch { /* none is set */ }
  return { connected: link.state.phase === 'connected', ...link.state, label: config.brand || host, host, target: config.target, paired: Boolean(config.token), offer: await loadOffer() };
}

async function connect() {
  const config = await loadConfig();
  const { wrong } = checkConfig(config);
  if (wrong) return { ok: false, error: wrong };
  await saveConfig({ enabled: true });
  link.stop('connecting', 'Connecting…');
  await link.start();
  return { ok: true };
}

const pages = {
  connect,
  getStatus: status,
  getPairOffer: async () => ({ offer: await loadOffer() }),
  async disconnect() {
    await saveConfig({ enabled: false });
    link.stop('off', 'Disconnected');
    return { ok: true };
  },
  async saveConfig({ config: given }) {
    const { wrong, field, config } = checkConfig(given);
    if (wrong) return { ok: false, error: wrong, field };
    await saveConfig({ ...config, brand: '', origin: '' });
    return connect();
  },
  async reset() {
    link.stop('off', 'Not set up');
    await chrome.storage.local.remove('connection');
    return { ok: true };
  },
  async acceptPairOffer() {
    const offer = await loadOffer();
    if (!offer) return { ok: false, error: 'The request is no longer there.' };
    await dropOffer();
    await saveConfig({ ...offer.config, brand: offer.brand, origin: offer.origin });
    return connect();
  },
  async dismissPairOffer() {
    await dropOffer();
    await show(link.state);
    return { ok: true };
  },
};

chrome.runtime.onMessage.addListener((message, sender, answer) => {
  if (sender.id !== chrome.runtime.id) return false;
  const own = sender.url?.startsWith(chrome.runtime.getURL(''));
  if (!own) {
    if (message?.type === 'pairOffer' && sender.frameId === 0) void offered(message, sender);
    return false;
  }
  const handle = Object.hasOwn(pages, message?.type) ? pages[message.type] : null;
  if (!handle) return false;
  handle(message).then(answer, error => answer({ ok: false, error: String(error?.message ?? error) }));
  return true;
});

// offered parks an offer of a page. The origin is the browser's word, not the page's.
async function offered(message, sender) {
  const { config } = checkConfig(message.config);
  if (!config) return;
  const name = typeof message.brand?.name === 'string' ? message.brand.name.replace(/[\p{C}\s]+/gu, ' ').trim().slice(0, 60) : '';
  await parkOffer({ config, brand: name, origin: sender.origin ?? new URL(sender.url).origin, host: new URL(config.serverUrl).host });
  await show(link.state);
}

chrome.alarms.onAlarm.addListener(() => void link.start());
chrome.runtime.onStartup.addListener(() => void link.start());
chrome.runtime.onInstalled.addListener(() => void link.start());
void chrome.alarms.create('watch', { periodInMinutes: 0.5 });
setInterval(() => { if (link.wanted) void chrome.runtime.getPlatformInfo(); }, 20_000); // a worker that waits for its server must not sleep
void link.start();

// What this extension can beyond the catalog. A backend asks for the list with the tool capabilities; one that knows nothing
// of it never meets any of this.
import { shoot } from './computer.js';
import { answerDialog, guarded, letGo, relay, send, watch } from './debug.js';
import { checkTab, groupTabs, inGroup, newTab } from './group.js';
import { inPage } from './tools.js';

const text = said => ({ content: [{ type: 'text', text: said }] });
const value = given => ({ content: [], value: given ?? null });

// refused are domains that would reach beyond the tab.
const refused = /^(Browser|SystemInfo|Tethering|Extensions)\./;
const targetAllowed = new Set(['Target.setAutoAttach', 'Target.getTargetInfo', 'Target.detachFromTarget']);

function browserName() {
  const brands = navigator.userAgentData?.brands ?? [];
  const known = brands.find(b => !/not.?a.?brand|^chromium$/i.test(b.brand.replace(/[^\w ]/g, ''))) ?? brands.find(b => b.brand === 'Chromium');
  return known ? `${known.brand} ${known.version}` : 'Chromium';
}

export const additions = {
  async capabilities() {
    const manifest = chrome.runtime.getManifest();
    return value({ product: manifest.name, version: manifest.version, browser: browserName(), additions: Object.keys(additions).filter(name => name !== 'capabilities').concat('events') });
  },
  // devtools sends a command of the DevTools Protocol to a tab, or to a frame of it that has a session of its own.
  async devtools({ tabId, sessionId, method, params }) {
    const tab = inGroup(tabId) ? { id: tabId } : await checkTab(tabId);
    if (typeof method !== 'string' || refused.test(method) || method.startsWith('Target.') && !targetAllowed.has(method)) throw new Error(`${method} is refused.`);
    return value(await send(tab.id, method, params ?? {}, sessionId));
  },
  // tab_open opens a tab in the group and has its events told; tab_watch does that for one that is there.
  async tab_open({ url, active }) {
    const tab = await newTab(typeof url === 'string' && /^(https?:|about:blank$)/.test(url) ? url : 'about:blank', active === true);
    return additions.tab_watch({ tabId: tab.id });
  },
  async tab_watch({ tabId }) {
    const tab = await checkTab(tabId);
    await relay(tab.id);
    const { frameTree } = await send(tab.id, 'Page.getFrameTree');
    return value({ tabId: tab.id, frameId: frameTree.frame.id, url: frameTree.frame.url });
  },
  async tab_list() {
    return value((await groupTabs()).map(t => ({ tabId: t.id, url: t.url || t.pendingUrl || '', title: t.title ?? '', active: t.active })));
  },
  async tab_activate({ tabId }) {
    const tab = await checkTab(tabId);
    await chrome.tabs.update(tab.id, { active: true });
    await chrome.windows.update(tab.windowId, { focused: true });
    return text(`Activated tab ${tab.id}`);
  },
  async tab_close({ tabId }) {
    const tab = await checkTab(tabId);
    await letGo(tab.id, false); // a leave prompt would keep it
    await chrome.tabs.remove(tab.id);
    return text(`Closed tab ${tab.id}`);
  },
  async wait({ tabId, ...args }) {
    const met = await inPage((await checkTab(tabId)).id, 'wait', args);
    return { ...text(met ? 'The condition is met' : 'The condition was not met in time'), value: { met } };
  },
  async dialog({ tabId, action = 'get', text: said }) {
    const tab = await checkTab(tabId);
    const page = await watch(tab.id);
    const open = page.dialog;
    if (action === 'get') return { ...text(open ? JSON.stringify(open) : 'No dialog is open'), value: open };
    if (action !== 'accept' && action !== 'dismiss') throw new Error('action is get, accept or dismiss.');
    if (!open) throw new Error('No dialog is open.');
    await answerDialog(tab.id, action === 'accept', said);
    return text(action === 'accept' ? 'The dialog was accepted' : 'The dialog was dismissed');
  },
  async downloads({ limit = 50 }) {
    const list = await chrome.downloads.search({ orderBy: ['-startTime'], limit: Math.min(Number(limit) || 50, 200) });
    return value(list.map(d => ({ id: d.id, url: d.finalUrl || d.url, filename: d.filename, state: d.state, bytesReceived: d.bytesReceived, totalBytes: d.totalBytes, startTime: d.startTime })));
  },
  async screenshot_full({ tabId, format = 'png' }) {
    const tab = await checkTab(tabId);
    const page = await watch(tab.id);
    const shot = await guarded(page, () => shoot(tab.id, { full: true, format: format === 'jpeg' ? 'jpeg' : 'png' }));
    return { content: [{ type: 'text', text: `Captured the whole page (${shot.width}x${shot.height})` }, { type: 'image', data: shot.data, mimeType: shot.mime }] };
  },
};

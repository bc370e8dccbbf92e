// observe.js tells of the requests and downloads of sessions' tabs. It listens only while there are sessions, and says nothing of
// other tabs.
import * as sessions from './sessions.js';
import { emit } from './tabs.js';

const KINDS = { main_frame: 'document', sub_frame: 'document', object: 'document', xmlhttprequest: 'xhr', beacon: 'ping', csp_report: 'ping', imageset: 'image', web_manifest: 'manifest', object_subrequest: 'other', xslt: 'stylesheet' };
const ALL = { urls: ['<all_urls>', 'ws://*/*', 'wss://*/*'] };

const header = (d, name) => d.responseHeaders?.find(h => h.name.toLowerCase() === name)?.value ?? '';
const mime = d => header(d, 'content-type').split(';')[0].trim();
const told = (phase, more) => d => {
  const s = sessions.ownerOf(d.tabId);
  if (!s) return;
  if (phase === 'begin') s.visit(d.url);
  emit(s, 'net', { phase, tab: d.tabId, frame: d.frameId, id: d.requestId, url: d.url, at: d.timeStamp, ...more(d) });
};
const LISTENERS = {
  onBeforeRequest: told('begin', d => ({ method: d.method, kind: KINDS[d.type] ?? d.type, main: d.type === 'main_frame' })),
  onBeforeRedirect: told('redirect', d => ({ status: d.statusCode, to: d.redirectUrl, mime: mime(d) })),
  onResponseStarted: told('answer', d => ({ status: d.statusCode, mime: mime(d), main: d.type === 'main_frame', disposition: header(d, 'content-disposition') })),
  onCompleted: told('end', d => ({ status: d.statusCode, mime: mime(d) })),
  onErrorOccurred: told('error', d => ({ error: String(d.error ?? '') })),
};
const EXTRA = { onBeforeRedirect: ['responseHeaders'], onResponseStarted: ['responseHeaders'], onCompleted: ['responseHeaders'] };

let on = false;
export function follow() {
  const want = sessions.all().length > 0;
  if (want === on) return;
  on = want;
  for (const [name, fn] of Object.entries(LISTENERS)) {
    if (on) browser.webRequest[name].addListener(fn, ALL, ...(EXTRA[name] ? [EXTRA[name]] : []));
    else browser.webRequest[name].removeListener(fn);
  }
  const verb = on ? 'addListener' : 'removeListener';
  browser.downloads.onCreated[verb](created);
  browser.downloads.onChanged[verb](changed);
}

// A download names no tab. It is a session's when one of its tabs asked for the address, or, for an address that a page made
// itself, when a tab of that origin was just acted on.
const downloads = new Map(); // download id → session
const OWN = 10_000; // milliseconds
async function sessionOf(item) {
  const asked = sessions.all().find(s => s.urls.includes(item.url));
  if (asked) return asked;
  if (!/^(blob|data):/i.test(item.url)) return null;
  const recent = sessions.all().filter(s => Date.now() - s.acted < OWN).sort((a, b) => b.acted - a.acted);
  if (/^data:/i.test(item.url)) return recent[0] ?? null;
  const origin = new URL(item.url).origin;
  for (const s of recent) for (const tab of s.tabs.keys()) {
    const t = await browser.tabs.get(tab).catch(() => null);
    if (t && URL.canParse(t.url) && new URL(t.url).origin === origin) return s;
  }
  return null;
}
const say = (s, item, began) => emit(s, 'download', {
  id: item.id, began, url: item.url.startsWith('data:') ? 'data:' : item.url, path: item.filename, state: item.state, received: item.bytesReceived, total: item.totalBytes,
  error: item.error ?? '', mime: item.mime ?? '',
});
// Firefox may tell of a download before it tells of the request that became it.
const LATER = [0, 50, 150, 400, 1000];
async function created(item) {
  let s = null;
  for (const ms of LATER) {
    if (ms) await new Promise(done => setTimeout(done, ms));
    if (s = await sessionOf(item)) break;
  }
  if (!s) return;
  downloads.set(item.id, s);
  say(s, item, true);
  // A small one may have ended before its session was found.
  const [now] = await browser.downloads.search({ id: item.id });
  if (now && now.state !== item.state) say(s, now, false);
}
async function changed(delta) {
  const s = downloads.get(delta.id);
  if (!s || !delta.state && !delta.filename) return;
  const [item] = await browser.downloads.search({ id: delta.id });
  if (item) say(s, item, false);
  if (delta.state && delta.state.current !== 'in_progress') downloads.delete(delta.id);
}

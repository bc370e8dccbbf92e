// The catalog of tools, and what this extension can beyond it. A failure is an error, never a text that reads like success.
import { additions } from './additions.js';
import { computer, keepPicture, picture } from './computer.js';
import { guarded, send, watch, world } from './debug.js';
import { checkTab, groupId, groupTabs, newTab } from './group.js';
import { install } from './page.js';

const text = said => ({ content: [{ type: 'text', text: said }] });

// inPage runs an operation in the isolated world of a tab's document.
let lastRef = 0;
export async function inPage(tabId, op, args) {
  const page = await watch(tabId);
  return guarded(page, async () => {
    const contextId = await world(tabId);
    const { last = 0 } = lastRef ? { last: lastRef } : await chrome.storage.session.get('last');
    const expression = `(${install})(${last}), __operator(${JSON.stringify(op)}, ${JSON.stringify(args ?? {})})`;
    const { result, exceptionDetails } = await send(tabId, 'Runtime.evaluate', { expression, contextId, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    if (result.value.last > lastRef) await chrome.storage.session.set({ last: lastRef = result.value.last });
    if (result.value.error) throw new Error(result.value.error);
    return result.value.ok;
  });
}

async function context() {
  const tabs = await groupTabs();
  const list = tabs.map(t => ({ tabId: t.id, title: t.title || 'Untitled', url: t.url || t.pendingUrl || '' }));
  const lines = list.map(t => `  • tabId ${t.tabId}: ${JSON.stringify(t.title)} (${t.url})`);
  return `${JSON.stringify({ availableTabs: list, tabGroupId: await groupId() })}\n\nTab Context:\n- Available tabs:\n${lines.join('\n')}`;
}

// settle waits until a navigation that was begun is over: loaded, moved within the document, failed, or turned to a download.
async function settle(tabId, page, begin) {
  const done = {};
  done.wait = new Promise(resolve => { done.resolve = resolve; });
  const seen = (source, method, params) => {
    if (source.tabId !== tabId || source.sessionId) return;
    if (method === 'Page.loadEventFired') done.resolve('complete');
    if (method === 'Page.navigatedWithinDocument') done.resolve('same document');
    if (method === 'Page.downloadWillBegin') done.resolve('download');
    if (method === 'Page.javascriptDialogOpening') done.resolve('dialog');
  };
  chrome.debugger.onEvent.addListener(seen);
  try {
    await begin(done);
    return await Promise.race([done.wait, new Promise(resolve => setTimeout(resolve, 10_000, 'still loading'))]);
  } finally {
    chrome.debugger.onEvent.removeListener(seen);
  }
}

async function navigate({ url, tabId }) {
  const tab = await checkTab(tabId);
  const page = await watch(tab.id);
  let to = String(url ?? '').trim();
  if (page.dialog) await send(tab.id, 'Page.handleJavaScriptDialog', { accept: page.dialog.type === 'beforeunload' });
  let failed = '';
  const how = await settle(tab.id, page, async done => {
    if (to === 'back' || to === 'forward') {
      const { entries, currentIndex } = await send(tab.id, 'Page.getNavigationHistory');
      const entry = entries[currentIndex + (to === 'back' ? -1 : 1)];
      if (!entry) throw new Error(`There is no page to go ${to} to.`);
      await send(tab.id, 'Page.navigateToHistoryEntry', { entryId: entry.id });
      return;
    }
    if (to === 'reload') return void await send(tab.id, 'Page.reload');
    if (!/^[a-z][a-z0-9+.-]*:/i.test(to) || /^[\w.-]+:\d+(\/|$)/.test(to)) to = `${/^(localhost|127\.|\[::1\])/.test(to) ? 'http' : 'https'}://${to}`;
    let parsed;
    try { parsed = new URL(to); } catch { throw new Error(`Invalid URL: ${JSON.stringify(url)}.`); }
    if (!['http:', 'https:', 'about:', 'data:', 'blob:'].includes(parsed.protocol)) throw new Error(`${parsed.protocol} addresses are not opened.`);
    void send(tab.id, 'Page.navigate', { url: parsed.href }).then(answer => {
      failed = answer.errorText && answer.errorText !== 'net::ERR_ABORTED' ? answer.errorText : '';
      if (failed || answer.isDownload) done.resolve(failed ? 'failed' : 'download');
      else if (!answer.loaderId) done.resolve('same document');
    }, error => { failed = error.message; done.resolve('failed'); });
  });
  if (failed) throw new Error(`The page could not be loaded: ${failed}`);
  const now = await chrome.tabs.get(tab.id);
  const pages = (await groupTabs()).map((t, i) => `${i + 1}: ${t.url || t.pendingUrl || ''}${t.id === tab.id ? ' [selected]' : ''}`);
  return text(`Navigated to ${now.url || to}${how === 'complete' ? '' : ` (${how})`}.\n## Pages\n${pages.join('\n')}`);
}

function shownValue({ type, subtype, value, unserializableValue, description }) {
  if (type === 'undefined') return 'undefined';
  if (unserializableValue) return unserializableValue;
  if (value === undefined) return description ?? subtype ?? type;
  return JSON.stringify(value);
}

async function javascript({ text: source, tabId }) {
  const tab = await checkTab(tabId);
  if (typeof source !== 'string' || !source) throw new Error('text is required.');
  const page = await watch(tab.id);
  return guarded(page, async () => {
    const run = expression => send(tab.id, 'Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true, userGesture: true, replMode: true });
    const { result, exceptionDetails } = await run(source);
    if (exceptionDetails) {
      const x = exceptionDetails.exception;
      throw new Error(x?.description ?? (x && 'value' in x ? `Uncaught ${JSON.stringify(x.value)}` : exceptionDetails.text));
    }
    return text(shownValue(result));
  });
}

const wanted = (list, { limit = 100 }) => list.slice(-Math.max(1, Math.min(Number(limit) || 100, 1000)));

async function consoleMessages({ tabId, pattern, onlyErrors, clear, ...rest }) {
  const page = await watch((await checkTab(tabId)).id);
  let match = () => true;
  if (pattern) {
    let re = null;
    try { re = new RegExp(pattern, 'i'); } catch { /* then it is a plain text */ }
    match = m => (re ? re.test(m.text) : m.text.includes(pattern));
  }
  const list = wanted(page.console.filter(m => (!onlyErrors || /^(error|assert)$/.test(m.level)) && match(m)), rest);
  if (clear) page.console = [];
  if (!list.length) return text('No console messages matching the pattern.');
  return text(`Console messages (${list.length}):\n${list.map(m => `[${m.level}${m.exception ? ', exception' : ''}] ${m.text}${m.url ? ` (${m.url})` : ''}`).join('\n')}`);
}

async function networkRequests({ tabId, urlPattern, clear, ...rest }) {
  const page = await watch((await checkTab(tabId)).id);
  const list = wanted([...page.requests.values()].filter(r => !urlPattern || r.url.includes(urlPattern)), rest);
  if (clear) page.requests.clear();
  if (!list.length) return text('No network requests matching the pattern.');
  return text(`Network requests (${list.length}):\n${list.map(r => `${r.method} ${r.url} → ${r.state}${r.mime ? ` [${r.mime}]` : ''}`).join('\n')}`);
}

const reserved = 'is reserved in the protocol and not offered by this extension.';

const tools = {
  async tabs_context_mcp({ createIfEmpty }) {
    if (!(await groupTabs()).length) {
      if (!createIfEmpty) return text('No MCP tab group exists. Use createIfEmpty: true to create one.');
      await newTab();
    }
    return text(await context());
  },
  async tabs_create_mcp() {
    const tab = await newTab();
    await watch(tab.id);
    return text(`Created new tab. Tab ID: ${tab.id}\n\n${await context()}`);
  },
  navigate,
  computer,
  async read_page({ tabId, ...args }) { return text(await inPage((await checkTab(tabId)).id, 'read', args)); },
  async get_page_text({ tabId }) { return text(await inPage((await checkTab(tabId)).id, 'text')); },
  async find({ tabId, ...args }) { return text(await inPage((await checkTab(tabId)).id, 'find', args)); },
  async form_input({ tabId, ref, value }) {
    const result = await inPage((await checkTab(tabId)).id, 'fill', { ref, value });
    const said = 'value' in result || 'checked' in result ? ` to ${JSON.stringify(value)}` : '';
    return text(`Set ${ref}${said}. Result: ${JSON.stringify(result)}`);
  },
  javascript_tool: javascript,
  read_console_messages: consoleMessages,
  read_network_requests: networkRequests,
  async resize_window({ tabId, width, height }) {
    const tab = await checkTab(tabId);
    const size = [width, height].map(Number);
    if (!size.every(n => Number.isInteger(n) && n >= 100 && n <= 10000)) throw new Error('width and height are whole numbers from 100 to 10000.');
    await chrome.windows.update(tab.windowId, { state: 'normal' });
    await chrome.windows.update(tab.windowId, { width: size[0], height: size[1] });
    const now = await chrome.windows.get(tab.windowId);
    return text(`Resized window to ${now.width}x${now.height}`);
  },
  async upload_image({ tabId, imageId, ref, coordinate, filename }) {
    const tab = await checkTab(tabId);
    const image = picture(imageId);
    if (!image) throw new Error(`Image ${imageId} not found. Take a screenshot first.`);
    if (!ref && !Array.isArray(coordinate)) throw new Error('ref or coordinate is required.');
    const file = typeof filename === 'string' && filename ? filename.replace(/[\\/\0]/g, '_') : `${imageId}.${image.mime === 'image/png' ? 'png' : 'jpg'}`;
    return text(await inPage(tab.id, 'give', { ref, x: coordinate?.[0], y: coordinate?.[1], data: image.data, mime: image.mime, file }));
  },
  async update_plan({ domains, approach }) {
    const list = value => (Array.isArray(value) ? value : value === undefined || value === '' ? [] : [value]).map(v => `- ${v}`).join('\n');
    return text(`Plan updated (approved).\nDomains:\n${list(domains)}\nApproach:\n${list(approach)}`);
  },
  async gif_creator() { return text(`gif_creator ${reserved}`); },
  async shortcuts_list() { return text(`shortcuts_list ${reserved}`); },
  async shortcuts_execute() { return text(`shortcuts_execute ${reserved}`); },
  async switch_browser() { return text(`switch_browser ${reserved}`); },
};

// runTool runs a tool of the catalog or an addition.
export async function runTool(name, args) {
  const tool = Object.hasOwn(tools, name) ? tools[name] : Object.hasOwn(additions, name) ? additions[name] : null;
  if (!tool) throw new Error(`Unknown tool: ${name}`);
  try {
    return await tool(args);
  } catch (error) {
    throw new Error(`${name} failed: ${error?.message ?? error}`);
  }
}

export { keepPicture };

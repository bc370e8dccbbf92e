// Commands of the DevTools Protocol to the tabs of the group, and what the tabs tell by themselves.

const attached = new Map(); // tab id to what is known of it
const version = '1.3';
let teller = () => {};

export function setTeller(fn) { teller = fn; }
export function tell(name, payload) { teller(name, payload); }

class Page {
  constructor(tabId) {
    this.tabId = tabId;
    this.console = [];
    this.requests = new Map();
    this.worlds = new Map();
    this.dialog = null;
    this.relayed = false; // its events go to the backend
    this.watching = null;
    this.waiting = new Set(); // those who want to know of a dialog
  }
}

const pages = tabId => {
  let page = attached.get(tabId);
  if (!page) attached.set(tabId, page = new Page(tabId));
  return page;
};

// attach makes the debugger ours for a tab. It may be so already, from before the worker was last ended.
export async function attach(tabId) {
  const page = pages(tabId);
  page.attaching ??= chrome.debugger.attach({ tabId }, version).catch(async error => {
    const again = await chrome.debugger.sendCommand({ tabId }, 'Page.getFrameTree').then(() => true, () => false);
    if (!again) {
      attached.delete(tabId);
      throw new Error(`The debugger could not be attached to tab ${tabId}: ${error.message}`);
    }
  });
  await page.attaching;
  return page;
}

export function send(tabId, method, params = {}, sessionId) {
  return chrome.debugger.sendCommand(sessionId ? { tabId, sessionId } : { tabId }, method, params);
}

// watch attaches to a tab and switches on what the catalog's tools need: dialogs, console and network.
export async function watch(tabId) {
  const page = await attach(tabId);
  page.watching ??= Promise.all([
    send(tabId, 'Page.enable'), send(tabId, 'Runtime.enable'), send(tabId, 'Network.enable'),
    send(tabId, 'Emulation.setFocusEmulationEnabled', { enabled: true }),
  ]).catch(error => { page.watching = null; throw error; });
  if (!page.dialog) await page.watching;
  return page;
}

// relay has every event of a tab told to the backend.
export async function relay(tabId) {
  const page = await attach(tabId);
  page.relayed = true;
  const { relayed = [] } = await chrome.storage.session.get('relayed');
  if (!relayed.includes(tabId)) await chrome.storage.session.set({ relayed: [...relayed, tabId] });
  return page;
}

export async function letGo(tabId, closed) {
  const page = attached.get(tabId);
  attached.delete(tabId);
  const { relayed = [] } = await chrome.storage.session.get('relayed');
  if (relayed.includes(tabId)) await chrome.storage.session.set({ relayed: relayed.filter(id => id !== tabId) });
  if (!closed) await chrome.debugger.detach({ tabId }).catch(() => {});
  for (const wake of page?.waiting ?? []) wake(new Error(`Tab ${tabId} is not in the tab group any more.`));
  if (page || relayed.includes(tabId)) tell('tab.gone', { tabId });
}

// guarded runs work on a tab and ends it when a dialog opens there, because the page then answers nothing.
export async function guarded(page, work) {
  if (page.dialog) throw new Error(dialogText(page.dialog));
  let wake;
  const interrupted = new Promise((_, fail) => {
    wake = reason => fail(reason instanceof Error ? reason : new Error(dialogText(reason)));
    page.waiting.add(wake);
  });
  try {
    return await Promise.race([work(), interrupted]);
  } finally {
    page.waiting.delete(wake);
  }
}

export function dialogText(d) {
  return `A JavaScript ${d.type} dialog is open: ${JSON.stringify(d.message)}. Answer it with the dialog tool.`;
}

export async function answerDialog(tabId, accept, text) {
  const page = await attach(tabId);
  await send(tabId, 'Page.handleJavaScriptDialog', { accept, ...(text === undefined ? {} : { promptText: String(text) }) });
  page.dialog = null;
}

// world gives an isolated world of the tab's top document, in which the page's own scripts change nothing.
export async function world(tabId) {
  const { frameTree: { frame } } = await send(tabId, 'Page.getFrameTree');
  const page = pages(tabId);
  const known = page.worlds.get(frame.loaderId);
  if (known) return known;
  page.worlds.clear();
  const { executionContextId } = await send(tabId, 'Page.createIsolatedWorld', { frameId: frame.id, worldName: 'operator' });
  page.worlds.set(frame.loaderId, executionContextId);
  return executionContextId;
}

const mostKept = 1000;

function note(page, method, params) {
  switch (method) {
    case 'Page.javascriptDialogOpening':
      page.dialog = { type: params.type, message: params.message, defaultPrompt: params.defaultPrompt ?? '', url: params.url };
      for (const wake of page.waiting) wake(page.dialog);
      break;
    case 'Page.javascriptDialogClosed':
      page.dialog = null;
      break;
    case 'Runtime.consoleAPICalled': {
      const text = params.args.map(a => ('value' in a ? (typeof a.value === 'string' ? a.value : JSON.stringify(a.value)) : a.unserializableValue ?? a.description ?? a.type)).join(' ');
      page.console.push({ level: params.type, text, url: params.stackTrace?.callFrames?.[0]?.url ?? '' });
      break;
    }
    case 'Runtime.exceptionThrown': {
      const d = params.exceptionDetails;
      page.console.push({ level: 'error', text: d.exception?.description ?? d.text, url: d.url ?? '', exception: true });
      break;
    }
    case 'Network.requestWillBeSent':
      page.requests.set(params.redirectResponse ? `${params.requestId}#${page.requests.size}` : params.requestId, { method: params.request.method, url: params.request.url, state: 'pending' });
      break;
    case 'Network.responseReceived':
      if (page.requests.has(params.requestId)) Object.assign(page.requests.get(params.requestId), { state: String(params.response.status), mime: params.response.mimeType });
      break;
    case 'Network.loadingFailed':
      if (page.requests.has(params.requestId)) page.requests.get(params.requestId).state = `failed: ${params.errorText}`;
      break;
  }
  if (page.console.length > mostKept) page.console.shift();
  if (page.requests.size > mostKept) page.requests.delete(page.requests.keys().next().value);
}

export function listen() {
  chrome.debugger.onEvent.addListener((source, method, params) => {
    const page = attached.get(source.tabId);
    if (!page) {
      void wakeUp(source, method, params);
      return;
    }
    if (!source.sessionId) note(page, method, params ?? {});
    if (page.relayed) tell('cdp', { tabId: source.tabId, sessionId: source.sessionId, method, params });
  });
  chrome.debugger.onDetach.addListener((source, reason) => {
    const page = attached.get(source.tabId);
    if (!page) return;
    for (const wake of page.waiting) wake(new Error('The debugger was detached from the tab.'));
    if (reason === 'canceled_by_user') void letGo(source.tabId, true);
    else void again(source.tabId, page);
  });
}

// again attaches to a tab that the browser let go of because it was on its way to an address that is not to be debugged, such
// as one that another program handles.
async function again(tabId, page) {
  for (let n = 0; n < 20 && attached.get(tabId) === page; n++) {
    if (!(await chrome.tabs.get(tabId).catch(() => null))) break;
    try {
      await chrome.debugger.attach({ tabId }, version);
      page.watching = null;
      page.worlds.clear();
      page.dialog = null;
      tell('tab.back', { tabId });
      return;
    } catch {
      await new Promise(done => setTimeout(done, 100));
    }
  }
  if (attached.get(tabId) === page) await letGo(tabId, true);
}

// wakeUp takes a tab up again after the worker was ended and begun anew.
async function wakeUp(source, method, params) {
  const { relayed = [] } = await chrome.storage.session.get('relayed');
  if (!relayed.includes(source.tabId)) return;
  const page = pages(source.tabId);
  page.attaching ??= Promise.resolve();
  page.relayed = true;
  if (!source.sessionId) note(page, method, params ?? {});
  tell('cdp', { tabId: source.tabId, sessionId: source.sessionId, method, params });
}

// The tab group that commands may work in. It is known by its id, never by its title, and a tab that leaves it is out at once.
import { brand } from './brand.js';
import { letGo, tell } from './debug.js';

// mine gives the group's id, or null when there is none any more.
export async function groupId() {
  const { group } = await chrome.storage.session.get('group');
  if (group === undefined) return null;
  try {
    await chrome.tabGroups.get(group);
    return group;
  } catch {
    await chrome.storage.session.remove('group');
    return null;
  }
}

export async function groupTabs() {
  const group = await groupId();
  const adopted = await adoptedTabs();
  const inGroup = group === null ? [] : await chrome.tabs.query({ groupId: group });
  const apart = await Promise.all([...adopted].map(id => chrome.tabs.get(id).catch(() => null)));
  return [...inGroup, ...apart.filter(tab => tab && tab.groupId !== group)];
}

// adoptedTabs are popups that our tabs opened as windows of their own, which cannot join a group.
async function adoptedTabs() {
  const { adopted = [] } = await chrome.storage.session.get('adopted');
  return new Set(adopted);
}

async function adopt(id) {
  const all = await adoptedTabs();
  all.add(id);
  await chrome.storage.session.set({ adopted: [...all] });
}

// checkTab gives a tab of the group, and refuses any other.
export async function checkTab(given) {
  const id = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
  if (!Number.isInteger(id)) throw new Error('tabId is required and must be a number.');
  const tab = await chrome.tabs.get(id).catch(() => null);
  const group = await groupId();
  members.delete(id);
  if (!tab || !(group !== null && tab.groupId === group) && !(await adoptedTabs()).has(id)) throw new Error(`Tab ${id} is not in the tab group.`);
  members.add(id);
  return tab;
}

// inGroup says, without asking the browser, that a tab was found to be in the group and has not left it since.
const members = new Set();
export function inGroup(id) { return members.has(id); }

// newTab opens a tab in the group, and makes the group, in a window of its own, where there is none. It takes no focus unless
// that is asked for.
let turn = Promise.resolve();
export function newTab(url = 'about:blank', active = false) {
  const made = turn.then(() => openTab(url, active));
  turn = made.catch(() => {});
  return made;
}

async function openTab(url, active) {
  const b = await brand();
  let group = await groupId();
  let tab;
  if (group === null) tab = (await chrome.windows.create({ url, focused: active })).tabs[0];
  else {
    // A tab that is not the front one of its window paints with little haste, so a new one comes to the front where nobody looks.
    const { id: windowId, focused } = await chrome.windows.get((await chrome.tabGroups.get(group)).windowId);
    tab = await chrome.tabs.create({ windowId, url, active: active || !focused });
  }
  const joined = await chrome.tabs.group(group === null ? { tabIds: tab.id, createProperties: { windowId: tab.windowId } } : { tabIds: tab.id, groupId: group });
  if (group === null) {
    group = joined;
    await chrome.storage.session.set({ group });
    await chrome.tabGroups.update(group, { title: b.group.title, color: b.group.color });
  }
  return chrome.tabs.get(tab.id);
}

// listen keeps the group: what its tabs open joins it, and what leaves it is let go of.
export function listen() {
  chrome.tabs.onCreated.addListener(tab => { if (tab.openerTabId !== undefined) void opened(tab.id, tab.openerTabId); });
  chrome.webNavigation.onCreatedNavigationTarget.addListener(({ tabId, sourceTabId }) => void opened(tabId, sourceTabId));
  chrome.tabs.onRemoved.addListener(id => { members.delete(id); void letGo(id, true); });
  chrome.tabs.onUpdated.addListener((id, change) => {
    if (change.groupId === undefined) return;
    members.delete(id);
    void (async () => {
      if (change.groupId !== await groupId() && !(await adoptedTabs()).has(id)) await letGo(id, false);
    })();
  });
}

// opened takes a tab in that one of ours opened. The browser may tell of it twice.
const taken = new Set();

async function opened(id, openerId) {
  if (taken.has(id)) return;
  const group = await groupId();
  const opener = await chrome.tabs.get(openerId).catch(() => null);
  if (group === null || !opener || opener.groupId !== group && !(await adoptedTabs()).has(opener.id) || taken.has(id)) return;
  taken.add(id);
  const tab = await chrome.tabs.get(id).catch(() => null);
  if (!tab) return;
  try {
    if (tab.groupId !== group) await chrome.tabs.group({ tabIds: id, groupId: group });
  } catch {
    await adopt(id);
  }
  tell('tab.opened', { tabId: id, openerTabId: opener.id, url: tab.pendingUrl || tab.url || '' });
}

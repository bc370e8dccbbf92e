// sessions.js keeps which tabs belong to which session. It is the border: every request names its session, and no request
// reaches a tab that is not the session's own.
import { Refusal } from './refusal.js';

const sessions = new Map(); // "client/session" → Session
const owners = new Map(); // tab id → Session
const shared = new Set(); // tabs that the person shared and no session has yet

class Session {
  constructor(client, id) { this.client = client; this.id = id; this.window = null; this.tabs = new Map(); this.acted = 0; this.urls = []; }
  // visit remembers an address that one of its tabs asked for, to know its downloads by.
  visit(url) { this.urls.push(url); if (this.urls.length > 500) this.urls.shift(); }
}

const key = (client, id) => `${client}/${id}`;

export const all = () => [...sessions.values()];
export const ownerOf = tab => owners.get(tab) ?? null;
export const sharedTabs = () => [...shared];

export function add(client, id) {
  if (sessions.has(key(client, id))) throw new Refusal('bad_request', `there is a session ${id} already`);
  const s = new Session(client, id);
  sessions.set(key(client, id), s);
  return s;
}

export function find(client, id) {
  const s = sessions.get(key(client, id));
  if (!s) throw new Refusal('no_session', `there is no session ${id}`);
  return s;
}

// tabOf refuses a tab that is not the session's.
export function tabOf(client, id, tab) {
  const s = find(client, id);
  if (!s.tabs.has(tab)) throw new Refusal('tab_gone', `the tab ${tab} is not one of this session`);
  s.acted = Date.now();
  return s;
}

export function take(s, tab, { found = false, opener = null } = {}) {
  if (owners.has(tab)) return false;
  s.tabs.set(tab, { found, opener });
  owners.set(tab, s);
  shared.delete(tab);
  return true;
}

export function drop(tab) {
  const s = owners.get(tab);
  owners.delete(tab);
  shared.delete(tab);
  s?.tabs.delete(tab);
  return s ?? null;
}

// share gives a tab of the person's to the session that acted last, or keeps it for the next one.
export function share(tab) {
  if (owners.has(tab)) return null;
  const s = all().sort((a, b) => b.acted - a.acted)[0] ?? null;
  if (s) take(s, tab, { found: true }); else shared.add(tab);
  return s;
}

// remove forgets a session and gives the tabs that it opened; shared ones are the person's again.
export function remove(s) {
  sessions.delete(key(s.client, s.id));
  const own = [];
  for (const [tab, { found }] of s.tabs) {
    owners.delete(tab);
    if (!found) own.push(tab);
  }
  s.tabs.clear();
  return own;
}

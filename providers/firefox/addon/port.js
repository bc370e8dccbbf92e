// port.js is the connection to the native host: it starts the host, puts pieces together, and starts it again, ever more
// rarely, when it ends.

const APP = 'drover_firefox';
const FIRST = 500, LAST = 30_000; // milliseconds between two starts
const LARGEST = 256 * 1024 * 1024; // characters of one message in pieces

export class HostPort {
  #port = null; #delay = FIRST; #timer = 0; #transfers = new Map(); #hello; #take; #change;
  connected = false; // the host answered
  problem = '';

  // hello gives what the add-on says of itself; take gets every message; change is called when the connection comes or goes.
  constructor({ hello, take, change }) { this.#hello = hello; this.#take = take; this.#change = change; }

  start() {
    clearTimeout(this.#timer);
    if (this.#port) return;
    const port = browser.runtime.connectNative(APP);
    this.#port = port;
    port.onMessage.addListener(m => this.#receive(m));
    port.onDisconnect.addListener(p => this.#ended(port, p.error?.message ?? ''));
    this.#hello().then(params => {
      if (this.#port !== port) return;
      port.postMessage({ type: 'hello', params });
      this.#watch(port);
    });
  }

  // #watch takes a host that still runs a moment later for connected: Firefox tells at once of one that is missing.
  #watch(port) {
    setTimeout(() => {
      if (this.#port !== port) return;
      this.connected = true;
      this.problem = '';
      this.#delay = FIRST;
      this.#change();
    }, 300);
  }

  #ended(port, why) {
    if (this.#port !== port) return;
    this.#port = null;
    this.#transfers.clear();
    this.connected = false;
    this.problem = why || 'the native host ended';
    this.#timer = setTimeout(() => this.start(), this.#delay);
    this.#delay = Math.min(this.#delay * 2, LAST);
    this.#change();
  }

  // retry starts the host now, as when a person opens the popup.
  retry() { if (!this.#port) { this.#delay = FIRST; this.start(); } }

  send(message) { try { this.#port?.postMessage(message); } catch { /* the port is just closing; its end is told apart */ } }

  #receive(m) {
    if (m?.type !== 'piece') return this.#take(m);
    const { transfer, index, total, data } = m;
    let t = this.#transfers.get(transfer);
    if (!t) this.#transfers.set(transfer, t = { parts: [], size: 0 });
    t.size += data.length;
    if (index !== t.parts.length || t.size > LARGEST) { this.#transfers.delete(transfer); return; }
    t.parts.push(data);
    if (t.parts.length < total) return;
    this.#transfers.delete(transfer);
    this.#take(JSON.parse(t.parts.join('')));
  }
}

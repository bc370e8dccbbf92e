// The link to the backend: one of two transports, kept up with growing pauses, and an outbox whose messages stay until they
// are known to have arrived, also while the link is down and when the worker is killed meanwhile.
import { checkConfig, endpoint, loadConfig, saveConfig } from './config.js';

const firstPause = 250;
const longestPause = 8_000;
const mostKept = 2000;
const mostBatch = 200;

export class Link {
  constructor({ onCommand, onState }) {
    this.onCommand = onCommand;
    this.onState = onState;
    this.life = crypto.randomUUID();
    this.seq = 0;
    this.outbox = []; // {seq, message, sent}
    this.running = new Set(); // ids of commands under way
    this.done = new Set(); // ids that were taken, so that none is carried out twice
    this.peerAcks = false; // the backend acknowledges, and takes additions
    this.state = { phase: 'off', text: 'Not connected' };
    this.pause = firstPause;
    this.wanted = false;
    this.run = 0; // grows whenever the link begins or ends; what an older run does late is ignored
  }

  set(phase, text, extra = {}) {
    this.state = { phase, text, ...extra };
    this.onState(this.state);
  }

  // start connects when the person wants it; it may be called any number of times.
  async start() {
    const config = await loadConfig();
    if (!config.enabled || !config.token) {
      if (!this.wanted && this.state.phase !== 'refused') this.set('off', config.token ? 'Disconnected' : 'Not set up');
      return;
    }
    if (this.wanted) return;
    const { wrong, config: clean } = checkConfig(config);
    if (wrong) {
      this.set('refused', wrong);
      return;
    }
    this.wanted = true;
    this.pause = firstPause;
    await this.recall();
    this.connect(clean);
  }

  // stop ends the link until it is started again.
  stop(phase = 'off', text = 'Disconnected') {
    this.wanted = false;
    this.run++;
    clearTimeout(this.timer);
    this.close?.();
    this.close = null;
    this.peerAcks = false;
    this.set(phase, text);
  }

  // refuse drops a token that the backend does not take any more.
  async refuse(text) {
    this.stop('refused', text);
    await saveConfig({ token: '', enabled: false });
  }

  connect(config) {
    const run = ++this.run;
    const current = () => run === this.run;
    this.set('connecting', 'Connecting…');
    const ended = text => {
      if (!current()) return;
      this.close = null;
      this.open = false;
      void this.remember();
      const wait = Math.round(this.pause * (0.5 + Math.random()));
      this.pause = Math.min(this.pause * 2, longestPause);
      this.set('waiting', `${text} Trying again.`, { until: Date.now() + wait });
      const next = ++this.run;
      this.timer = setTimeout(() => { if (next === this.run) this.connect(config); }, wait);
    };
    const up = () => {
      if (!current() || this.open) return;
      this.open = true;
      this.pause = firstPause;
      this.set('connected', 'Connected');
      for (const entry of this.outbox) entry.sent = false;
      this.flush();
    };
    this.open = false;
    if (config.transport === 'websocket') this.connectSocket(config, current, up, ended);
    else void this.connectStream(config, current, up, ended);
  }

  pending() { return [...this.running, ...this.outbox.filter(e => e.message.type === 'result').map(e => e.message.commandId)]; }

  connectSocket(config, current, up, ended) {
    let socket;
    try {
      socket = new WebSocket(config.serverUrl);
    } catch {
      void this.refuse('The server address cannot be used.');
      return;
    }
    let assume;
    socket.onopen = () => {
      if (!current()) return socket.close();
      const hello = { type: 'auth', token: config.token, life: this.life, pending: this.pending() };
      if (config.target) hello.target = config.target;
      socket.send(JSON.stringify(hello));
      assume = setTimeout(up, 3000); // the acknowledgement is optional
    };
    socket.onmessage = event => {
      if (!current() || typeof event.data !== 'string') return;
      let frame;
      try { frame = JSON.parse(event.data); } catch { return; }
      if (frame?.type === 'auth_ok') up();
      else if (frame?.type === 'ack') this.acknowledge(frame.seq);
      else if (frame?.type === 'error') this.set(this.state.phase, String(frame.message ?? 'The server reports an error.').slice(0, 200));
      else if (frame?.type === 'command') { up(); this.take(frame); }
    };
    socket.onclose = event => {
      clearTimeout(assume);
      if (!current()) return;
      if (event.code === 4001) void this.refuse('The server refused the token. Pair again to connect.');
      else ended('The connection was lost.');
    };
    this.close = () => socket.close(1000);
    this.transmit = entries => {
      for (const entry of entries) {
        socket.send(JSON.stringify({ ...entry.message, life: this.life, seq: entry.seq }));
        entry.sent = true;
      }
      if (!this.peerAcks) this.outbox = this.outbox.filter(entry => !entry.sent);
    };
  }

  async connectStream(config, current, up, ended) {
    const abort = new AbortController();
    this.close = () => abort.abort();
    this.transmit = () => this.post(config, current);
    try {
      const pending = this.pending().join(',');
      const answer = await fetch(endpoint(config, config.commandPath), {
        headers: { Authorization: `Bearer ${config.token}`, Accept: 'text/event-stream', 'X-Operator-Life': this.life, ...(pending ? { 'X-Operator-Pending': pending } : {}) },
        cache: 'no-store', credentials: 'omit', signal: abort.signal,
      });
      if (!current()) return;
      if (answer.status === 401) return void this.refuse('The server refused the token. Pair again to connect.');
      if (!answer.ok || !answer.body) return ended(`The server answered ${answer.status}.`);
      up();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      let name = '';
      let data = [];
      for (;;) {
        const { value, done } = await reader.read();
        if (!current()) return;
        if (done) return ended('The server ended the stream.');
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const raw of lines) {
          const line = raw.replace(/\r$/, '');
          const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
          if (line === '') {
            if (name === 'disconnect') return void this.refuse('The server ended the connection. Pair again to connect.');
            if (data.length) this.takeText(data.join('\n'));
            name = '';
            data = [];
          } else if (field === 'event') name = text;
          else if (field === 'data') data.push(text);
        }
      }
    } catch {
      if (current()) ended('The server cannot be reached.');
    }
  }

  // post sends what waits, one request at a time and in order; what was not taken is sent again.
  async post(config, current) {
    if (this.posting) return;
    this.posting = true;
    let pause = firstPause;
    while (current() && this.outbox.length) {
      const batch = this.outbox.slice(0, this.peerAcks ? mostBatch : 1);
      const full = e => ({ ...e.message, life: this.life, seq: e.seq });
      const { type, ...bare } = batch[0].message;
      const body = this.peerAcks ? { messages: batch.map(full) } : bare;
      try {
        const answer = await fetch(endpoint(config, config.resultPath), {
          method: 'POST', headers: { Authorization: `Bearer ${config.token}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body), cache: 'no-store', credentials: 'omit',
        });
        if (answer.status === 401) {
          if (current()) await this.refuse('The server refused the token. Pair again to connect.');
          break;
        }
        if (answer.ok || (answer.status >= 400 && answer.status < 500)) {
          this.acknowledge(batch.at(-1).seq);
          pause = firstPause;
          continue;
        }
      } catch {
        // It is sent again.
      }
      await new Promise(done => setTimeout(done, pause * (0.5 + Math.random())));
      pause = Math.min(pause * 2, longestPause);
    }
    this.posting = false;
    if (current() && this.outbox.length) this.flush();
  }

  takeText(text) {
    try { this.take(JSON.parse(text)); } catch { /* no command */ }
  }

  // take begins a command, once.
  take(command) {
    const { id, tool, args } = command ?? {};
    if ((typeof id !== 'string' && typeof id !== 'number') || id === '' || typeof tool !== 'string' || !tool) return;
    if (this.done.has(id)) return;
    this.done.add(id);
    if (this.done.size > mostKept) this.done.delete(this.done.values().next().value);
    if (tool === 'capabilities') this.peerAcks = true;
    this.running.add(id);
    void this.onCommand(tool, args && typeof args === 'object' ? args : {}).then(
      result => this.say({ type: 'result', commandId: id, result }),
      error => this.say({ type: 'result', commandId: id, error: String(error?.message ?? error) }),
    ).finally(() => this.running.delete(id));
  }

  // event tells the backend something that it did not ask for, where it takes such.
  event(name, payload) {
    if (this.peerAcks) this.say({ type: 'event', event: name, payload });
  }

  say(message) {
    this.running.delete(message.commandId);
    this.outbox.push({ seq: ++this.seq, message, sent: false });
    if (this.outbox.length > mostKept) {
      const i = this.outbox.findIndex(entry => entry.message.type === 'event');
      this.outbox.splice(Math.max(i, 0), 1); // events go before results
    }
    if (this.open) this.flush();
    else void this.remember();
  }

  flush() {
    const fresh = this.outbox.filter(entry => !entry.sent);
    if (this.open && fresh.length) this.transmit(fresh);
  }

  acknowledge(seq) {
    const before = this.outbox.length;
    this.outbox = this.outbox.filter(entry => entry.seq > seq);
    if (before && !this.outbox.length && this.kept) void this.remember();
  }

  // remember keeps results for the next life of this worker; recall takes them over.
  async remember() {
    const results = this.outbox.filter(entry => entry.message.type === 'result').map(entry => entry.message);
    this.kept = results.length > 0;
    try { await chrome.storage.session.set({ results }); } catch { /* more than it holds */ }
  }

  async recall() {
    if (this.recalled) return;
    this.recalled = true;
    const { results } = await chrome.storage.session.get('results');
    for (const message of results ?? []) {
      this.done.add(message.commandId);
      this.outbox.push({ seq: ++this.seq, message, sent: false });
    }
  }
}

// The connection's configuration lies in storage.local, which never leaves this machine. An offer waits in storage.session.
const defaults = { transport: 'websocket', serverUrl: '', token: '', commandPath: '/browser/events', resultPath: '/browser/result', target: '', enabled: false, origin: '', brand: '' };

export async function loadConfig() {
  const { connection } = await chrome.storage.local.get('connection');
  return { ...defaults, ...connection };
}

export async function saveConfig(change) {
  const connection = { ...(await loadConfig()), ...change };
  await chrome.storage.local.set({ connection });
  return connection;
}

// checkConfig gives a clean config, or says what is wrong with it.
export function checkConfig(given) {
  if (given === null || typeof given !== 'object') return { wrong: 'The connection is missing.' };
  const text = name => (typeof given[name] === 'string' ? given[name].trim() : '');
  const config = { transport: text('transport'), serverUrl: text('serverUrl'), token: text('token'), commandPath: text('commandPath') || defaults.commandPath, resultPath: text('resultPath') || defaults.resultPath, target: text('target') };
  if (Object.values(config).some(value => value.length > 4096)) return { wrong: 'A value is longer than 4096 characters.' };
  if (config.transport !== 'websocket' && config.transport !== 'sse-http') return { wrong: 'Choose a transport.', field: 'transport' };
  let url;
  try {
    url = new URL(config.serverUrl);
  } catch {
    return { wrong: 'The server address is not a URL.', field: 'serverUrl' };
  }
  const schemes = config.transport === 'websocket' ? ['ws:', 'wss:'] : ['http:', 'https:'];
  if (!schemes.includes(url.protocol)) return { wrong: `The server address must begin with ${schemes[0]}// or ${schemes[1]}//.`, field: 'serverUrl' };
  const local = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);
  if (!local && (url.protocol === 'ws:' || url.protocol === 'http:')) return { wrong: 'A server on another machine needs wss:// or https://, or the token would be readable on the way.', field: 'serverUrl' };
  if (url.username || url.password) return { wrong: 'The server address must not hold a password.', field: 'serverUrl' };
  if (!config.token) return { wrong: 'The token is missing.', field: 'token' };
  for (const name of ['commandPath', 'resultPath']) if (!config[name].startsWith('/')) return { wrong: 'A path begins with /.', field: name };
  return { config };
}

// endpoint gives the address of a path, with the target in it and without a doubled slash.
export function endpoint(config, path) {
  return config.serverUrl.replace(/\/+$/, '') + path.replaceAll('{target}', encodeURIComponent(config.target || ''));
}

export async function parkOffer(offer) { await chrome.storage.session.set({ offer }); }
export async function loadOffer() { return (await chrome.storage.session.get('offer')).offer ?? null; }
export async function dropOffer() { await chrome.storage.session.remove('offer'); }

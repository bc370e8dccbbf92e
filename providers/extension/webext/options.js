// The options page: the connection by hand.
import { paint } from './lib/brand.js';
import { loadConfig } from './lib/config.js';

const el = id => document.getElementById(id);
const fields = ['transport', 'serverUrl', 'token', 'target', 'commandPath', 'resultPath'];

async function fill() {
  const config = await loadConfig();
  for (const name of fields) el(name).value = name === 'token' ? '' : config[name] ?? '';
  el('tokenNote').textContent = config.token ? 'A token is stored. Leave this empty to keep it.' : '';
  layout();
}

function layout() {
  for (const label of document.querySelectorAll('.sse')) label.hidden = el('transport').value !== 'sse-http';
}

function tell(text, field) {
  el('msg').textContent = text;
  el('msg').classList.toggle('wrong', Boolean(field));
  for (const name of fields) el(name).toggleAttribute('aria-invalid', false);
  if (field && el(field)) {
    el(field).setAttribute('aria-invalid', 'true');
    el(field).focus();
  }
}

el('transport').addEventListener('change', layout);
el('form').addEventListener('submit', async event => {
  event.preventDefault();
  const config = Object.fromEntries(fields.map(name => [name, el(name).value]));
  config.token ||= (await loadConfig()).token;
  const answer = await chrome.runtime.sendMessage({ type: 'saveConfig', config });
  if (!answer.ok) return tell(answer.error, answer.field ?? 'serverUrl');
  await fill();
  tell('Saved.');
});
el('resetBtn').addEventListener('click', async () => {
  await chrome.runtime.sendMessage({ type: 'reset' });
  await fill();
  tell('Forgotten.');
});

await paint(document);
await fill();

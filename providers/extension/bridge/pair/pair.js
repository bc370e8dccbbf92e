// The pairing page. It finds the extension by ping and pong, offers it a connection when a person asks for that, and tells
// how that goes. The offer's token stays in a variable of this script: it is in no address, no history and no storage.
const key = '__browserOperator';
const nonce = Array.from(crypto.getRandomValues(new Uint8Array(12)), b => b.toString(16).padStart(2, '0')).join('');
const line = document.getElementById('state');
const button = document.getElementById('connect');
const missing = document.getElementById('missing');
const begun = Date.now();

let product = '';
let target = '';
let offered = 0;

function tell(state, text) {
  if (line.dataset.state === state && line.textContent === text) return;
  line.dataset.state = state;
  line.textContent = text;
  document.getElementById('step-installed').classList.toggle('done', product !== '');
  document.getElementById('step-offered').classList.toggle('done', state === 'offered' || state === 'connected');
  document.getElementById('step-connected').classList.toggle('done', state === 'connected');
  missing.hidden = state !== 'missing';
}

async function ask(path, body) {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), cache: 'no-store' });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `HTTP ${answer.status}`);
  return answer.json();
}

window.addEventListener('message', event => {
  if (event.source !== window || event.origin !== window.origin || event.data?.[key] !== 'pong' || event.data.nonce !== nonce) return;
  if (product) return;
  product = String(event.data.productName || 'The extension').slice(0, 80);
  button.disabled = false;
  tell('installed', `${product} ${String(event.data.version || '').slice(0, 20)} is installed.`);
});

// The extension listens only once its script runs here, so the ping is sent until it is answered.
function ping() {
  if (product) return;
  window.postMessage({ [key]: 'ping', nonce }, window.origin);
  if (Date.now() - begun > 2000) tell('missing', 'The extension is not installed in this browser, or is switched off.');
  setTimeout(ping, 300);
}

button.addEventListener('click', async () => {
  button.disabled = true;
  try {
    const transport = document.querySelector('input[name="transport"]:checked').value;
    const offer = await ask('/pair/offer', { transport });
    target = offer.config.target;
    offered = Date.now();
    window.postMessage({ [key]: 'pair-offer', config: offer.config, brand: offer.brand }, window.origin);
    tell('offered', `Offered. Open ${product} in the toolbar and press Connect there.`);
    watch(target);
  } catch (error) {
    tell('failed', `The offer could not be made: ${error.message}`);
  }
  button.disabled = false;
});

async function watch(mine) {
  while (mine === target && Date.now() - offered < 600_000) {
    try {
      const now = await ask('/pair/state', { target: mine });
      if (mine !== target) return;
      if (now.connected) {
        tell('connected', `Connected${now.browser ? ` (${now.browser})` : ''}. You can close this page.`);
        button.textContent = 'Connect again';
      } else if (line.dataset.state === 'connected') {
        tell('offered', 'The browser was disconnected.');
      }
    } catch {
      // The listener is changing hands; it is asked again.
    }
    await new Promise(done => setTimeout(done, 500));
  }
  if (mine === target && line.dataset.state === 'offered') tell('installed', 'The offer has expired. Press Connect for another.');
}

ping();

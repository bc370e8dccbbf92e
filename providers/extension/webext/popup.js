// The popup: what the link is doing, in words that are true, and a pairing offer that waits for a person's yes.
import { paint } from './lib/brand.js';

const el = id => document.getElementById(id);
const ask = type => chrome.runtime.sendMessage({ type });

function render(s) {
  el('statusCard').dataset.phase = s.phase;
  el('statusLabel').textContent = s.phase === 'waiting' ? 'Not connected, trying again' : s.text.replace(/\. .*$/s, '') || 'Not connected';
  const detail = s.phase === 'waiting' || s.phase === 'refused' ? s.text : '';
  el('errorMsg').textContent = detail === el('statusLabel').textContent ? '' : detail;
  const peer = [s.label, s.label === s.host ? '' : s.host].filter(Boolean).join(' · ');
  el('peer').hidden = !peer;
  el('peer').textContent = peer;
  const on = ['connected', 'connecting', 'waiting'].includes(s.phase);
  el('disconnectBtn').hidden = !on;
  el('connectBtn').hidden = on || !s.paired;
  const offer = s.offer;
  el('pairCard').hidden = !offer;
  if (offer) {
    el('pairText').textContent = `${offer.brand || 'A page'} wants to connect this browser${s.paired ? ', in place of the present connection' : ''}. Commands will come from ${offer.host}.`;
    el('pairOrigin').textContent = `Asked by ${offer.origin}`;
  }
}

async function refresh() { render(await ask('getStatus')); }

for (const [id, type] of Object.entries({ connectBtn: 'connect', disconnectBtn: 'disconnect', pairAcceptBtn: 'acceptPairOffer', pairDismissBtn: 'dismissPairOffer' })) {
  el(id).addEventListener('click', async () => {
    const answer = await ask(type);
    await refresh();
    if (answer && !answer.ok) el('errorMsg').textContent = answer.error;
  });
}

chrome.runtime.onMessage.addListener(message => { if (message?.type === 'statusUpdate') render(message); });
await paint(document);
await refresh();
document.querySelector('button:not([hidden])')?.focus({ preventScroll: true });

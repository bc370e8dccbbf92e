// Runs in the top frame of web pages. It answers a page's ping, so that the page can tell that the extension is there, and
// hands a pairing offer to the worker, which parks it until a person approves it in the popup. A page learns nothing else.
(() => {
  const key = '__browserOperator';
  addEventListener('message', event => {
    if (event.source !== window || event.origin !== location.origin || window !== top) return;
    const said = event.data;
    if (said === null || typeof said !== 'object') return;
    if (said[key] === 'ping') {
      const manifest = chrome.runtime.getManifest();
      const nonce = typeof said.nonce === 'string' && said.nonce ? said.nonce.slice(0, 256) : null;
      window.postMessage({ [key]: 'pong', nonce, version: manifest.version, productName: manifest.name }, location.origin);
    } else if (said[key] === 'pair-offer') {
      chrome.runtime.sendMessage({ type: 'pairOffer', config: said.config, brand: said.brand }).catch(() => {});
    }
  });
})();

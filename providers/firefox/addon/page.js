// page.js is what can be asked of a document: the engine, input, scripts, storage, files. The functions given to inside and run
// are sent to the document as text, so they use nothing from around them.
import { inside, run } from './documents.js';
import { Refusal } from './refusal.js';

const engine = (version, op, args, doc) => {
  if (globalThis.__drover?.version !== version) {
    if (!globalThis.__droverEngine) return { missing: true };
    globalThis.__droverEngine(version);
  }
  return __drover.call(op, args, doc);
};
const hand = (name, args) => globalThis.__droverHands ? __droverHands[name](...args) : { missing: true };

// evaluate runs in the page's own world and writes the value as JSON.
const evaluate = (text, args, wait) => {
  const encode = value => {
    const type = value === null ? 'null' : typeof value;
    const odd = words => JSON.stringify({ type, odd: words });
    if (type === 'undefined') return odd('undefined');
    if (type === 'bigint') return odd(`${value}n`);
    if (type === 'symbol' || type === 'function') return odd(String(value));
    if (type === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) return odd(Object.is(value, -0) ? '-0' : String(value));
    try {
      const json = JSON.stringify(value);
      return json === undefined ? odd(String(value)) : `{"type":${JSON.stringify(type)},"value":${json}}`;
    } catch (e) { return odd(`${Object.prototype.toString.call(value)} (${e?.message ?? e})`); }
  };
  const threw = e => {
    const error = e instanceof Error;
    return JSON.stringify({
      threw: error ? `${e.name}: ${e.message}` : String(e), stack: error ? String(e.stack ?? '') : '',
      csp: error && e.name === 'EvalError' && /CSP/.test(e.message),
    });
  };
  try {
    let value = (0, eval)(text);
    if (typeof value === 'function') value = value(...args);
    if (wait && typeof value?.then === 'function') return Promise.resolve(value).then(encode, threw);
    return encode(value);
  } catch (e) { return threw(e); }
};

const store = ({ area, put, drop, all, keys }) => {
  try {
    const items = area === 'session' ? sessionStorage : localStorage;
    for (const [k, v] of Object.entries(put ?? {})) items.setItem(k, v);
    if (all) items.clear();
    for (const k of drop ?? []) items.removeItem(k);
    const out = [];
    for (const k of keys?.length ? keys : Object.keys(items)) { const v = items.getItem(k); if (v !== null) out.push([k, v]); }
    return { items: out };
  } catch (e) { return { error: String(e?.name), message: String(e?.message) }; }
};
const state = () => ({
  url: location.href, title: document.title, ready: document.readyState, width: innerWidth, height: innerHeight, x: scrollX, y: scrollY,
  status: performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0, page_width: Math.max(document.documentElement?.scrollWidth ?? 0, innerWidth),
  page_height: Math.max(document.documentElement?.scrollHeight ?? 0, document.body?.scrollHeight ?? 0, innerHeight),
});

const reply = async promise => { const { document, result } = await promise; return { document, value: result }; };

export const methods = {
  'doc.call': p => reply(inside(p.tab, p.frame, p.document, engine, [p.version, p.op, p.args ?? null, p.doc])),
  'doc.hand': p => reply(inside(p.tab, p.frame, p.document, hand, [p.name, p.args ?? []])),
  'doc.eval': p => reply(run(p.tab, p.frame, p.document, 'MAIN', evaluate, [p.expression, p.args ?? [], p.wait !== false])),
  'doc.storage': p => reply(run(p.tab, p.frame, p.document, 'ISOLATED', store, [{ area: p.area, put: p.put, drop: p.drop, all: p.all, keys: p.keys }])),
  'doc.state': p => reply(run(p.tab, p.frame ?? 0, undefined, 'ISOLATED', state, [])),
  async 'shot'(p) {
    const options = { format: p.format, scale: p.scale };
    if (p.quality) options.quality = p.quality;
    if (p.rect) options.rect = p.rect;
    try { return { data: await browser.tabs.captureTab(p.tab, options) }; } catch (e) {
      throw new Refusal('failed', String(e?.message ?? e));
    }
  },
};

// What runs in the isolated world of a page for read_page, find, form_input and the like. install is sent as source text, so
// it refers to nothing outside itself. Refs are numbered through all documents, so that an old one never means a new element.
export function install(first) {
  if (globalThis.__operator) return;
  let last = first;
  const refs = new Map();
  const names = new WeakMap();
  const interactive = 'a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=menuitem],[role=checkbox],[role=radio],[role=switch],[role=option],[role=combobox],[role=textbox],[contenteditable=""],[contenteditable=true],[onclick],[tabindex]';
  const tagRoles = { A: 'link', BUTTON: 'button', SELECT: 'combobox', TEXTAREA: 'textbox', IMG: 'image', NAV: 'navigation', MAIN: 'main', HEADER: 'banner', FOOTER: 'contentinfo', ASIDE: 'complementary', FORM: 'form', UL: 'list', OL: 'list', LI: 'listitem', TABLE: 'table', TR: 'row', TD: 'cell', TH: 'columnheader', P: 'paragraph', DIALOG: 'dialog', SUMMARY: 'button', IFRAME: 'iframe', LABEL: 'label', ARTICLE: 'article', SECTION: 'section' };
  const inputRoles = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox', file: 'file' };
  const clean = (text, most) => String(text ?? '').replace(/\s+/g, ' ').trim().slice(0, most);
  const q = text => JSON.stringify(clean(text, 100));
  const refOf = el => {
    let ref = names.get(el);
    if (!ref) {
      ref = `ref_${++last}`;
      names.set(el, ref);
      refs.set(ref, new WeakRef(el));
    }
    return ref;
  };
  const byRef = ref => {
    const el = refs.get(ref)?.deref();
    return el?.isConnected ? el : null;
  };
  const role = el => el.getAttribute('role') || (el.tagName === 'INPUT' ? inputRoles[el.type] ?? 'textbox' : /^H[1-6]$/.test(el.tagName) ? 'heading' : el.isContentEditable && !el.parentElement?.isContentEditable ? 'textbox' : tagRoles[el.tagName] ?? '');
  const secret = el => el.tagName === 'INPUT' && el.type === 'password';
  const name = el => {
    const by = (el.getAttribute('aria-labelledby') ?? '').split(/\s+/).map(id => id && el.ownerDocument.getElementById(id)?.textContent).filter(Boolean).join(' ');
    const label = el.labels?.length ? [...el.labels].map(l => l.textContent).join(' ') : '';
    const inner = /^(link|button|heading|tab|menuitem|option|cell|columnheader|listitem|paragraph|label|checkbox|radio|switch)$/.test(role(el)) && el.tagName !== 'INPUT' ? el.innerText ?? el.textContent : '';
    const button = el.tagName === 'INPUT' && /^(button|submit|reset)$/.test(el.type) ? el.value || el.type : '';
    return clean(by || el.getAttribute('aria-label') || label || el.getAttribute('alt') || button || inner || el.getAttribute('placeholder') || el.getAttribute('title'), 100);
  };
  const shown = el => {
    if (!el.checkVisibility?.({ visibilityProperty: true })) return false;
    return el.getAttribute('aria-hidden') !== 'true';
  };
  const line = el => {
    const parts = [role(el) || el.tagName.toLowerCase()];
    const n = name(el);
    if (n) parts.push(q(n));
    parts.push(`[${refOf(el)}]`);
    if (el.href && el.tagName === 'A') parts.push(`href=${q(el.href)}`);
    if (el.tagName === 'INPUT' || el.tagName === 'TEXTAREA') {
      if (!secret(el) && !/^(checkbox|radio|file)$/.test(el.type) && el.value) parts.push(`value=${q(el.value)}`);
      if (el.type) parts.push(`type=${q(el.type)}`);
      if (/^(checkbox|radio)$/.test(el.type)) parts.push(`checked=${el.checked}`);
    }
    for (const state of ['expanded', 'checked', 'selected', 'pressed']) if (el.hasAttribute(`aria-${state}`)) parts.push(`${state}=${el.getAttribute(`aria-${state}`)}`);
    if (el.matches(':disabled') || el.getAttribute('aria-disabled') === 'true') parts.push('disabled');
    if (el.tagName === 'SELECT') parts.push(`options=[ ${[...el.options].slice(0, 50).map(o => `${o.selected ? '*' : ''}${o.value}=${q(o.text)}`).join(', ')} ]`);
    return parts.join(' ');
  };
  const children = el => [...(el.shadowRoot ?? el).children].flatMap(c => (c.tagName === 'SLOT' ? c.assignedElements() : [c]));
  function read({ filter = 'all', depth = 50, max_chars = 50000, ref_id }) {
    const root = ref_id ? byRef(ref_id) : document.body ?? document.documentElement;
    if (!root) throw new Error(`ref_id "${ref_id}" is not on the page any more.`);
    if (!['all', 'interactive', ''].includes(filter ?? '')) throw new Error('filter is all or interactive.');
    const out = [];
    let size = 0;
    let cut = false;
    const walk = (el, level, deep) => {
      if (cut || !shown(el)) return;
      const own = [...el.childNodes].filter(c => c.nodeType === 3).map(c => c.data).join(' ');
      const shows = filter === 'interactive' ? el.matches(interactive) : role(el) || el.matches(interactive) || clean(own, 1);
      if (shows) {
        const named = line(el);
        const said = filter !== 'interactive' && !name(el) && clean(own, 200) && !secret(el) && el.tagName !== 'TEXTAREA' ? `: ${clean(own, 200)}` : '';
        const text = '  '.repeat(level) + named + said;
        size += text.length + 1;
        if (size > max_chars) { cut = true; return; }
        out.push(text);
      }
      if (deep <= 0) { if (children(el).length) out.push(`${'  '.repeat(level + 1)}… (deeper than depth)`); return; }
      for (const c of children(el)) walk(c, level + (shows && filter !== 'interactive' ? 1 : 0), deep - 1);
    };
    walk(root, 0, depth);
    return `${out.join('\n')}${cut ? '\n... (truncated)' : ''}\n\nViewport: ${innerWidth}x${innerHeight}`;
  }
  const all = function* all(root = document.body) {
    if (!root) return;
    for (const el of root.querySelectorAll('*')) {
      yield el;
      if (el.shadowRoot) yield* all(el.shadowRoot);
    }
  };
  function find({ query }) {
    const want = clean(query, 200).toLowerCase();
    if (!want) throw new Error('query is empty.');
    const hits = [];
    for (const el of all()) {
      if (!shown(el)) continue;
      const text = clean(el.children.length ? '' : el.textContent, 200);
      const words = [name(el), text, role(el), el.getAttribute('placeholder'), el.getAttribute('title')].join(' ').toLowerCase();
      if (!words.includes(want)) continue;
      const exact = name(el).toLowerCase() === want || text.toLowerCase() === want;
      hits.push({ el, rank: (exact ? 0 : 2) + (el.matches(interactive) ? 0 : 1) });
    }
    hits.sort((a, b) => a.rank - b.rank);
    const tight = hits.filter(h => !hits.some(o => o !== h && o.rank <= h.rank && h.el.contains(o.el))).slice(0, 20);
    if (!tight.length) return `No elements found matching ${q(query)}`;
    return `Found ${tight.length} element(s) matching ${q(query)}:\n\n${tight.map(({ el }) => {
      const r = el.getBoundingClientRect();
      return `[${refOf(el)}] ${role(el) || el.tagName.toLowerCase()} ${q(name(el) || el.textContent)} at (${Math.round(r.x + r.width / 2)}, ${Math.round(r.y + r.height / 2)})`;
    }).join('\n')}`;
  }
  function text() {
    const root = document.querySelector('article, main, [role=main]') ?? document.body;
    return `Title: ${document.title}\nURL: ${location.href}\nSource: <${root?.tagName.toLowerCase() ?? 'none'}>\n\n${(root?.innerText ?? '').slice(0, 100000)}`;
  }
  const must = ref => {
    const el = byRef(ref);
    if (!el) throw new Error(`Element ${ref} is not on the page any more. Read the page again.`);
    return el;
  };
  function fill({ ref, value }) {
    const el = must(ref);
    if (el.matches(':disabled')) throw new Error(`Element ${ref} is disabled.`);
    const fire = (...kinds) => kinds.forEach(kind => el.dispatchEvent(new Event(kind, { bubbles: true, composed: true })));
    if (el.tagName === 'SELECT') {
      const o = [...el.options].find(o => o.value === String(value)) ?? [...el.options].find(o => clean(o.text, 1e3) === clean(value, 1e3));
      if (!o) throw new Error(`The list ${ref} has no option ${q(value)}.`);
      if (o.disabled) throw new Error(`The option ${q(value)} is disabled.`);
      el.value = o.value;
      fire('input', 'change');
      return { success: true, value: el.value };
    }
    if (el.tagName === 'INPUT' && /^(checkbox|radio)$/.test(el.type)) {
      const on = [true, 'true', 'on', 'yes', 1, '1'].includes(value);
      if (el.type === 'radio' && !on) throw new Error('A radio button is switched off by choosing another one.');
      if (el.checked !== on) el.click();
      if (el.checked !== on) throw new Error('The page did not take the change.');
      return { success: true, checked: el.checked };
    }
    if (el.tagName === 'INPUT' && el.type === 'file') throw new Error('A file input takes files by upload_image.');
    if (el.tagName === 'INPUT' || el.tagName === 'TEXTAREA') {
      if (/^(button|submit|reset|image)$/.test(el.type)) throw new Error(`Element ${ref} is a button.`);
      if (el.readOnly) throw new Error(`Element ${ref} is read-only.`);
      const proto = el.tagName === 'INPUT' ? HTMLInputElement.prototype : HTMLTextAreaElement.prototype;
      Object.getOwnPropertyDescriptor(proto, 'value').set.call(el, String(value));
      fire('input', 'change');
      return secret(el) ? { success: true } : { success: true, value: el.value };
    }
    if (el.isContentEditable) {
      el.textContent = String(value);
      fire('input');
      return { success: true, value: el.textContent };
    }
    throw new Error(`Element ${ref} takes no value.`);
  }
  // aim scrolls to an element and gives a point where a click reaches it, or says why none does.
  async function aim({ ref, force }) {
    const el = must(ref);
    el.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const until = Date.now() + 1500;
    let before = null;
    let why = 'is moving';
    while (Date.now() < until) {
      if (!el.isConnected) throw new Error(`Element ${ref} left the page.`);
      const r = el.getBoundingClientRect();
      const still = before && ['x', 'y', 'width', 'height'].every(k => Math.abs(before[k] - r[k]) < 1);
      before = r;
      if (still || force) {
        if (!r.width || !r.height) why = 'has no size';
        else if (el.matches(':disabled') && !force) why = 'is disabled';
        else {
          const x = Math.min(Math.max(r.x + r.width / 2, 0), innerWidth - 1);
          const y = Math.min(Math.max(r.y + r.height / 2, 0), innerHeight - 1);
          let hit = document.elementFromPoint(x, y);
          while (hit?.shadowRoot && hit !== el) { const inner = hit.shadowRoot.elementFromPoint(x, y); if (!inner || inner === hit) break; hit = inner; }
          if (force || hit && (el.contains(hit) || hit.contains(el) && hit.matches('label') || [...(el.labels ?? [])].some(l => l.contains(hit)) || el.shadowRoot?.contains(hit))) return { x, y };
          why = `is covered by <${hit?.tagName.toLowerCase() ?? 'nothing'}${hit?.id ? `#${hit.id}` : ''}>`;
        }
      }
      await new Promise(done => setTimeout(done, 40));
    }
    throw new Error(`Element ${ref} ${why}; nothing was clicked.`);
  }
  function reveal({ ref }) {
    must(ref).scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    return true;
  }
  function give({ ref, x, y, data, mime, file }) {
    const el = ref ? must(ref) : document.elementFromPoint(x, y);
    if (!el) throw new Error('There is nothing at that point.');
    const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
    const carried = new DataTransfer();
    carried.items.add(new File([bytes], file, { type: mime }));
    const input = el.matches('input[type=file]') ? el : el.control?.matches?.('input[type=file]') ? el.control : null;
    if (input) {
      input.files = carried.files;
      for (const kind of ['input', 'change']) input.dispatchEvent(new Event(kind, { bubbles: true, composed: true }));
      return `Uploaded ${file} to the file input.`;
    }
    const r = el.getBoundingClientRect();
    const at = { bubbles: true, cancelable: true, composed: true, dataTransfer: carried, clientX: x ?? r.x + r.width / 2, clientY: y ?? r.y + r.height / 2 };
    for (const kind of ['dragenter', 'dragover', 'drop']) el.dispatchEvent(new DragEvent(kind, at));
    return `Dropped ${file} on the element.`;
  }
  async function wait({ selector, text: words, gone, timeout_ms = 10000 }) {
    const until = Date.now() + Math.min(timeout_ms, 60000);
    for (;;) {
      const there = (!selector || document.querySelector(selector)) && (!words || (document.body?.innerText ?? '').includes(words));
      if (Boolean(there) !== Boolean(gone)) return true;
      if (Date.now() > until) return false;
      await new Promise(done => setTimeout(done, 50));
    }
  }
  const ops = { read, find, text, fill, aim, reveal, give, wait };
  globalThis.__operator = async (op, args) => {
    try {
      return { ok: await ops[op](args), last };
    } catch (error) {
      return { error: String(error?.message ?? error), last };
    }
  };
}

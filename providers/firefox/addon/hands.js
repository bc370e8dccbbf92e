// hands.js makes input in a document the way a person's devices would: the events in their order, and then what the browser
// does by default. A page can tell: these events are not trusted. It runs in the add-on's world of a frame.
globalThis.__droverHands ??= (() => {
  'use strict';
  const FOCUSABLE = 'a[href],area[href],button,input,select,textarea,summary,iframe,[tabindex],[contenteditable=""],[contenteditable=true]';
  const sleep = ms => new Promise(done => setTimeout(done, ms));
  const rootOf = el => el.openOrClosedShadowRoot ?? null;

  // hit is the innermost element at a point, through every shadow root.
  const hit = (x, y) => {
    let el = document.elementFromPoint(x, y);
    for (;;) {
      const inner = el && rootOf(el)?.elementFromPoint(x, y);
      if (!inner || inner === el || inner.getRootNode() !== rootOf(el)) return el;
      el = inner;
    }
  };
  const active = () => {
    let el = document.activeElement;
    for (let inner; el && (inner = rootOf(el)?.activeElement);) el = inner;
    return el;
  };
  const up = el => el.parentElement ?? el.getRootNode().host ?? null;
  const lineage = el => { const out = []; for (let n = el; n; n = up(n)) out.push(n); return out; };

  const MODS = e => ({ altKey: !!(e.modifiers & 1), ctrlKey: !!(e.modifiers & 2), metaKey: !!(e.modifiers & 4), shiftKey: !!(e.modifiers & 8) });
  const BITS = { 0: 1, 1: 4, 2: 2 };
  const pointer = { over: null, down: null, downAt: null, button: -1, prevented: false, drag: null, x: 0, y: 0 };

  const fire = (el, event) => el.dispatchEvent(event);
  const init = (e, more) => ({
    bubbles: true, cancelable: true, composed: true, view: window, clientX: e.x, clientY: e.y, screenX: e.x + mozInnerScreenX, screenY: e.y + mozInnerScreenY,
    buttons: e.buttons ?? 0, ...MODS(e), ...more,
  });
  const PEN = { pointerId: 1, pointerType: 'mouse', isPrimary: true };
  const pointed = (el, type, e, more = {}) => fire(el, new PointerEvent(type, init(e, { ...PEN, width: 1, height: 1, pressure: e.buttons ? 0.5 : 0, button: -1, ...more })));
  const moused = (el, type, e, more = {}) => fire(el, new MouseEvent(type, init(e, { detail: 0, ...more })));

  // over tells elements that the pointer came or left.
  const over = (el, e) => {
    const before = pointer.over?.isConnected ? pointer.over : null;
    if (before === el) return;
    pointer.over = el;
    const was = before ? lineage(before) : [], now = el ? lineage(el) : [];
    const quiet = { bubbles: false, cancelable: false };
    if (before) {
      pointed(before, 'pointerout', e, { relatedTarget: el });
      for (const n of was) if (!now.includes(n)) pointed(n, 'pointerleave', e, { ...quiet, relatedTarget: el });
      moused(before, 'mouseout', e, { relatedTarget: el });
      for (const n of was) if (!now.includes(n)) moused(n, 'mouseleave', e, { ...quiet, relatedTarget: el });
    }
    if (!el) return;
    pointed(el, 'pointerover', e, { relatedTarget: before });
    for (const n of [...now].reverse()) if (!was.includes(n)) pointed(n, 'pointerenter', e, { ...quiet, relatedTarget: before });
    moused(el, 'mouseover', e, { relatedTarget: before });
    for (const n of [...now].reverse()) if (!was.includes(n)) moused(n, 'mouseenter', e, { ...quiet, relatedTarget: before });
  };

  // ---- drag and drop (HTML, 6.11)
  const draggable = el => lineage(el).find(n => n.draggable || n.localName === 'a' && n.href && n.draggable !== false || n.localName === 'img' && n.draggable !== false) ?? null;
  const dragged = (el, type, e, more = {}) => fire(el, new DragEvent(type, init(e, { dataTransfer: pointer.drag.data, ...more })));
  const startDrag = e => {
    const from = pointer.down && draggable(pointer.down);
    if (!from || pointer.prevented || pointer.drag) return;
    pointer.drag = { from, data: new DataTransfer(), over: null, taken: false };
    pointer.drag.data.effectAllowed = 'all';
    if (!dragged(from, 'dragstart', { ...e, ...pointer.downAt })) { pointer.drag = null; return; }
    pointed(from, 'pointercancel', e, { cancelable: false });
  };
  const dragTo = (el, e) => {
    const d = pointer.drag;
    dragged(d.from, 'drag', e);
    if (el !== d.over) {
      const before = d.over;
      d.over = el;
      if (el) dragged(el, 'dragenter', e, { relatedTarget: before });
      if (before?.isConnected) dragged(before, 'dragleave', e, { cancelable: false, relatedTarget: el });
    }
    d.taken = el ? !dragged(el, 'dragover', e) : false;
  };
  const endDrag = e => {
    const d = pointer.drag;
    if (d.over?.isConnected) { if (d.taken) dragged(d.over, 'drop', e); else dragged(d.over, 'dragleave', e, { cancelable: false }); }
    if (d.from.isConnected) dragged(d.from, 'dragend', e, { cancelable: false });
    pointer.drag = null;
  };

  const move = e => {
    pointer.x = e.x; pointer.y = e.y;
    const el = hit(e.x, e.y);
    if (e.buttons && pointer.down && !pointer.drag && Math.hypot(e.x - pointer.downAt.x, e.y - pointer.downAt.y) >= 4) startDrag(e);
    if (pointer.drag) { dragTo(el, e); return; }
    over(el, e);
    if (!el) return;
    pointed(el, 'pointermove', e);
    moused(el, 'mousemove', e);
  };

  // focus does what a press does to the focus: to the nearest thing that takes it, else away.
  const focus = el => {
    const label = lineage(el).find(n => n.localName === 'label');
    const to = lineage(el).find(n => n.matches?.(FOCUSABLE) && !n.disabled && n.localName !== 'iframe');
    const now = active();
    if (window !== top) window.focus(); // a frame of another site gives the focus to nothing in it otherwise
    if (to) { if (now !== to) to.focus({ preventScroll: true }); } else if (!label?.control && now && now !== document.body) now.blur();
  };

  const caret = (el, e) => {
    const at = document.caretPositionFromPoint?.(e.x, e.y);
    if (!at) return;
    const field = at.offsetNode;
    try {
      if (field.localName === 'input' || field.localName === 'textarea') { if (active() === field) field.setSelectionRange(at.offset, at.offset); }
      else getSelection().collapse(at.offsetNode, at.offset);
    } catch { /* a field of numbers has no selection */ }
  };

  const down = e => {
    const el = hit(e.x, e.y) ?? document.documentElement;
    pointer.down = el; pointer.downAt = { x: e.x, y: e.y }; pointer.button = e.button;
    const more = { button: e.button };
    const quiet = !pointed(el, 'pointerdown', e, more);
    pointer.prevented = quiet ? false : !moused(el, 'mousedown', e, { ...more, detail: e.clickCount });
    if (quiet) pointer.prevented = true;
    pointer.quiet = quiet;
    if (!pointer.prevented && el.isConnected) { focus(el); if (e.button === 0 && !draggable(el)) caret(el, e); }
    if (e.button === 2 && el.isConnected) moused(el, 'contextmenu', e, { button: 2 });
  };

  const release = e => {
    const at = hit(e.x, e.y) ?? document.documentElement, from = pointer.down;
    pointer.down = null;
    if (pointer.drag) { endDrag(e); return; }
    const more = { button: e.button };
    pointed(at, 'pointerup', e, more);
    if (!pointer.quiet && at.isConnected) moused(at, 'mouseup', e, { ...more, detail: e.clickCount });
    if (!from?.isConnected || e.button !== pointer.button) return;
    const own = lineage(from), el = lineage(at).find(n => own.includes(n));
    if (!el) return;
    const type = e.button === 0 ? 'click' : 'auxclick';
    const told = { ...more, pointerId: 1, pointerType: 'mouse', detail: e.clickCount };
    fire(el, new PointerEvent(type, init(e, told)));
    if (e.button === 0 && e.clickCount === 2 && el.isConnected) {
      if (moused(el, 'dblclick', e, { ...more, detail: 2 })) word(el);
    }
  };
  const word = el => {
    const s = getSelection();
    if (s.rangeCount && !el.matches?.('input,textarea')) { s.modify('move', 'backward', 'word'); s.modify('extend', 'forward', 'word'); }
  };

  const wheel = e => {
    const el = hit(e.x, e.y) ?? document.documentElement;
    if (!fire(el, new WheelEvent('wheel', init(e, { deltaX: e.dx, deltaY: e.dy, deltaMode: 0 })))) return;
    for (const n of lineage(el)) {
      const before = [n.scrollLeft, n.scrollTop];
      n.scrollBy({ left: e.dx, top: e.dy, behavior: 'instant' });
      if (n.scrollLeft !== before[0] || n.scrollTop !== before[1]) return;
    }
    scrollBy({ left: e.dx, top: e.dy, behavior: 'instant' });
  };

  // ---- keys
  const textField = el => el && (el.localName === 'textarea' || el.localName === 'input' && !/^(checkbox|radio|button|submit|reset|image|file|color|range|hidden)$/.test(el.type));
  const editable = el => textField(el) || Boolean(el?.isContentEditable);
  // In a window that is not in front Firefox tells a field neither of the focus nor of a change when it leaves, so the change is
  // told here: edited is the field that was written into, with what it held before.
  let edited = null;
  const note = el => { if (textField(el) && edited?.el !== el) { settle(); edited = { el, was: el.value }; } };
  const settle = () => {
    if (!edited || edited.el === active()) return;
    const { el, was } = edited;
    edited = null;
    if (el.isConnected && el.value !== was) el.dispatchEvent(new Event('change', { bubbles: true }));
  };
  addEventListener('change', e => { if (edited && e.composedPath()[0] === edited.el) edited = null; }, true);
  const insert = text => { note(active()); return document.execCommand('insertText', false, text); };
  const submitter = form => [...form.elements].find(b => /^(submit|image)$/.test(b.type) && !b.matches(':disabled'));
  const implicit = el => { // HTML, 4.10.21.2 "Implicit submission"
    const form = el.form;
    if (!form) return;
    if (edited?.el === el && el.value !== edited.was) { edited = null; el.dispatchEvent(new Event('change', { bubbles: true })); }
    const button = submitter(form);
    if (button) button.click();
    else if ([...form.elements].filter(n => textField(n) && n.localName === 'input').length <= 1) form.requestSubmit();
  };
  const tabTo = back => {
    const seen = [];
    const walk = root => { for (const n of root.querySelectorAll('*')) { if (n.matches(FOCUSABLE) && n.tabIndex >= 0 && !n.disabled && n.getClientRects().length && getComputedStyle(n).visibility === 'visible') seen.push(n); const r = rootOf(n); if (r) walk(r); } };
    walk(document);
    const order = [...seen.filter(n => n.tabIndex > 0).sort((a, b) => a.tabIndex - b.tabIndex), ...seen.filter(n => n.tabIndex === 0)];
    if (!order.length) return;
    const i = order.indexOf(active());
    const to = order[(i + (back ? -1 : 1) + order.length) % order.length] ?? order[0];
    to.focus();
    if (textField(to)) to.select?.();
  };
  const radios = (el, step) => {
    const root = el.getRootNode(), group = [...root.querySelectorAll('input[type=radio]')].filter(r => r.name === el.name && r.form === el.form && !r.disabled);
    const to = group[(group.indexOf(el) + step + group.length) % group.length];
    if (to && to !== el) { to.focus(); to.click(); }
  };
  const choose = (el, step) => {
    let i = el.selectedIndex;
    do { i += step; } while (el.options[i]?.disabled);
    if (!el.options[i]) return;
    el.selectedIndex = i;
    el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    el.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const slide = (el, step) => {
    const before = el.value;
    if (step > 0) el.stepUp(); else el.stepDown();
    if (el.value === before) return;
    el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    el.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const caretTo = (el, e, direction, grain) => {
    if (textField(el)) {
      let start, end;
      try { start = el.selectionStart; end = el.selectionEnd; } catch { return; }
      if (start === null) return;
      const length = el.value.length, backward = el.selectionDirection === 'backward';
      const head = backward ? start : end, tail = backward ? end : start;
      let to = head;
      if (grain === 'line') {
        const line = el.localName === 'textarea';
        if (direction === 'backward') to = line ? el.value.lastIndexOf('\n', head - 1) + 1 : 0;
        else { const n = line ? el.value.indexOf('\n', head) : -1; to = n < 0 ? length : n; }
      } else if (grain === 'all') to = direction === 'backward' ? 0 : length;
      else if (start !== end && !e.shiftKey) to = direction === 'backward' ? start : end;
      else {
        const units = [...new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(el.value)].map(s => s.index).concat(length);
        to = direction === 'backward' ? units.filter(u => u < head).pop() ?? 0 : units.find(u => u > head) ?? length;
      }
      if (!e.shiftKey) el.setSelectionRange(to, to);
      else el.setSelectionRange(Math.min(tail, to), Math.max(tail, to), to < tail ? 'backward' : 'forward');
      return;
    }
    getSelection().modify(e.shiftKey ? 'extend' : 'move', direction, grain === 'line' ? 'lineboundary' : grain === 'all' ? 'documentboundary' : grain);
  };
  const lines = (el, e, direction) => {
    if (el.localName === 'input') { caretTo(el, e, direction, 'all'); return; }
    if (el.localName !== 'textarea') { getSelection().modify(e.shiftKey ? 'extend' : 'move', direction, 'line'); return; }
    const at = el.selectionStart, text = el.value, begin = text.lastIndexOf('\n', at - 1) + 1, column = at - begin;
    let to;
    if (direction === 'backward') { if (!begin) to = 0; else { const b = text.lastIndexOf('\n', begin - 2) + 1; to = Math.min(b + column, begin - 1); } }
    else { const n = text.indexOf('\n', at); if (n < 0) to = text.length; else { const end = text.indexOf('\n', n + 1); to = Math.min(n + 1 + column, end < 0 ? text.length : end); } }
    el.setSelectionRange(to, to);
  };

  // byDefault is what the browser does about a key that nobody prevented. It gives true where the key-up has a part in it.
  const byDefault = (el, e, k) => {
    const plain = !e.ctrlKey && !e.altKey && !e.metaKey, type = el.localName === 'input' ? el.type : '';
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[e.key];
    if (e.ctrlKey || e.metaKey) {
      const low = e.key.toLowerCase();
      if (low === 'a') { if (textField(el)) el.select(); else document.execCommand('selectAll'); }
      else if (low === 'z') document.execCommand(e.shiftKey ? 'redo' : 'undo');
      else if (low === 'y') document.execCommand('redo');
      else if (low === 'b' && el.isContentEditable) document.execCommand('bold');
      else if (low === 'i' && el.isContentEditable) document.execCommand('italic');
      else if (low === 'x') document.execCommand('cut');
      else if (low === 'c') document.execCommand('copy');
      else if (e.key === 'Home') { if (editable(el)) caretTo(el, e, 'backward', 'all'); else scrollTo({ top: 0, behavior: 'instant' }); }
      else if (e.key === 'End') { if (editable(el)) caretTo(el, e, 'forward', 'all'); else scrollTo({ top: document.scrollingElement.scrollHeight, behavior: 'instant' }); }
      else if (e.key === 'Backspace' && editable(el)) { caretTo(el, { shiftKey: true }, 'backward', 'word'); document.execCommand('delete'); }
      return;
    }
    switch (e.key) {
      case 'Tab': tabTo(e.shiftKey); return;
      case 'Escape': { const d = lineage(el).find(n => n.localName === 'dialog' && n.open) ?? document.querySelector('dialog:modal'); if (d && d.dispatchEvent(new Event('cancel', { cancelable: true }))) d.close(); return; }
      case 'Enter':
        if (el.isContentEditable) { document.execCommand(e.shiftKey ? 'insertLineBreak' : 'insertParagraph'); return; }
        if (el.localName === 'textarea') { insert('\n'); return; }
        if (el.matches('a[href],area[href],button,summary') || /^(button|submit|reset|image|file|color)$/.test(type)) { el.click(); return; }
        if (el.localName === 'input' || el.localName === 'select') implicit(el);
        return;
      case ' ':
        if (editable(el)) break;
        if (el.matches('button,summary') || /^(button|submit|reset|image|file|color|checkbox|radio)$/.test(type)) { k.clicks = el; return; }
        if (el.localName === 'a' || el === document.body) scrollBy({ top: (e.shiftKey ? -0.9 : 0.9) * innerHeight, behavior: 'instant' });
        return;
      case 'Backspace': if (editable(el)) { note(el); document.execCommand('delete'); } return;
      case 'Delete': if (editable(el)) { note(el); document.execCommand('forwardDelete'); } return;
      case 'Home': case 'End': {
        const direction = e.key === 'Home' ? 'backward' : 'forward';
        if (editable(el)) caretTo(el, e, direction, 'line'); else scrollTo({ top: direction === 'backward' ? 0 : document.scrollingElement.scrollHeight, behavior: 'instant' });
        return;
      }
      case 'PageUp': case 'PageDown': scrollBy({ top: (e.key === 'PageUp' ? -0.9 : 0.9) * innerHeight, behavior: 'instant' }); return;
    }
    if (step) {
      if (type === 'radio') radios(el, step);
      else if (el.localName === 'select') choose(el, step);
      else if (type === 'range' || type === 'number' && /Up|Down/.test(e.key)) slide(el, /Up|Right/.test(e.key) ? 1 : -1);
      else if (editable(el)) { if (/Left|Right/.test(e.key)) caretTo(el, e, step < 0 ? 'backward' : 'forward', 'character'); else lines(el, e, step < 0 ? 'backward' : 'forward'); }
      else scrollBy({ left: /Left|Right/.test(e.key) ? step * 40 : 0, top: /Up|Down/.test(e.key) ? step * 40 : 0, behavior: 'instant' });
      return;
    }
    if (plain && k.text && editable(el)) insert(k.text);
  };

  const keyInit = (e, more = {}) => ({
    bubbles: true, cancelable: true, composed: true, view: window, key: e.key, code: e.code ?? '', keyCode: e.keyCode ?? 0, which: e.keyCode ?? 0,
    location: e.location ?? 0, ...MODS(e), ...more,
  });
  const held = new Map(); // code → what its key-up has to do
  const keyDown = k => {
    const el = active() ?? document.body ?? document.documentElement;
    const e = new KeyboardEvent('keydown', keyInit(k));
    const work = {};
    held.set(k.code || k.key, work);
    if (!fire(el, e)) return;
    if (k.text) {
      const code = k.text === '\r' ? 13 : k.text.codePointAt(0);
      const on = active() ?? el;
      if (!fire(on, new KeyboardEvent('keypress', keyInit(k, { charCode: k.text === '\r' ? 0 : code, keyCode: code, which: code })))) return;
    }
    const on = active() ?? el;
    if (on.isConnected) byDefault(on, e, Object.assign(work, { text: k.text && k.text !== '\r' ? k.text : '' }));
  };
  const keyUp = k => {
    const work = held.get(k.code || k.key);
    held.delete(k.code || k.key);
    const el = active() ?? document.body ?? document.documentElement;
    if (fire(el, new KeyboardEvent('keyup', keyInit(k))) && work?.clicks?.isConnected && work.clicks === active()) work.clicks.click();
  };

  const DO = { move, down, up: release, wheel, key_down: keyDown, key_up: keyUp, text: e => insert(e.text) };
  // perform makes a batch of input. A pause is waited for; between two events the page gets a turn.
  const perform = async events => {
    settle();
    for (const e of events) {
      if (e.kind === 'pause') { await sleep(e.ms); continue; }
      DO[e.kind](e);
      settle();
      if (e.kind === 'move' && e.buttons) await sleep(0);
    }
    return 'done';
  };

  // frame tells of the frame element at a point, or of the one that has the focus: its frame id, and where its content begins.
  const place = el => {
    if (!el || !/^(iframe|frame|object|embed)$/.test(el.localName)) return null;
    const id = browser.runtime.getFrameId(el);
    if (id < 0) return null;
    const b = el.getBoundingClientRect(), s = getComputedStyle(el);
    const sx = el.offsetWidth ? b.width / el.offsetWidth : 1, sy = el.offsetHeight ? b.height / el.offsetHeight : 1;
    return { frame: id, left: b.left + sx * (el.clientLeft + parseFloat(s.paddingLeft)), top: b.top + sy * (el.clientTop + parseFloat(s.paddingTop)), sx, sy };
  };
  // spot is place for a point; press gives the frame element there the focus, without which none in another process can give it on.
  const spot = (x, y, press) => {
    const el = hit(x, y), found = place(el);
    if (found && press && active() !== el) el.focus({ preventScroll: true });
    return found;
  };
  // frames lists the frames that this document shows.
  const frames = () => {
    const out = [];
    const walk = root => { for (const n of root.querySelectorAll('*')) { const f = place(n); if (f) out.push(f); const r = rootOf(n); if (r) walk(r); } };
    walk(document);
    return out;
  };
  const child = ref => { const el = __drover.element(ref); const id = el ? browser.runtime.getFrameId(el) : -1; return id >= 0 ? id : null; };

  // files puts files into a file input: [{name, type, data}] with data in base64.
  const files = (ref, list) => {
    const el = __drover.element(ref), all = new DataTransfer();
    if (!el) return null;
    for (const f of list) all.items.add(new File([Uint8Array.fromBase64(f.data)], f.name, { type: f.type, lastModified: f.modified }));
    el.files = all.files;
    el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    el.dispatchEvent(new Event('change', { bubbles: true }));
    return el.files.length;
  };

  const boxes = list => list.map(ref => { const b = __drover.element(ref)?.getBoundingClientRect(); return b ? [b.x, b.y, b.width, b.height] : null; });
  // scrolls keeps, or puts back, where this document and the panes around an element are scrolled to.
  let kept = [];
  const scrolls = (verb, ref) => {
    if (verb === 'put') { for (const [el, x, y] of kept) { el.scrollLeft = x; el.scrollTop = y; } kept = []; return true; }
    const el = ref ? __drover.element(ref) : null;
    kept = [document.scrollingElement, ...(el ? lineage(el) : [])].filter(Boolean).map(n => [n, n.scrollLeft, n.scrollTop]);
    return true;
  };

  // going tells, once, whether a navigation to another document began in this one. The page hears of it at the same moment, long
  // before Firefox tells its extensions.
  let began = null;
  globalThis.navigation?.addEventListener('navigate', e => {
    if (!e.destination.sameDocument && e.downloadRequest === null) began = e;
  });
  const going = async () => {
    await sleep(0);
    const e = began;
    began = null;
    return Boolean(e) && !e.defaultPrevented;
  };

  return { perform, spot, focused: () => place(active()), frames, child, files, boxes, scrolls, going };
})();

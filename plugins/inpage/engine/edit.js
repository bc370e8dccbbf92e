
  // edit makes fields ready to be typed into, and sets the ones whose value is chosen rather than typed.
  const edit = (() => {
    const { localName, nodeType, parent } = dom;
    const PICKED = new Set(['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range']);
    const SHAPES = {
      date: '2031-02-09', time: '18:45', 'datetime-local': '2031-02-09T18:45', month: '2031-02', week: '2031-W06', color: '#12ab9f', range: 'a number',
    };
    const OTHER = {
      checkbox: 'page.click', radio: 'page.click', file: 'upload.set_files', button: 'page.click', submit: 'page.click', reset: 'page.click', image: 'page.click', hidden: 'a visible field',
    };
    const typeOf = el => localName(el) === 'input' ? el.type : '';
    const plain = el => localName(el) === 'textarea' || localName(el) === 'input' && !OTHER[el.type] && !PICKED.has(el.type);
    const rich = el => Boolean(el.isContentEditable);
    const takes = el => localName(el) === 'input' || localName(el) === 'textarea' || rich(el);
    // host is the whole editor that an element stands in.
    const host = el => {
      let top = el;
      for (let n = parent(el); n && nodeType(n) === 1 && n.isContentEditable; n = parent(n)) top = n;
      return top;
    };

    // field gives the field that a target means: itself, its label's control, its editor, or the only field in it.
    const field = el => {
      const own = labelled(el);
      if (localName(own) === 'input' || localName(own) === 'textarea') return own;
      if (rich(own)) return host(own);
      const inner = dom.queryAll('input,textarea,[contenteditable]', own).filter(n => takes(n) && !OTHER[typeOf(n)] && dom.look(n) === 2);
      const tops = inner.filter(n => !inner.some(o => o !== n && dom.contains(o, n)));
      return tops.length === 1 ? tops[0] : own;
    };

    // pressed says that an element is there to be pressed, and keys mean no text to it. One with a role may be more than it looks.
    const pressed = el => !el.hasAttribute('role') && (/^(button|summary)$/.test(localName(el)) || localName(el) === 'a' && el.hasAttribute('href')
      || localName(el) === 'input' && /^(button|submit|reset|image)$/.test(el.type));

    const secret = el => localName(el) === 'input' && el.type === 'password' || dom.styleOf(el).webkitTextSecurity === 'disc';
    // held is what a field holds now; undefined for passwords and for what is no field.
    const held = el => {
      if (localName(el) === 'input' || localName(el) === 'textarea') return secret(el) ? undefined : el.value;
      return rich(el) ? el.innerText.replace(/\n$/, '').replace(/\u00a0/g, ' ') : undefined;
    };
    const empty = el => localName(el) === 'input' || localName(el) === 'textarea' ? el.value === '' : !/\S/.test(el.textContent) && !dom.all(el, 'img,video,table,hr,input').length;

    // active is the element that has the focus; the body too where it is an editor, as in a frame of an editor.
    const active = () => states.focusedElement() ?? (document.body?.isContentEditable && document.activeElement === document.body ? document.body : null);
    const holds = el => { const a = active(); return Boolean(a) && (a === el || dom.contains(el, a)); };

    // fire tells the page of a change the way the browser does when a person makes it.
    const fire = (el, type) => el.dispatchEvent(new Event(type, { bubbles: true, composed: type === 'input' }));
    const nativeValue = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;

    // set puts a value into a field that is picked, not typed. An impossible one changes nothing.
    const set = (el, text) => {
      const type = el.type, want = text.trim();
      const wrong = () => fail('invalid_request', '', `"${target.shorten(text, 40)}" is no value for a ${type} field; it takes ${SHAPES[type]}`, { field: 'text', expected: SHAPES[type] });
      if (want !== '') {
        const probe = document.implementation.createHTMLDocument('').createElement('input');
        probe.type = type;
        if (type === 'range') { if (!Number.isFinite(Number(want))) throw wrong(); }
        else {
          nativeValue.call(probe, want);
          if (probe.value === '' || type === 'color' && !/^#[0-9a-f]{6}$/i.test(want)) throw wrong();
        }
      } else if (type === 'range' || type === 'color') throw wrong();
      const before = el.value;
      nativeValue.call(el, want);
      if (el.value !== before) { fire(el, 'input'); fire(el, 'change'); }
    };

    // place puts the caret at the end, or selects everything; the browser then inserts there. It gives true where only the End
    // key can put the caret: number and email fields have no selection of their own, and only in Chromium does the window's reach into them.
    const reaches = /Chrome\//.test(navigator.userAgent);
    const place = (el, replace) => {
      if (localName(el) === 'input' || localName(el) === 'textarea') {
        if (replace) { el.select(); return false; }
        const end = el.value.length;
        try { el.setSelectionRange(end, end); return false; } catch { el.select(); }
        if (reaches) getSelection()?.collapseToEnd?.();
        return !reaches;
      }
      const selection = dom.tree(el).getSelection?.() ?? getSelection();
      selection.selectAllChildren(el);
      if (!replace) selection.collapseToEnd();
      return false;
    };
    return { PICKED, OTHER, pressed, typeOf, plain, rich, takes, field, secret, held, empty, active, holds, set, place, fire };
  })();

  // edit makes the target (or the focused element) ready for text, waiting for it to be usable. It gives the field's ref and kind:
  // set (done already), text (it has the focus; insert), keys (it has the focus, but is no field) or click (it wants a click first).
  ops.edit = async a => {
    const deadline = clock.now() + (a.wait ?? 0);
    let since = 0, why = '';
    for (;;) {
      const found = await target.wait(a.target, deadline, a.leave);
      if (/^(iframe|frame|object)$/.test(dom.localName(found))) return { kind: 'frame', ref: refs.of(found) };
      const el = edit.field(found), type = edit.typeOf(el);
      const instead = dom.localName(el) === 'select' ? 'page.select' : edit.OTHER[type] ?? (dom.localName(el) === 'option' ? 'page.select' : edit.pressed(el) ? 'page.click' : '');
      if (instead) throw fail('unsupported_target', '', `${target.describe(el)} cannot be typed into; use ${instead}`, { element_ref: refs.of(el) });
      let refused = null;
      if (states.disabled(el)) refused = aim.refuse('disabled', `${target.describe(el)} is disabled`, { element_ref: refs.of(el) });
      else if (el.readOnly) refused = aim.refuse('readonly', `${target.describe(el)} is read-only`, { element_ref: refs.of(el) });
      else if (dom.look(el) < 2) refused = aim.refuse('not_visible', `${target.describe(el)} is not visible`, { element_ref: refs.of(el) });
      if (refused) {
        const now = clock.now();
        if (refused.reason !== why) { why = refused.reason; since = now; }
        if (now >= deadline || now - since >= (why === 'not_visible' ? 3000 : 1000)) throw refused;
        await clock.change(100);
        continue;
      }
      return ready(el, a);
    }
  };
  const ready = async (el, { text, replace, synthetic, clicked }) => {
    const type = edit.typeOf(el), base = { ref: refs.of(el), secret: edit.secret(el) };
    const box = dom.rectOf(el), v = aim.view();
    if (box.bottom < 0 || box.right < 0 || box.top > v.height || box.left > v.width) { aim.bring(el, 'center'); await clock.frame(); }
    if (edit.PICKED.has(type)) {
      el.focus({ preventScroll: true });
      edit.set(el, text);
      await clock.sleep(0);
      return { ...base, kind: 'set', value: edit.held(el) };
    }
    if (!edit.holds(el)) el.focus({ preventScroll: true });
    // A frame has to have the focus of the page, too; a click gives it. The page itself may lie in a window behind others.
    if (!clicked && (!edit.holds(el) || window !== top && !document.hasFocus())) return { ...base, kind: 'click' };
    if (!edit.holds(el)) {
      const now = edit.active();
      throw aim.refuse('not_editable', `${target.describe(el)} does not take the focus${now ? `; ${target.describe(now)} has it` : ''}`, { element_ref: base.ref, focused: now ? target.card(now) : null });
    }
    if (!edit.takes(el)) {
      // A click may give the focus to a hidden field that does the editing (terminals, code editors on a canvas).
      if (!clicked) return { ...base, kind: 'click' };
      const now = edit.active();
      if (now && now !== el && edit.takes(now)) { el = now; base.ref = refs.of(el); base.secret = edit.secret(el); }
      else { guard.arm('keys', null, { synthetic }); return { ...base, kind: 'keys' }; }
    }
    const was = edit.empty(el);
    const end = edit.place(el, replace && !was);
    if (edit.rich(el)) await clock.frame(); // editors take over the selection when they hear of it
    guard.arm('keys', null, { synthetic });
    const several = dom.localName(el) === 'textarea' || edit.rich(el);
    return { ...base, kind: 'text', several, rich: edit.rich(el), end, empty: was, full: el.maxLength >= 0 && el.value?.length >= el.maxLength };
  };

  // typed tells what a field holds after input came: {value, secret, came}.
  ops.typed = async ({ ref, wait = 250 }) => {
    const got = await guard.confirm(wait);
    const el = refs.get(ref);
    // Editors and controlled inputs write their own text a moment later.
    await clock.sleep(0);
    if (el && edit.rich(el)) await clock.frame();
    return { came: got.ok === true, seen: got.seen, value: el ? edit.held(el) : undefined };
  };

  // focus gives the target the keyboard focus, for keys: {ref}.
  ops.focus = async ({ target: t, wait = 0, leave, synthetic }) => {
    if (t) {
      const found = labelled(await target.wait(t, clock.now() + wait, leave));
      if (states.disabled(found)) throw aim.refuse('disabled', `${target.describe(found)} is disabled`, { element_ref: refs.of(found) });
      let el = found;
      for (; el && dom.nodeType(el) === 1; el = dom.parent(el)) {
        if (edit.holds(el)) break;
        el.focus({ preventScroll: false });
        if (edit.holds(el)) break;
      }
      if (!el || dom.nodeType(el) !== 1 || el === document.body && found !== document.body) {
        throw aim.refuse('not_focusable', `${target.describe(found)} cannot have the focus; press without a target, or click it first`, { element_ref: refs.of(found) });
      }
    }
    const now = edit.active();
    const frame = now && /^(iframe|frame|object)$/.test(dom.localName(now));
    guard.arm('keys', null, { synthetic });
    return { ref: now ? refs.of(now) : '', frame: Boolean(frame) };
  };

  // select chooses options of a native select, all or none: {ref, selected, reverted}.
  ops.select = async ({ target: t, values, labels, wait = 0, leave }) => {
    const deadline = clock.now() + wait;
    const began = clock.now();
    for (;;) {
      const found = labelled(await target.wait(t, deadline, leave));
      const inner = dom.localName(found) === 'select' ? found : found.closest('select') ?? (list => list.length === 1 ? list[0] : null)(dom.queryAll('select', found));
      if (!inner) throw fail('unsupported_target', '', `${target.describe(found)} is no select; click it, take a page.snapshot and click the option`, { element_ref: refs.of(found) });
      const wanted = values ?? labels, late = clock.now() - began >= 1000 || clock.now() >= deadline;
      try {
        if (states.disabled(inner)) throw aim.refuse('disabled', `${target.describe(inner)} is disabled`, { element_ref: refs.of(inner) });
        if (dom.look(inner) < 2 && !target.labelsOf(inner).length && !dom.visible(dom.parent(inner) ?? inner)) throw aim.refuse('not_visible', `${target.describe(inner)} is not visible`, { element_ref: refs.of(inner) });
        return await choose(inner, wanted, values ? 'values' : 'labels');
      } catch (e) {
        if (late || !(e instanceof EngineError) || e.final) throw e;
      }
      await clock.change(100);
    }
  };
  const choose = async (el, wanted, field) => {
    const options = [...el.options], many = el.multiple;
    // A refusal that waiting cannot change is final; an option that is missing or disabled may still come.
    const no = (message, more = {}) => fail('invalid_request', '', message, { field, ...more });
    const final = e => { e.final = true; return e; };
    const label = o => squash(names.optionName(o)), say = o => ({ value: o.value, label: label(o) });
    if (wanted.length > 1 && !many) throw final(no(`${target.hint(el)} holds one option, and ${wanted.length} were asked for`));
    const picks = wanted.map(w => {
      const hits = options.filter(o => field === 'values' ? o.value === w : label(o) === squash(w) || squash(o.text) === squash(w));
      if (!hits.length) throw no(`${target.hint(el)} has no option with the ${field === 'values' ? 'value' : 'label'} "${target.shorten(w, 80)}"`, { options: options.slice(0, 50).map(say) });
      if (hits.length > 1 && field === 'labels') throw final(no(`${hits.length} options of ${target.hint(el)} have the label "${target.shorten(w, 80)}"; give values instead`, { options: hits.slice(0, 10).map(say) }));
      const able = hits.filter(o => !o.matches(':disabled'));
      if (!able.length) throw no(`the option "${label(hits[0])}" is disabled`, { options: hits.map(say) });
      return able[0];
    });
    const before = options.map(o => o.selected);
    el.focus({ preventScroll: true });
    if (many) for (const o of options) { const want = picks.includes(o); if (o.selected !== want) o.selected = want; }
    else picks[0].selected = true;
    if (options.some((o, i) => o.selected !== before[i])) { edit.fire(el, 'input'); edit.fire(el, 'change'); }
    await clock.sleep(0);
    await clock.frame();
    const selected = [...el.selectedOptions].map(o => o.value);
    const asked = picks.map(o => o.value);
    return { ref: refs.of(el), selected, reverted: asked.length !== selected.length || asked.some(v => !selected.includes(v)) };
  };

  // file_input gives the file input that a target means; it may be hidden, as most are.
  ops.file_input = async ({ target: t, wait = 0, leave }) => {
    const found = labelled(await target.wait(t, clock.now() + wait, leave));
    const list = edit.typeOf(found) === 'file' ? [found] : dom.queryAll('input[type=file]', found);
    if (list.length !== 1) throw fail('unsupported_target', '', `${target.describe(found)} is no file input; give the input's element_ref or a selector such as input[type=file]`, { element_ref: refs.of(found) });
    const el = list[0];
    if (states.disabled(el)) throw aim.refuse('disabled', `${target.describe(el)} is disabled`, { element_ref: refs.of(el) });
    return { ref: refs.of(el), multiple: el.multiple, folder: Boolean(el.webkitdirectory) };
  };
  ops.files = ({ ref }) => [...(refs.get(ref)?.files ?? [])].map(f => f.name);

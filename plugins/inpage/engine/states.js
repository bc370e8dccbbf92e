
  // states tells what holds of an element now, in the protocol's words; what does not hold is absent.
  const states = (() => {
    const { localName, getAttribute, hasAttribute, nodeType, parent } = dom;
    const is = (el, name, word = 'true') => (getAttribute(el, name) ?? '').trim().toLowerCase() === word;

    const CHECKABLE = new Set(['checkbox', 'radio', 'switch', 'menuitemcheckbox', 'menuitemradio']);
    const SELECTABLE = new Set(['option', 'tab', 'row', 'gridcell', 'columnheader', 'rowheader', 'treeitem']);
    const EXPANDABLE = new Set(['application', 'button', 'checkbox', 'combobox', 'gridcell', 'link', 'listbox', 'menuitem', 'row', 'rowheader',
      'columnheader', 'tab', 'treeitem', 'menuitemcheckbox', 'menuitemradio', 'switch', 'textbox', 'searchbox', 'group']);
    const WIDGETS = new Set(['button', 'checkbox', 'combobox', 'link', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio',
      'searchbox', 'slider', 'spinbutton', 'switch', 'tab', 'textbox', 'treeitem', 'doc-backlink', 'doc-biblioref', 'doc-glossref', 'doc-noteref']);
    const NATIVE = new Set(['button', 'input', 'select', 'textarea', 'optgroup', 'option', 'fieldset']);
    const RANGE = new Set(['slider', 'spinbutton', 'scrollbar', 'progressbar', 'meter', 'separator']);
    const LEVELS = new Set(['heading', 'treeitem', 'listitem', 'row', 'tablist']);

    // tristate reads aria-checked and aria-pressed.
    const tristate = v => v === 'mixed' ? 'mixed' : v === 'true' ? 'true' : 'false';

    const checked = (el, role) => {
      const name = localName(el);
      if (name === 'input' && (el.type === 'checkbox' || el.type === 'radio')) {
        return el.indeterminate && el.type === 'checkbox' ? 'mixed' : el.checked ? 'true' : 'false';
      }
      if (CHECKABLE.has(role)) {
        const v = tristate((getAttribute(el, 'aria-checked') ?? '').trim().toLowerCase());
        return v === 'mixed' && (role === 'radio' || role === 'menuitemradio' || role === 'switch') ? 'false' : v;
      }
      if ((role === 'option' || role === 'treeitem') && hasAttribute(el, 'aria-checked')) return tristate(getAttribute(el, 'aria-checked').trim().toLowerCase());
      return undefined;
    };

    const pressed = (el, role) => {
      if (role !== 'button') return undefined;
      const v = getAttribute(el, 'aria-pressed');
      if (v !== null && /^(true|false|mixed)$/i.test(v.trim())) return tristate(v.trim().toLowerCase());
      if (localName(el) === 'input' && el.type === 'checkbox') return el.checked ? 'true' : 'false';
      return undefined;
    };

    const expanded = (el, role) => {
      if (localName(el) === 'summary' && roles.summarizes(el)) return el.parentElement.open;
      if (localName(el) === 'select' && role === 'combobox') { try { return el.matches(':open'); } catch { return false; } }
      if (EXPANDABLE.has(role)) {
        const v = getAttribute(el, 'aria-expanded');
        if (v !== null && /^(true|false)$/i.test(v.trim())) return v.trim().toLowerCase() === 'true';
      }
      const target = role === 'button' && hasAttribute(el, 'popovertarget') && el.popoverTargetElement;
      if (target) { try { return target.matches(':popover-open'); } catch { return undefined; } }
      return undefined;
    };

    const selected = (el, role) => {
      if (localName(el) === 'option' && role === 'option') return el.selected || undefined;
      if (!SELECTABLE.has(role)) return undefined;
      return is(el, 'aria-selected') || undefined;
    };

    const level = (el, role) => {
      if (!LEVELS.has(role)) return undefined;
      const n = parseInt(getAttribute(el, 'aria-level'), 10);
      if (n > 0) return n;
      if (role !== 'heading') return undefined;
      const tag = /^h([1-6])$/.exec(localName(el));
      return tag ? +tag[1] : 2;
    };

    // value is what a field holds. Passwords are never told, nor are those of a field that only pretends to be text.
    const value = (el, role) => {
      const name = localName(el);
      if (name === 'select') {
        if (role !== 'combobox' && role !== 'listbox') return undefined;
        return role === 'combobox' ? squash([...el.selectedOptions].map(names.optionName).join(', ')) : undefined;
      }
      if (name === 'textarea') return el.value || undefined;
      if (name === 'input') {
        const type = el.type;
        if (type === 'password' || secret(el)) return undefined;
        if (type === 'file') return [...(el.files ?? [])].map(f => f.name).join(', ') || undefined;
        if (/^(checkbox|radio|submit|button|reset|image|hidden)$/.test(type)) return undefined;
        return el.value || undefined;
      }
      if (name === 'meter' || name === 'progress') return name === 'progress' && !hasAttribute(el, 'value') ? undefined : String(el.value);
      if (RANGE.has(role)) return getAttribute(el, 'aria-valuetext') ?? getAttribute(el, 'aria-valuenow') ?? undefined;
      if (role === 'textbox' || role === 'searchbox') {
        if (secret(el)) return undefined;
        return squash(el.isContentEditable && el instanceof HTMLElement ? el.innerText : el.textContent ?? '') || undefined;
      }
      if (role === 'combobox') {
        if (hasAttribute(el, 'aria-valuetext')) return getAttribute(el, 'aria-valuetext');
        const field = dom.all(el, 'input,textarea')[0];
        return (field ? field.value : squash(names.inner(el))) || undefined;
      }
      return undefined;
    };
    // secret: a field whose letters the page paints as dots.
    const secret = el => {
      const style = dom.styleOf(el).webkitTextSecurity;
      return Boolean(style) && style !== 'none';
    };

    // disabled: natively (a fieldset's first legend excepted), by aria-disabled of it or of what holds it, or inert.
    const nativelyDisabled = el => NATIVE.has(localName(el)) && el.matches(':disabled');
    const disabled = el => nativelyDisabled(el) || barred(el);
    const bars = el => is(el, 'aria-disabled') || hasAttribute(el, 'inert');
    const barred = dom.memo(el => {
      for (let n = el; n && nodeType(n) === 1; n = parent(n)) if (bars(n)) return true;
      return false;
    });
    const enabled = el => !disabled(el);

    const required = (el, role) => {
      if (/^(input|select|textarea)$/.test(localName(el))) { if (el.required) return true; }
      return is(el, 'aria-required') && role !== 'generic' || undefined;
    };

    // focusedElement is where the focus is, through shadow roots; the body does not count, nor what a frame without the
    // focus remembers.
    const focusedElement = () => {
      if (globalThis.top !== globalThis.self && !document.hasFocus()) return null;
      let el = document.activeElement;
      for (let inner = el; inner; inner = dom.shadow(el)?.activeElement) el = inner;
      return el && el !== document.body && el !== document.documentElement ? el : null;
    };

    // of lists the states of an element that hold. held says whether something above bars it (aria-disabled, inert), for
    // callers that came down the tree and know.
    const of = (el, role, focus = focusedElement(), held = barred(el)) => {
      const s = {};
      const put = (k, v) => { if (v !== undefined && v !== false) s[k] = v; };
      put('value', value(el, role));
      put('checked', checked(el, role));
      put('selected', selected(el, role));
      const open = expanded(el, role);
      if (open !== undefined) s.expanded = open;
      const own = is(el, 'aria-disabled');
      put('disabled', nativelyDisabled(el) || own || held && acts(el, role));
      put('required', required(el, role));
      put('level', level(el, role));
      put('pressed', pressed(el, role));
      put('focused', el === focus);
      return s;
    };

    // acts says whether an element of this role is one that people act on, disabled or not.
    const acts = (el, role, attributes = dom.hasAttributes(el)) => {
      if (WIDGETS.has(role)) return !(role === 'option' && collapsed(el));
      const name = localName(el);
      if (name === 'input' || name === 'select' || name === 'textarea' || name === 'button') return !(name === 'input' && el.type === 'hidden');
      if (!attributes) return false;
      if (hasAttribute(el, 'tabindex')) { const t = parseInt(getAttribute(el, 'tabindex'), 10); if (t >= 0) return true; }
      if (name === 'a' || name === 'area') return hasAttribute(el, 'href');
      if (hasAttribute(el, 'onclick') || is(el, 'draggable')) return true;
      if ((name === 'audio' || name === 'video') && hasAttribute(el, 'controls')) return true;
      return hasAttribute(el, 'contenteditable') && roles.editableRoot(el);
    };
    // collapsed: an option that shows only when its list is opened by the browser itself; page.select chooses it.
    const collapsed = el => {
      if (localName(el) !== 'option') return false;
      const list = el.closest('select');
      return Boolean(list) && !(list.multiple || list.size > 1);
    };

    // actionable says whether the element can be acted on now.
    const actionable = (el, role) => acts(el, role) && enabled(el);

    return { of, bars, level, enabled, disabled, actionable, acts, collapsed, focusedElement, checked, value, nativelyDisabled };
  })();


  // names computes accessible names and descriptions (accname 1.2, with HTML-AAM's and SVG-AAM's own sources of a name).
  const names = (() => {
    const { localName, getAttribute, hasAttribute, hasAttributes, nodeType, firstChild, nextSibling, styleOf, look, byId, all } = dom;
    const { filled } = roles;

    const FROM_CONTENT = new Set(['button', 'cell', 'checkbox', 'columnheader', 'gridcell', 'heading', 'link', 'menuitem',
      'menuitemcheckbox', 'menuitemradio', 'option', 'radio', 'rowheader', 'switch', 'tab', 'term', 'tooltip', 'treeitem',
      'doc-backlink', 'doc-biblioref', 'doc-glossref', 'doc-noteref']);
    // Text of these is not part of the name of what contains them.
    const APART = new Set(['script', 'style', 'template', 'noscript', 'head', 'datalist', 'iframe', 'frame', 'object', 'embed', 'audio', 'video', 'canvas']);
    const DEEP = 200;

    // References: the elements that an attribute of ids names, in order.
    const referred = (el, attribute) => {
      const ids = getAttribute(el, attribute);
      if (!ids) return [];
      return ids.split(/\s+/).map(id => byId(el, id)).filter(Boolean);
    };

    // owned maps an element to what it shows by aria-owns; an element is owned once, by the first painted claimant.
    const claims = dom.memo(root => {
      const owns = new Map(), owner = new Map();
      for (const el of dom.bearers(root)['aria-owns']) {
        if (!look(el) || hiddenFromAll(el)) continue;
        const list = [];
        for (const o of referred(el, 'aria-owns')) {
          if (owner.has(o) || holds(o, el, owner)) continue;
          owner.set(o, el);
          list.push(o);
        }
        if (list.length) owns.set(el, list);
      }
      return { owns, owner };
    });
    // holds says whether el would stand below o, owners counted: owning it would close a circle.
    const holds = (o, el, owner) => {
      for (let n = el; n; n = owner.get(n) ?? dom.parent(n)) if (n === o) return true;
      return false;
    };
    const hiddenFromAll = el => {
      for (let n = el; n && nodeType(n) === 1; n = dom.parent(n)) if (getAttribute(n, 'aria-hidden') === 'true') return true;
      return false;
    };
    const NOTHING = { owns: new Map(), owner: new Map() };
    const owning = root => dom.bearers(root)['aria-owns'].length > 0;
    const claimsOf = (node, root = dom.tree(node)) => owning(root) ? claims(root) : NOTHING;
    // kids are the children as accessibility sees them: the flat tree with aria-owns applied.
    const kids = (node, root = dom.tree(node)) => {
      const list = dom.children(node), { owns, owner } = claimsOf(node, root);
      if (!owner.size) return list;
      const out = list.filter(c => !owner.has(c) || owner.get(c) === node && !owns.get(node)?.includes(c));
      const mine = owns.get(node);
      return mine ? out.concat(mine) : out;
    };

    // letters is a text as it is painted: text-transform is part of what a person, and the browser, reads.
    const letters = (text, el, root = dom.tree(el)) => {
      if (!styles.of(root).transform.any) return text;
      switch (styles.transformed(el)) {
        case 'uppercase': return text.toLocaleUpperCase();
        case 'lowercase': return text.toLocaleLowerCase();
        case 'capitalize': return text.replace(/(^|[^\p{L}\p{N}\p{M}'’])(\p{L})/gu, (_, before, letter) => before + letter.toLocaleUpperCase());
      }
      return text;
    };

    // Generated content: the strings of ::before and ::after, or their alternative text. generates says whether a rule may make any.
    const generates = (el, root, which) => {
      const keys = styles.of(root)[which], name = localName(el);
      return name === 'q' || keys.any && keys.may(el, name) || dom.shadow(el) !== null || hasAttribute(el, 'part');
    };
    const before = (el, root) => generates(el, root, 'before') ? styles.of(root).before.answer(el, el => generated(el, '::before')) : '';
    const after = (el, root) => generates(el, root, 'after') ? styles.of(root).after.answer(el, el => generated(el, '::after')) : '';
    const generated = (el, which) => {
      const style = styleOf(el, which), content = style.content;
      if (!content || content === 'none' || content === 'normal') return '';
      let out = '';
      const told = alternative(content);
      for (const [token, string] of told.matchAll(TOKEN)) {
        if (string !== undefined) out += string.replace(/\\(["\\])/g, '$1');
        else if (token === 'open-quote') out += '“';
        else if (token === 'close-quote') out += '”';
        else if (token.startsWith('counter')) out += `${counters.at(el, which, token)} `;
        else out += getAttribute(el, token.slice(5, -1).trim()) ?? '';
      }
      return out && (told !== content || !/^(inline|contents|$)/.test(style.display)) ? ` ${out} ` : out;
    };
    const TOKEN = /"((?:[^"\\]|\\.)*)"|open-quote|close-quote|counters?\((?:[^)"]|"(?:[^"\\]|\\.)*")*\)|attr\([^)]*\)/g;
    // alternative is what follows the slash of `content: "→" / "next"`, else the whole.
    const alternative = content => {
      const bare = content.replace(/"((?:[^"\\]|\\.)*)"/g, s => '_'.repeat(s.length)), at = bare.indexOf(' / ');
      return at < 0 ? content : content.slice(at + 3);
    };

    const block = el => el instanceof HTMLElement && !styles.flows(el);

    // content joins what the children of a node say. ctx.visited holds what was said already, so that cycles end.
    const content = (el, ctx) => {
      if (ctx.depth > DEEP) return el.textContent ?? '';
      const root = dom.tree(el), only = firstChild(el);
      if (only && nodeType(only) === 3 && !nextSibling(only) && !dom.shadow(el) && !owning(root) && localName(el) !== 'slot') {
        if (!(ctx.shown || look(el) === 2)) return '';
        const text = letters(only.data, el, root);
        return before(el, root) + text + after(el, root);
      }
      let out = before(el, root), below = null;
      for (const c of kids(el, root)) {
        const type = nodeType(c);
        if (type === 3) { if (ctx.shown || seenText(el)) out += letters(c.data, el, root); } else if (type === 1) {
          if (localName(c) === 'br') { out += ' '; continue; }
          below ??= { ...ctx, depth: ctx.depth + 1 };
          const said = part(c, below);
          if (said) out += block(c) ? ` ${said} ` : said;
          else if (block(c) && look(c)) out += ' ';
        }
      }
      return out + after(el, root);
    };
    const seenText = el => localName(el) === 'slot' || look(el) === 2;

    // part is what an element inside a name says.
    const part = (el, ctx) => {
      if (ctx.visited.has(el) || APART.has(localName(el))) return '';
      const attributes = hasAttributes(el);
      if (!ctx.shown && (attributes && getAttribute(el, 'aria-hidden') === 'true' || !look(el) && localName(el) !== 'slot')) return '';
      ctx.visited.add(el);
      if (localName(el) === 'slot') return content(el, ctx);
      const role = roles.of(el);
      if (role === 'group' && ctx.branch) return ''; // the items below a tree item are not its name
      if (attributes && !ctx.referred) { const by = labelledby(el, ctx); if (by) return by; }
      const value = embedded(el, role);
      if (value !== null) return value;
      return own(el, role, ctx, true);
    };

    // embedded is the value of a control inside a label (accname step 2C), or null.
    const EMBEDDED = new Set(['textbox', 'searchbox', 'combobox', 'listbox', 'slider', 'spinbutton', 'scrollbar', 'progressbar', 'meter']);
    const embedded = (el, role) => {
      if (!EMBEDDED.has(role)) return null;
      const name = localName(el);
      switch (role) {
        case 'textbox': case 'searchbox':
          if (name === 'input' && el.type === 'password') return '•'.repeat(el.value.length);
          return name === 'input' || name === 'textarea' ? el.value : el.textContent ?? '';
        case 'combobox': case 'listbox': {
          if (name === 'select') return [...el.selectedOptions].map(o => optionName(o)).join(' ');
          if (name === 'input') return el.value;
          const chosen = [...all(el, '[role=option]')].filter(o => getAttribute(o, 'aria-selected') === 'true');
          if (chosen.length) return chosen.map(o => of(o)).join(' ');
          return role === 'combobox' ? el.textContent ?? '' : '';
        }
        case 'slider': case 'spinbutton': case 'scrollbar': case 'progressbar': case 'meter': {
          const text = getAttribute(el, 'aria-valuetext') ?? getAttribute(el, 'aria-valuenow');
          if (text !== null) return text;
          return name === 'input' ? el.value : name === 'meter' || name === 'progress' ? String(el.value) : null;
        }
      }
      return null;
    };
    const optionName = o => getAttribute(o, 'aria-label') || o.label || o.text;

    const labelledby = (el, ctx) => {
      if (!hasAttribute(el, 'aria-labelledby')) return '';
      const said = [];
      for (const to of referred(el, 'aria-labelledby')) {
        const visited = ctx.visited;
        const inner = { ...ctx, referred: true, shown: !look(to) || getAttribute(to, 'aria-hidden') === 'true' || look(to) === 1, depth: ctx.depth + 1 };
        visited.add(to);
        const role = roles.of(to);
        const value = to === el ? null : embedded(to, role);
        const text = squash(value ?? own(to, role, inner, true));
        if (text) said.push(text);
      }
      return said.join(' ');
    };

    // own is what an element says of itself, without aria-labelledby. inside: as part of another name, where every role
    // may speak by its content.
    const own = (el, role, ctx, inside) => {
      const attributes = hasAttributes(el), label = attributes ? getAttribute(el, 'aria-label') : null;
      if (label !== null && label.trim() !== '') return label;
      const silenced = role === 'none';
      const text = silenced && !inside ? '' : host(el, role, ctx);
      if (text !== null && squash(text) !== '') return text;
      let space = '';
      if (text === null || text === '') {
        if (inside || FROM_CONTENT.has(role) || role === 'row' && roles.inGrid(el)) {
          const said = content(el, ctx);
          if (squash(said) !== '') return said;
          space = inside && said !== '' ? ' ' : '';
        }
      }
      return attributes && late(el, role, inside) || space;
    };

    // late is the last resort: the title, then a placeholder.
    const late = (el, role, inside) => {
      const title = getAttribute(el, 'title');
      if (title !== null && title.trim() !== '' && !(inside && role === 'none')) return title;
      const name = localName(el);
      if (name === 'input' || name === 'textarea') {
        const hint = getAttribute(el, 'placeholder');
        if (hint && (name === 'textarea' || /^(text|search|url|tel|email|password|number)$/.test(el.type))) return hint;
        const aria = getAttribute(el, 'aria-placeholder');
        if (aria) return aria;
      } else if (role === 'textbox' || role === 'searchbox') return getAttribute(el, 'aria-placeholder') ?? '';
      return '';
    };

    const childNamed = (el, name) => { for (let c = firstChild(el); c; c = nextSibling(c)) if (nodeType(c) === 1 && localName(c) === name) return c; return null; };
    const through = (el, ctx) => {
      if (!el || ctx.visited.has(el)) return '';
      return part(el, { ...ctx, depth: ctx.depth + 1 });
    };

    // labelled is the text of the labels of a form control.
    const labelled = (el, ctx) => {
      const list = dom.labels(el);
      if (!list.length) return '';
      const said = [];
      for (const label of list) {
        const text = squash(through(label, { ...ctx, visited: new Set([el]), label: true }));
        if (text) said.push(text);
      }
      return said.join(' ');
    };

    // The names that HTML gives its elements; null where it gave none.
    const field = (el, role, ctx) => labelled(el, ctx);
    const HOST = new Map(Object.entries({
      input(el, role, ctx) {
        const said = labelled(el, ctx);
        if (said) return said;
        switch (el.type) {
          case 'submit': return el.value || getAttribute(el, 'title') || 'Submit';
          case 'reset': return el.value || getAttribute(el, 'title') || 'Reset';
          case 'button': return el.value;
          case 'image': return getAttribute(el, 'alt') || getAttribute(el, 'value') || getAttribute(el, 'title') || 'Submit';
          case 'file': return getAttribute(el, 'title') || (el.multiple ? 'Choose Files' : 'Choose File');
        }
        return '';
      },
      select: field, textarea: field, meter: field, progress: field, output: field,
      button: (el, role, ctx) => labelled(el, ctx) || null,
      img: (el, role, ctx) => getAttribute(el, 'alt') ?? captioned(el, ctx),
      area: el => getAttribute(el, 'alt'),
      fieldset: (el, role, ctx) => through(childNamed(el, 'legend'), ctx) || null,
      table: (el, role, ctx) => through(childNamed(el, 'caption'), ctx) || getAttribute(el, 'summary'),
      optgroup: el => getAttribute(el, 'label'),
      option: el => getAttribute(el, 'label') || null,
    }));
    const drawn = el => {
      const title = childNamed(el, 'title');
      if (title && /\S/.test(title.textContent)) return title.textContent;
      return localName(el) === 'a' ? getAttribute(el, 'xlink:title') : null;
    };
    // host is the name that the language of the element gives it: null when it has no such way.
    const host = (el, role, ctx) => {
      const way = HOST.get(localName(el));
      if (way !== undefined) return way(el, role, ctx);
      return el instanceof SVGElement ? drawn(el) : null;
    };
    // captioned: a picture without alternative text that is all there is in a figure is called by the caption.
    const captioned = (el, ctx) => {
      const figure = el.closest('figure'), caption = figure && childNamed(figure, 'figcaption');
      if (!caption || filled(el, 'title') || all(figure, 'img').length > 1) return null;
      return squash(figure.textContent) === squash(caption.textContent) ? through(caption, ctx) || null : null;
    };

    // headed names a dialog after its first heading, where its author gave it no name.
    const headed = (el, role, ctx) => {
      if (role !== 'dialog' && role !== 'alertdialog') return '';
      const first = all(el, 'h1,h2,h3,h4,h5,h6,[role=heading]')[0];
      return first && look(first) === 2 ? squash(own(first, 'heading', { ...ctx, visited: new Set([el]) }, true)) : '';
    };

    const start = () => ({ visited: new Set(), referred: false, shown: false, branch: false, depth: 0 });

    // of is the accessible name of an element, white space collapsed; "" where it has none.
    const named = (el, role) => {
      const ctx = start();
      if (hasAttribute(el, 'aria-labelledby')) { const by = squash(labelledby(el, ctx)); if (by) return by; }
      ctx.visited.add(el);
      ctx.branch = role === 'treeitem';
      return squash(own(el, role, ctx, false)) || headed(el, role, ctx);
    };
    const of = dom.memo(el => named(el, roles.of(el)));

    // simple is the name of an element that holds one text, is painted, and that nothing else names; "" where something may.
    const SIMPLE = new Set(['a', 'button', 'td', 'th', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'li', 'div', 'span', 'summary']);
    const simple = (el, role) => {
      if (!FROM_CONTENT.has(role) || !SIMPLE.has(localName(el)) || !(el instanceof HTMLElement)) return '';
      if (hasAttributes(el) && (hasAttribute(el, 'aria-label') || hasAttribute(el, 'aria-labelledby'))) return '';
      if (localName(el) === 'button' && dom.labels(el).length) return '';
      const root = dom.tree(el);
      return squash(before(el, root) + letters(firstChild(el).data, el, root) + after(el, root));
    };

    // inner is the text of an element as a name would say it, whatever its role.
    const inner = el => { const ctx = start(); ctx.visited.add(el); return squash(content(el, ctx)); };

    // description is what aria-describedby or aria-description adds, or a title that is not the name.
    const description = el => {
      const ids = referred(el, 'aria-describedby');
      if (ids.length) return squash(ids.map(to => own(to, roles.of(to), { ...start(), referred: true, shown: !look(to), visited: new Set([to]) }, true)).join(' '));
      const said = getAttribute(el, 'aria-description') ?? getAttribute(el, 'title') ?? '';
      return squash(said) === of(el) ? '' : squash(said);
    };

    return { of, named, simple, inner, description, letters, kids, owning, claimsOf, FROM_CONTENT, optionName };
  })();

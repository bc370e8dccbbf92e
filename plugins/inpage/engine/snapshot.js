
  // snapshot reads the page: one walk down the flat tree, without recursion, that asks of each element no more than it must.
  const reader = (() => {
    const { localName, getAttribute, hasAttribute, hasAttributes, nodeType, firstChild, nextSibling, look, measure, boxed, styleOf, shadow, rectOf } = dom;
    const { Tree } = items;

    const SKIP = new Set(['script', 'style', 'template', 'noscript', 'head', 'title', 'meta', 'link', 'base', 'datalist', 'source', 'track',
      'param', 'col', 'colgroup', 'defs', 'desc', 'metadata', 'clipPath', 'mask', 'linearGradient', 'radialGradient', 'pattern', 'filter', 'br', 'wbr', 'rp']);
    // Elements without children that are painted.
    const EMPTY = new Set(['input', 'textarea', 'img', 'iframe', 'frame', 'embed', 'video', 'audio', 'canvas', 'hr', 'meter', 'progress', 'area']);
    // Elements whose text runs on in the line; all others part it.
    const RUNS = new Set(('a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q ruby rb rt rtc s samp small ' +
      'slot span strike strong sub sup time tt u var tspan textPath').split(' '));
    const SHAPES = new Set(['circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'rect', 'stop', 'use']);
    const SPEAKING = ['role', 'aria-label', 'aria-labelledby', 'tabindex', 'onclick'];
    const STATEFUL = new Set(['input', 'textarea', 'select', 'option', 'summary', 'button', 'meter', 'progress', 'details', 'dialog']);
    // What a walk knows of the part of the tree it is in.
    const HIDDEN = 1, QUIET = 2, ACT = 4, BARRED = 8, UNSEEN = 16, BEHIND = 32, FRONT = 64;

    // hand says whether the page shows a hand over the element: inherited, unless a rule or its own style may say otherwise.
    const hand = (el, name, attributes, f) => {
      if (!f.sheet.cursor.may(el, name) && !(attributes && ((getAttribute(el, 'style') ?? '').includes('cursor') || hasAttribute(el, 'part')))
        && !shadow(el) && !(f.kids && shadow(f.el))) return f.hand;
      return styleOf(el).cursor === 'pointer';
    };

    // reachable: a field that is not painted itself but is operated through a label that is.
    const reachable = (el, name) => name === 'input' && /^(checkbox|radio|file)$/.test(el.type) && dom.labels(el).some(l => look(l) === 2);

    // modalParts are the open modal dialogs and what they stand in: the rest of the page is inert.
    const modalParts = dialogs => {
      const open = new Set(dialogs), path = new Set();
      for (const d of open) for (let n = d; n; n = dom.parent(n)) path.add(n);
      return open.size ? { path, open } : null;
    };
    const MODAL = 'dialog:modal';
    const modalDialogs = root => { try { return [...dom.all(root, MODAL)].filter(d => look(d)); } catch { return []; } };

    // read walks from top and gives the root item, how many nodes there are and the frames among them.
    const read = ({ top, max, interactiveOnly, dialogs = modalDialogs(document) }) => {
      const modal = modalParts(dialogs), focus = states.focusedElement();
      const frames = [], late = []; // late: modal dialogs inside shadow roots, met on the way
      const closed = [];
      let owning = names.owning(document); // whether some tree seen so far moves elements by aria-owns
      let unseen = styles.of(document).unseen;
      const seenOwned = new Set();
      const named = labelsByReference(document, new Map());
      const tree = new Tree(max, interactiveOnly), root = tree.root;
      const stack = [];
      const enter = (el, node, flags, hand, sheet, label, owned) => {
        let kids = null, next = null;
        const inner = owned ? null : shadow(el);
        if (owned) kids = owned;
        else if (inner || owning || localName(el) === 'slot') {
          if (inner && names.owning(inner)) owning = true;
          if (inner) labelsByReference(inner, named);
          if (inner) for (const d of modalDialogs(inner)) if (!dialogs.includes(d)) late.push(d);
          kids = names.kids(el, inner ?? undefined);
          if (inner) { sheet = styles.of(inner); unseen ||= sheet.unseen; } else if (kids.length && localName(el) === 'slot') sheet = styles.of(dom.tree(kids[0]));
        } else next = firstChild(el);
        if (!inner && dom.custom(el)) closed.push(el);
        stack.push({ el, kids, at: 0, next, node, flags, hand, sheet, label, own: false, parts: false, first: true });
        return stack[stack.length - 1];
      };
      const start = top ?? document.documentElement;
      if (!start) return { root, total: 1, kept: 1, frames, closed };
      const above = top && dom.parent(top);
      enter(start, root, top && states.disabled(top) ? BARRED : 0, Boolean(above) && nodeType(above) === 1 && styleOf(above).cursor === 'pointer',
        styles.of(dom.tree(start)), null, [start]);

      while (stack.length) {
        const f = stack[stack.length - 1];
        let node;
        if (f.kids) node = f.at < f.kids.length ? f.kids[f.at++] : null;
        else { node = f.next; if (node) f.next = nextSibling(node); }
        if (!node) {
          stack.pop();
          if (f.parts) tree.part(f.node); else if (!f.own) tree.joint.push(f.el);
          if (f.own) { tree.close(f.node); if (f.inline) tree.joint.push(f.el); else if (f.node.up) tree.part(f.node.up); }
          continue;
        }
        const type = nodeType(node);
        if (type === 3) {
          if (f.flags & (HIDDEN | UNSEEN | BEHIND)) continue;
          const data = node.data;
          if (f.label && said(f.label, data)) continue;
          tree.append(f.node, data);
          continue;
        }
        if (type !== 1) continue;
        const el = node, name = localName(el);
        if (SKIP.has(name)) { if (name === 'br') f.node.run += ' '; continue; }
        const attributes = hasAttributes(el);
        if (SHAPES.has(name) && !firstChild(el) && !SPEAKING.some(a => hasAttribute(el, a))) continue;
        let flags = f.flags;
        if (name !== 'slot') {
          flags &= ~UNSEEN;
          const seen = !unseen && boxed(el) ? 2 : measure(el);
          if (seen === 0) {
            if (f.first && !f.kids && styleOf(el).display === '') closed.push(f.el); // the host shows something else
            if (!reachable(el, name)) continue;
          } else if (seen === 1) flags |= UNSEEN;
        }
        if (owning) { if (seenOwned.has(el)) continue; seenOwned.add(el); }
        if (modal && !(flags & FRONT)) {
          if (modal.open.has(el)) flags = flags & ~BEHIND | FRONT;
          else if (modal.path.has(el)) flags |= BEHIND;
          else continue;
        }
        if (attributes) {
          if (getAttribute(el, 'aria-hidden') === 'true') flags |= HIDDEN;
          if (hasAttribute(el, 'inert')) continue;
          if (states.bars(el)) flags |= BARRED;
        }
        const role = roles.asked(el);
        const widget = attributes || STATEFUL.has(name) || role !== 'generic' ? states.acts(el, role) : false;
        let acts = widget, pointed = f.hand;
        const label = name === 'label' ? el.control : null;
        if (!(flags & ACT) && !acts && name !== 'html' && name !== 'body' && name !== 'option' && !(flags & (UNSEEN | HIDDEN))) {
          pointed = hand(el, name, attributes, f);
          if (pointed && !f.hand && !(label && (look(label) || reachable(label, 'input')))) acts = true;
        }
        f.first = false;
        const wanted = acts || role === 'iframe' || !interactiveOnly && (role === 'generic' ? attributes && authored(el, name) : role !== 'none');
        let listed = wanted;
        if (flags & (UNSEEN | BEHIND)) listed = false;
        else if (flags & HIDDEN) listed = acts && widget && paintedSize(el);
        else if (flags & QUIET) listed = widget || role === 'iframe' || wanted && (hasAttribute(el, 'role') || role === 'img' && names.of(el) !== '');
        const runs = RUNS.has(name);
        if (!runs) tree.part(f.node); else if (f.node.run) tree.joint.push(el);
        let into = f.node;
        if (listed) {
          into = tree.list(el, role, f.node);
          if (!(flags & UNSEEN) && firstChild(el)) look.note(el, 2); // its name will ask
          into.acts = acts;
          into.hidden = (flags & HIDDEN) !== 0;
          if (into.at >= 0) {
            if (attributes || STATEFUL.has(name)) into.states = states.of(el, role, focus, (flags & BARRED) !== 0);
            else if (role === 'heading') into.states = { level: states.level(el, role) };
            else if (acts && flags & BARRED) into.states = { disabled: true };
            if ((role === 'listitem' || role === 'treeitem') && !into.states.level) into.states = { ...into.states, level: depth(into, role) };
          }
          into.quiet = acts && names.FROM_CONTENT.has(role) || roles.LEAF.has(role);
          if (acts) for (let up = f.node; up && !up.holdsActing; up = up.up) up.holdsActing = true;
          if (role === 'iframe' && into.at >= 0) frames.push(into);
        }
        if (EMPTY.has(name) || role === 'iframe') continue;
        if (acts) flags |= ACT;
        if (listed && (roles.LEAF.has(role) || role === 'textbox' || role === 'searchbox')) flags |= QUIET;
        const told = label ? spoken(label) : named.size && named.has(el) ? spoken(named.get(el)) : f.label;
        const only = firstChild(el);
        if (only && nodeType(only) === 3 && !nextSibling(only) && !owning && name !== 'slot' && !shadow(el) && !dom.custom(el)) {
          // Most elements hold a text and nothing else: no need to go in.
          if (!(flags & (HIDDEN | UNSEEN | BEHIND)) && !(told && said(told, only.data))) tree.append(into, only.data);
          if (listed) { into.text = into.run.replace(SPACE, ' '); into.run = ''; }
          if (!runs) tree.part(f.node); else tree.joint.push(el);
          continue;
        }
        const below = enter(el, into, flags, pointed, f.sheet, told, null);
        below.own = listed;
        below.inline = runs;
        below.parts = !listed && !runs;
        if (listed && (role === 'textbox' || role === 'searchbox')) into.valued = true;
      }
      if (late.length) return read({ top, max, interactiveOnly, dialogs: dialogs.concat(late) });
      tree.close(root);
      return { root, total: tree.total, kept: tree.kept, frames, closed };
    };

    // labelsByReference maps the elements that aria-labelledby names to the control they label: the control says their text.
    const FIELD = /^(textbox|searchbox|combobox|spinbutton|slider|checkbox|radio|switch|listbox|button|link|img|progressbar|meter)$/;
    const labelsByReference = (root, into) => {
      for (const el of dom.all(root, '[aria-labelledby]')) {
        if (!FIELD.test(roles.of(el)) || !look(el)) continue;
        for (const id of getAttribute(el, 'aria-labelledby').split(/\s+/)) {
          const to = dom.byId(el, id);
          if (to && to !== el && !into.has(to) && !dom.contains(to, el)) into.set(to, el);
        }
      }
      return into;
    };
    // depth is how deep a list or tree item lies.
    const depth = (n, role) => {
      const counted = role === 'listitem' ? 'list' : 'treeitem';
      let level = role === 'listitem' ? 0 : 1;
      for (let up = n.up; up; up = up.up) if (up.role === counted) level++;
      return Math.max(level, 1);
    };
    // authored: an element without a role whose author gave it a name.
    const authored = (el, name) => name !== 'html' && name !== 'body' && name !== 'slot'
      && (roles.filled(el, 'aria-label') || hasAttribute(el, 'aria-labelledby') || name === 'abbr' && roles.filled(el, 'title')) && names.of(el) !== '';
    const paintedSize = el => { const b = rectOf(el); return b.width > 0 && b.height > 0; };
    // spoken is what a label's control is called; said tells whether a text of the label is in it.
    const spoken = control => look(control) || reachable(control, localName(control)) ? ` ${names.of(control)} ` : null;
    const said = (name, data) => { if (name === null) return false; const t = squash(data); return t === '' || name.includes(t); };

    return { read };
  })();

  // selectorHint is a short selector that a person could read; it need not be unique.
  const selectorHint = el => {
    const name = dom.localName(el), id = dom.getAttribute(el, 'id');
    if (id) return `#${CSS.escape(id)}`;
    const field = dom.getAttribute(el, 'name');
    return field ? `${name}[name=${JSON.stringify(field)}]` : name;
  };

  // snapshot: {max_nodes, interactive_only, root_ref, want: {nodes, outline, text}} → {title, url, nodes?, outline?, text?,
  // total, truncated, omitted, frames}. nodes[0] is the document; frames says where each frame stands in nodes and lines.
  ops.snapshot = args => dom.frozen(() => {
    const want = args.want ?? { nodes: true };
    let top = null;
    if (args.root_ref) {
      top = refs.get(args.root_ref);
      if (!top || !dom.isConnected(top)) throw fail('element_not_found', 'stale_ref', `${args.root_ref} is not in this document any more`, { element_ref: args.root_ref });
    }
    const { root, total, kept, frames, closed } = reader.read({ top, max: args.max_nodes ?? 0, interactiveOnly: args.interactive_only === true });
    const out = { title: document.title, url: document.URL, total, truncated: total > kept, omitted: [], frames: [] };
    root.told = squash(document.title);
    const places = new Map();
    if (want.nodes) out.nodes = flatten(root, places);
    const lines = new Map();
    if (want.outline) {
      const at = [];
      out.outline = outline.write(root, at);
      for (const { node, line } of at) lines.set(node, line);
    }
    for (const n of frames) {
      const place = { ref: refs.of(n.el) };
      if (places.has(n)) place.node = places.get(n);
      if (lines.has(n)) place.line = lines.get(n);
      out.frames.push(place);
    }
    if (want.text) out.text = dom.text(top ?? undefined);
    for (const el of dom.closedSigns(closed)) out.omitted.push({ element_ref: refs.of(el), selector_hint: selectorHint(el), kind: 'closed_shadow_root' });
    return out;
  });

  // flatten numbers the items in document order and writes them as the protocol's nodes.
  const flatten = (root, places) => {
    const nodes = [], stack = [[root, null]];
    while (stack.length) {
      const [n, parent] = stack.pop();
      const i = nodes.length;
      if (parent) parent.children.push(i);
      if (typeof n === 'string') { nodes.push({ i, role: 'text', name: squash(n), actionable: false, enabled: true, children: [] }); continue; }
      places.set(n, i);
      const node = { i, role: n.role, name: n.name(), actionable: n.acts && !n.states.disabled, enabled: !n.states.disabled, children: [] };
      if (!n.valued) { const text = squash(n.text); if (text) node.text = text; }
      if (n.el) {
        node.ref = refs.of(n.el);
        if (n.acts) node.selector_hint = selectorHint(n.el);
      }
      if (n.hidden) node.a11y_hidden = true;
      Object.assign(node, n.states);
      nodes.push(node);
      for (let k = n.items.length - 1; k >= 0; k--) stack.push([n.items[k], node]);
    }
    return nodes;
  };

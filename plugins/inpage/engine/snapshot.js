
  // snapshot reads the page: one walk down the flat tree, without recursion, that asks of each element no more than it must.
  const reader = (() => {
    const { localName, getAttribute, hasAttribute, nodeType, firstChild, nextSibling, look, measure, boxed, styleOf, shadow, rectOf } = dom;
    const hasAttributes = Function.prototype.call.bind(Element.prototype.hasAttributes);

    const SKIP = new Set(['script', 'style', 'template', 'noscript', 'head', 'title', 'meta', 'link', 'base', 'datalist', 'source', 'track',
      'param', 'col', 'colgroup', 'defs', 'desc', 'metadata', 'clipPath', 'mask', 'linearGradient', 'radialGradient', 'pattern', 'filter', 'br', 'wbr', 'rp']);
    // Elements without children that are painted.
    const EMPTY = new Set(['input', 'textarea', 'img', 'iframe', 'frame', 'embed', 'video', 'audio', 'canvas', 'hr', 'meter', 'progress', 'area']);
    // Elements whose text runs on in the line; all others part it.
    const RUNS = new Set(('a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q ruby rb rt rtc s samp small ' +
      'slot span strike strong sub sup time tt u var tspan textPath').split(' '));
    const SHAPES = new Set(['circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'rect', 'stop', 'use']);
    const STATEFUL = new Set(['input', 'textarea', 'select', 'option', 'summary', 'button', 'meter', 'progress', 'details', 'dialog']);
    // What holds blocks of text side by side; in all other nodes text runs on.
    const CONTAINERS = new Set(['document', 'main', 'region', 'article', 'banner', 'contentinfo', 'complementary', 'navigation', 'form', 'search',
      'group', 'dialog', 'alertdialog', 'tabpanel', 'feed', 'sectionheader', 'sectionfooter', 'figure', 'application', 'toolbar', 'generic', 'log', 'blockquote']);

    // What a walk knows of the part of the tree it is in.
    const HIDDEN = 1, QUIET = 2, ACT = 4, BARRED = 8, UNSEEN = 16, BEHIND = 32;

    // Item is a node of the snapshot: an element that says something. items holds its nodes and the texts between them.
    class Item {
      constructor(el, role, up) {
        this.el = el; this.role = role; this.up = up;
        this.items = NOTHING; this.text = ''; this.run = '';
        this.acts = false; this.hidden = false; this.holdsActing = false; this.kids = 0; this.texts = 0;
        this.gap = false; this.quiet = false; this.valued = false;
        this.states = NONE; this.at = 0; this.told = null;
      }
      name() { return this.told ??= this.el ? wellFormed(nameOf(this)) : ''; }
      authored() { const el = this.el; return Boolean(el) && hasAttributes(el) && (roles.filled(el, 'aria-label') || hasAttribute(el, 'aria-labelledby')) && this.name() !== ''; }
      shown() { return this.name() !== ''; }
      // contentName: something clickable that is no control is called by what it shows, if that is short and holds no control.
      contentName() { return this.role === 'generic' && !this.holdsActing && this.name() !== ''; }
    }
    const NONE = Object.freeze({});
    const NOTHING = Object.freeze([]);
    const put = (n, item) => { if (n.items === NOTHING) n.items = [item]; else n.items.push(item); };
    const LONGEST = 200;
    const nameOf = n => {
      const name = names.named(n.el, n.role);
      if (name || n.role !== 'generic' || !n.acts || n.holdsActing) return name;
      const text = n.items.length ? names.inner(n.el) : squash(n.text) || names.inner(n.el);
      return text.length <= LONGEST ? text : '';
    };

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
      const root = new Item(null, 'document', null);
      const modal = modalParts(dialogs), focus = states.focusedElement();
      const frames = [], late = []; // late: modal dialogs inside shadow roots, met on the way
      const closed = [];
      let owning = names.owning(document); // whether some tree seen so far moves elements by aria-owns
      let unseen = styles.of(document).unseen;
      const seenOwned = new Set();
      const named = labelsByReference(document, new Map());
      let total = 1, kept = 1;
      const limit = max > 0 ? max : Infinity;
      const list = (el, role, up) => {
        flush(up);
        total++;
        const n = new Item(el, role, up);
        n.gap = gap; gap = false;
        n.at = -1;
        if (kept < limit && up.at >= 0) { n.at = kept++; put(up, n); }
        up.kids++;
        return n;
      };
      // flush makes the text so far a node of its own. Its white space stays, for marks inside a line run on.
      let gap = false; // white space was between the last text or node and what comes now
      const flush = n => {
        const run = n.run;
        n.run = '';
        gap = false;
        if (!run) return;
        const text = run.replace(SPACE, ' ');
        if (text === ' ') { gap = true; return; }
        if (n.quiet) { n.text += text; return; }
        if (interactiveOnly) return;
        total++;
        n.texts++;
        if (kept < limit && n.at >= 0) { kept++; put(n, text); }
      };
      // close ends a node: the text of one that holds no other node is its own.
      const close = n => {
        if (n.kids === 0 && n.texts === 0) { n.text += n.run.replace(SPACE, ' '); n.run = ''; return; }
        flush(n);
        if (n.kids === 0 && n.texts === 1) {
          total--;
          if (n.items.length) { n.text = n.items[0]; n.items = NOTHING; kept--; }
        }
      };
      // part parts the text of a node where a block begins or ends: a container's goes on a new line.
      const part = n => { if (n.run) { if (CONTAINERS.has(n.role)) flush(n); else n.run += ' '; } };

      const joint = [];
      const append = (n, data) => {
        const run = n.run;
        if (run && joint.length && !/\s$/.test(run) && !/^\s/.test(data)) {
          for (let i = 0; i < joint.length && i < 6; i++) if (!styles.flows(joint[i])) { n.run += ' '; break; }
        }
        joint.length = 0;
        n.run += data;
      };

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
          if (f.parts) part(f.node); else if (!f.own) joint.push(f.el);
          if (f.own) { close(f.node); if (f.inline) joint.push(f.el); else if (f.node.up) part(f.node.up); }
          continue;
        }
        const type = nodeType(node);
        if (type === 3) {
          if (f.flags & (HIDDEN | UNSEEN | BEHIND)) continue;
          const data = node.data;
          if (f.label && said(f.label, data)) continue;
          append(f.node, data);
          continue;
        }
        if (type !== 1) continue;
        const el = node, name = localName(el);
        if (SKIP.has(name)) { if (name === 'br') f.node.run += ' '; continue; }
        const attributes = hasAttributes(el);
        if (SHAPES.has(name) && !firstChild(el) && !hasAttribute(el, 'role') && !hasAttribute(el, 'aria-label') && !hasAttribute(el, 'tabindex') && !hasAttribute(el, 'onclick')) continue;
        let flags = f.flags & ~UNSEEN;
        if (name === 'slot') { if (f.flags & UNSEEN) flags |= UNSEEN; } else {
          const seen = !unseen && boxed(el) ? 2 : measure(el);
          if (seen === 0) {
            if (f.first && !f.kids && styleOf(el).display === '') closed.push(f.el); // the host shows something else
            if (!reachable(el, name)) continue;
          } else if (seen === 1) flags |= UNSEEN;
        }
        if (owning) { if (seenOwned.has(el)) continue; seenOwned.add(el); }
        if (modal && !(flags & QUIET) && !modal.inside?.has(el)) {
          if (modal.open.has(el)) (modal.inside = modal.inside ?? new Set()).add(el);
          else if (!insideModal(stack, modal)) { if (!modal.path.has(el)) continue; flags |= BEHIND; }
        }
        if (modal?.open.has(el)) flags &= ~BEHIND;
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
        if (!runs) part(f.node); else if (f.node.run) joint.push(el);
        let into = f.node;
        if (listed) {
          into = list(el, role, f.node);
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
        if (EMPTY.has(name) || role === 'iframe') { continue; }
        if (acts) flags |= ACT;
        if (listed && (roles.LEAF.has(role) || role === 'textbox' || role === 'searchbox')) flags |= QUIET;
        const only = firstChild(el);
        if (only && nodeType(only) === 3 && !nextSibling(only) && !owning && name !== 'slot' && !shadow(el) && !dom.custom(el)) {
          // Most elements hold a text and nothing else: no need to go in.
          const told = label ? spoken(label) : named.size && named.has(el) ? spoken(named.get(el)) : f.label;
          if (!(flags & (HIDDEN | UNSEEN | BEHIND)) && !(told && said(told, only.data))) append(into, only.data);
          if (listed) { into.text = into.run.replace(SPACE, ' '); into.run = ''; }
          if (!runs) part(f.node); else joint.push(el);
          continue;
        }
        const below = enter(el, into, flags, pointed, f.sheet, label ? spoken(label) : named.size && named.has(el) ? spoken(named.get(el)) : f.label, null);
        below.own = listed;
        below.inline = runs;
        below.parts = !listed && !runs;
        if (listed && (role === 'textbox' || role === 'searchbox')) into.valued = true;
      }
      if (late.length) return read({ top, max, interactiveOnly, dialogs: dialogs.concat(late) });
      close(root);
      return { root, total, kept, frames, closed };
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
    const insideModal = (stack, modal) => { for (let i = stack.length - 1; i >= 0; i--) if (modal.open.has(stack[i].el)) return true; return false; };
    const paintedSize = el => { const b = rectOf(el); return b.width > 0 && b.height > 0; };
    // spoken is what a label's control is called; said tells whether a text of the label is in it.
    const spoken = control => look(control) || reachable(control, localName(control)) ? ` ${names.of(control)} ` : null;
    const said = (name, data) => { if (name === null) return false; const t = squash(data); return t === '' || name.includes(t); };

    return { read, Item };
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


  // reader reads the page: one walk down the flat tree, without recursion, that asks of each element no more than it must.
  const reader = (() => {
    const { localName, getAttribute, hasAttribute, hasAttributes, nodeType, firstChild, nextSibling, look, measure, boxed, styleOf, shadow, rectOf } = dom;
    const { Tree } = items;

    // What a walk must know of a tag. SKIP: nothing of it is shown. EMPTY: it has no children that are painted. RUNS: its text runs
    // on in the line; all others part it. SHAPE: a drawing. STATEFUL: it has states without an attribute. HOST: it may have
    // a shadow root. KNOWN: it was looked up before.
    const SKIP = 1, EMPTY = 2, RUNS = 4, SHAPE = 8, STATEFUL = 16, ROOTS = 32, HOST = 64, KNOWN = 128;
    const TRAITS = new Map();
    for (const [trait, tags] of [
      [SKIP, 'script style template noscript head title meta link base datalist source track param col colgroup defs desc metadata ' +
        'clipPath mask linearGradient radialGradient pattern filter br wbr rp'],
      [EMPTY, 'input textarea img iframe frame embed video audio canvas hr meter progress area'],
      [RUNS, 'a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q ruby rb rt rtc s samp ' +
        'small slot span strike strong sub sup time tt u var tspan textPath'],
      [SHAPE, 'circle ellipse line path polygon polyline rect stop use'],
      [STATEFUL, 'input textarea select option summary button meter progress details dialog'],
      [ROOTS, 'html body option'],
    ]) for (const tag of tags.split(' ')) TRAITS.set(tag, TRAITS.get(tag) | trait);
    const traitsOf = name => {
      let traits = TRAITS.get(name) | 0;
      if (!(traits & KNOWN)) TRAITS.set(name, traits |= KNOWN | (dom.mayHost(name) ? HOST : 0));
      return traits;
    };
    const SPEAKING = ['role', 'aria-label', 'aria-labelledby', 'tabindex', 'onclick'];

    // speaking says whether an attribute of an element may change its role, name or state: all but these few may.
    const MUTE = new Set(['class', 'id', 'style', 'slot', 'part', 'dir', 'lang']);
    const attributeNames = Function.prototype.call.bind(Element.prototype.getAttributeNames);
    const speaking = el => {
      for (const a of attributeNames(el)) if (!MUTE.has(a) && !a.startsWith('data-')) return true;
      return false;
    };

    // What a walk knows of the part of the tree it is in.
    const HIDDEN = 1, QUIET = 2, ACT = 4, BARRED = 8, UNSEEN = 16, BEHIND = 32, FRONT = 64, SAID = 128, AWAY = -1;
    const UNREAD = HIDDEN | UNSEEN | BEHIND;

    // Walk goes down from top and fills a tree. Its frames are the elements that it is inside of.
    class Walk {
      constructor({ top, max, interactiveOnly, dialogs }) {
        this.dialogs = dialogs;
        this.late = []; // modal dialogs inside shadow roots, met on the way
        this.modal = modalParts(dialogs);
        this.focus = states.focusedElement();
        this.controlsOnly = interactiveOnly;
        this.tree = new Tree(max, interactiveOnly);
        this.frames = [];
        this.closed = [];
        this.owning = names.owning(document); // whether some tree seen so far moves elements by aria-owns
        this.owned = new Set();
        this.unseen = styles.of(document).unseen;
        this.named = labelsByReference(document, new Map());
        this.stack = [];
        const start = top ?? document.documentElement;
        if (!start) return;
        const above = top && dom.parent(top), hand = Boolean(above) && nodeType(above) === 1 && styleOf(above).cursor === 'pointer';
        this.push(start, null, [start], null, this.tree.root, top && states.disabled(top) ? BARRED : 0, hand, styles.of(dom.tree(start)), null);
      }

      run() {
        const { stack } = this;
        while (stack.length) {
          const f = stack[stack.length - 1];
          let node;
          if (f.kids) node = f.at < f.kids.length ? f.kids[f.at++] : null;
          else { node = f.next; if (node) f.next = nextSibling(node); }
          if (!node) { this.leave(f); continue; }
          const type = nodeType(node);
          if (type === 3) {
            if (f.flags & UNREAD) continue;
            const data = node.data;
            if (!(f.label && said(f.label, data))) this.tree.append(f.node, data);
          } else if (type === 1) this.element(f, node);
        }
        this.tree.close(this.tree.root);
      }

      // enter goes into an element, whose nodes are listed below node. next is its first child.
      enter(el, name, inner, next, node, flags, hand, sheet, label) {
        let kids = null;
        if (inner || this.owning || name === 'slot') {
          if (inner) this.root(inner);
          kids = names.kids(el, inner ?? undefined);
          if (inner) { sheet = styles.of(inner); this.unseen ||= sheet.unseen; } else if (kids.length && name === 'slot') sheet = styles.of(dom.tree(kids[0]));
        }
        if (!inner && name.includes('-') && dom.custom(el)) this.closed.push(el);
        return this.push(el, inner, kids, next, node, flags, hand, sheet, label);
      }

      push(el, inner, kids, next, node, flags, hand, sheet, label) {
        const f = { el, inner, kids, at: 0, next, node, flags, hand, sheet, label, own: false, inline: false, parts: false, first: true };
        this.stack.push(f);
        return f;
      }

      // root takes in what a shadow root may change.
      root(inner) {
        if (names.owning(inner)) this.owning = true;
        labelsByReference(inner, this.named);
        for (const d of modalDialogs(inner)) if (!this.dialogs.includes(d)) this.late.push(d);
      }

      leave(f) {
        this.stack.pop();
        if (f.own) {
          this.tree.close(f.node);
          if (f.inline) this.tree.joint.push(f.el); else if (f.node.up) this.tree.part(f.node.up);
        } else if (f.parts) this.tree.part(f.node); else this.tree.joint.push(f.el);
      }

      // element takes an element below f: it is left away, listed, or passed through.
      element(f, el) {
        const name = localName(el), traits = traitsOf(name);
        if (traits & SKIP) { if (name === 'br') f.node.run += ' '; return; }
        const attributes = hasAttributes(el);
        const speaks = attributes && speaking(el);
        if (traits & SHAPE && !firstChild(el) && !(speaks && SPEAKING.some(a => hasAttribute(el, a)))) return;
        const flags = this.flags(f, el, name, speaks);
        if (flags === AWAY) return;
        const role = roles.asked(el, speaks);
        const widget = (speaks || traits & STATEFUL || role !== 'generic') && states.acts(el, role, speaks);
        const label = name === 'label' ? el.control : null;
        const inner = traits & HOST ? shadow(el) : null;
        let acts = widget, pointed = f.hand;
        if (!acts && !(flags & (ACT | UNSEEN | HIDDEN)) && !(traits & ROOTS)) {
          pointed = hand(el, name, attributes, inner, f);
          if (pointed && !f.hand && !(label && (look(label) || reachable(label, 'input')))) acts = true;
        }
        f.first = false;
        const listed = this.lists(el, name, role, speaks, widget, acts, flags), runs = (traits & RUNS) !== 0;
        if (!runs) this.tree.part(f.node); else if (f.node.run) this.tree.joint.push(el);
        const into = listed ? this.list(f, el, role, speaks || traits & STATEFUL || el === this.focus, acts, flags) : f.node;
        if (traits & EMPTY || role === 'iframe') return;
        const below = acts ? flags | ACT : flags;
        this.below(f, el, name, traits, role, into, inner, below, pointed, label, listed, runs);
      }

      // flags are those of f, changed by what the element says of itself; AWAY leaves it and all below it out.
      flags(f, el, name, speaks) {
        let flags = f.flags;
        if (name !== 'slot') {
          flags &= ~UNSEEN;
          const seen = !this.unseen && boxed(el) ? 2 : measure(el);
          if (seen === 0) {
            if (f.first && !f.kids && styleOf(el).display === '') this.closed.push(f.el); // the host shows something else
            if (!reachable(el, name)) return AWAY;
          } else if (seen === 1) flags |= UNSEEN;
          else if (flags & SAID) look.note(el, 2); // The name that it is part of will ask.
        }
        if (this.owning) { if (this.owned.has(el)) return AWAY; this.owned.add(el); }
        if (this.modal && !(flags & FRONT)) {
          if (this.modal.open.has(el)) flags = flags & ~BEHIND | FRONT;
          else if (this.modal.path.has(el)) flags |= BEHIND;
          else return AWAY;
        }
        if (speaks) {
          if (getAttribute(el, 'aria-hidden') === 'true') flags |= HIDDEN;
          if (hasAttribute(el, 'inert')) return AWAY;
          if (states.bars(el)) flags |= BARRED;
        }
        return flags;
      }

      // lists says whether an element is a node of the tree.
      lists(el, name, role, speaks, widget, acts, flags) {
        if (flags & (UNSEEN | BEHIND)) return false;
        if (flags & HIDDEN) return acts && widget && paintedSize(el);
        const wanted = acts || role === 'iframe' || !this.controlsOnly && (role === 'generic' ? speaks && authored(el, name) : role !== 'none');
        if (!(flags & QUIET)) return wanted;
        return widget || role === 'iframe' || wanted && (hasAttribute(el, 'role') || role === 'img' && names.of(el) !== '');
      }

      // list makes an element a node of the tree.
      list(f, el, role, stateful, acts, flags) {
        const into = this.tree.list(el, role, f.node);
        into.acts = acts;
        into.hidden = (flags & HIDDEN) !== 0;
        into.quiet = acts && names.FROM_CONTENT.has(role) || roles.LEAF.has(role);
        if (acts) for (let up = f.node; up && !up.holdsActing; up = up.up) up.holdsActing = true;
        if (into.at < 0) return into;
        if (stateful) into.states = states.of(el, role, this.focus, (flags & BARRED) !== 0);
        else if (role === 'heading') into.states = { level: states.level(el, role) };
        else if (acts && flags & BARRED) into.states = { disabled: true };
        if ((role === 'listitem' || role === 'treeitem') && !into.states.level) into.states = { ...into.states, level: depth(into, role) };
        if (role === 'iframe') this.frames.push(into);
        return into;
      }

      // below goes on with what an element holds.
      below(f, el, name, traits, role, into, inner, flags, pointed, label, listed, runs) {
        const field = listed && (role === 'textbox' || role === 'searchbox');
        if (field || listed && roles.LEAF.has(role)) flags |= QUIET;
        if (listed && names.FROM_CONTENT.has(role)) flags |= SAID;
        const told = label ? spoken(label) : this.named.size && this.named.has(el) ? spoken(this.named.get(el)) : f.label;
        const only = firstChild(el);
        if (only && nodeType(only) === 3 && !nextSibling(only) && !inner && !this.owning && name !== 'slot' && !(name.includes('-') && dom.custom(el))) {
          // Most elements hold a text and nothing else: no need to go in.
          if (!(flags & UNREAD) && !(told && said(told, only.data))) this.tree.append(into, only.data);
          if (listed) { into.text = into.run.replace(SPACE, ' '); into.run = ''; into.alone = true; }
          if (!runs) this.tree.part(f.node); else this.tree.joint.push(el);
          return;
        }
        if (!only && traits & HOST && !inner && dom.unasked(el) && el.offsetHeight > 0) this.closed.push(el); // Something fills it.
        const inside = this.enter(el, name, inner, only, into, flags, pointed, f.sheet, told);
        inside.own = listed;
        inside.inline = runs;
        inside.parts = !listed && !runs;
        if (field) into.valued = true;
      }
    }

    // read walks from top and gives the root item, how many nodes there are and the frames among them.
    const read = ({ top, max, interactiveOnly }) => {
      for (let dialogs = modalDialogs(document); ;) {
        const walk = new Walk({ top, max, interactiveOnly, dialogs });
        walk.run();
        if (!top && !walk.unseen) dom.unveiled(); // The names that are asked for later need not ask of every part.
        if (!walk.late.length) return { root: walk.tree.root, total: walk.tree.total, kept: walk.tree.kept, frames: walk.frames, closed: walk.closed };
        dialogs = dialogs.concat(walk.late); // They make the rest of the page inert, so all is read anew.
      }
    };

    // hand says whether the page shows a hand over the element: inherited, unless a rule or its own style may say otherwise.
    const hand = (el, name, attributes, inner, f) => {
      if (!f.sheet.cursor.may(el, name, attributes) && !(attributes && (hasAttribute(el, 'style') && getAttribute(el, 'style').includes('cursor') || hasAttribute(el, 'part')))
        && !inner && !f.inner) return f.hand;
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
    const modalDialogs = root => { try { return [...dom.byTag(root, 'dialog')].filter(d => d.matches(':modal') && look(d)); } catch { return []; } };

    // labelsByReference maps the elements that aria-labelledby names to the control they label: the control says their text.
    const FIELD = /^(textbox|searchbox|combobox|spinbutton|slider|checkbox|radio|switch|listbox|button|link|img|progressbar|meter)$/;
    const labelsByReference = (root, into) => {
      for (const el of dom.bearers(root)['aria-labelledby']) {
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

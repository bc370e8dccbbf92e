
  // dom is the flat tree: what is painted, through open shadow roots, slots and closed roots that a provider handed over.
  // Properties are read through the prototypes' own getters, because a form hides its own behind fields of the same name.
  const dom = (() => {
    const getter = (proto, name) => {
      const get = Object.getOwnPropertyDescriptor(proto, name).get;
      return Function.prototype.call.bind(get);
    };
    const method = f => Function.prototype.call.bind(f);
    const parentNode = getter(Node.prototype, 'parentNode');
    const firstChild = getter(Node.prototype, 'firstChild');
    const nextSibling = getter(Node.prototype, 'nextSibling');
    const nodeType = getter(Node.prototype, 'nodeType');
    const localName = getter(Element.prototype, 'localName');
    const rootOf = getter(Element.prototype, 'shadowRoot');
    const assignedSlot = getter(Element.prototype, 'assignedSlot');
    const textSlot = getter(Text.prototype, 'assignedSlot');
    const getAttribute = method(Element.prototype.getAttribute);
    const hasAttribute = method(Element.prototype.hasAttribute);
    const hasAttributes = method(Element.prototype.hasAttributes);
    const getRootNode = method(Node.prototype.getRootNode);
    const isConnected = getter(Node.prototype, 'isConnected');
    const queryIn = root => nodeType(root) === 1 ? Element.prototype.querySelectorAll
      : nodeType(root) === 9 ? Document.prototype.querySelectorAll : DocumentFragment.prototype.querySelectorAll;
    const all = (root, css) => queryIn(root).call(root, css);
    // byTag lists the elements of a tree by their tag. A document keeps such lists.
    const byTag = (root, tag) => nodeType(root) === 9 ? Document.prototype.getElementsByTagName.call(root, tag) : all(root, tag);
    const rectOf = method(Element.prototype.getBoundingClientRect);
    const styleOf = (el, pseudo) => getComputedStyle(el, pseudo);
    const isElement = node => nodeType(node) === 1;

    // frozen runs fn while the document cannot change, so that what is measured or computed inside is so only once.
    // memo makes a function of an element that remembers its answers as long as the outermost frozen lasts; note tells it one.
    let frozenNow = false;
    const memories = [];
    const onThaw = clear => { memories.push({ clear }); };
    const still = () => frozenNow;
    const frozen = fn => {
      if (frozenNow) return fn();
      frozenNow = true;
      try { return fn(); } finally { frozenNow = false; for (const m of memories) m.clear(); }
    };
    const memo = compute => {
      const known = new Map();
      memories.push(known);
      const ask = el => {
        if (!frozenNow) return compute(el);
        let v = known.get(el);
        if (v === undefined) known.set(el, v = compute(el));
        return v;
      };
      ask.note = (el, v) => { if (frozenNow) known.set(el, v); };
      return ask;
    };

    // Closed roots: handed over by the driver (CDP, BiDi) or opened by an extension's own call. null says: asked, has none.
    const closedRoots = new WeakMap();
    const opener = globalThis.chrome?.dom?.openOrClosedShadowRoot
      ? el => { try { return chrome.dom.openOrClosedShadowRoot(el); } catch { return null; } }
      : 'openOrClosedShadowRoot' in Element.prototype ? el => el.openOrClosedShadowRoot : null;

    // HOSTS are the tags that may have a shadow root of a page's own, beside custom elements (DOM, attachShadow).
    const HOSTS = new Set(['article', 'aside', 'blockquote', 'body', 'div', 'footer', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'header', 'main',
      'nav', 'p', 'section', 'span']);
    // shadow is the element's shadow root, open, opened or adopted, or null. The browser's own widgets stay closed.
    const shadow = opener
      ? el => rootOf(el) ?? closedRoots.get(el) ?? (HOSTS.has(localName(el)) || localName(el).includes('-') ? opener(el) ?? null : null)
      : el => rootOf(el) ?? closedRoots.get(el) ?? null;

    // mayHost says whether an element of this tag can have one at all.
    const mayHost = name => HOSTS.has(name) || name.includes('-');

    // adopt makes a closed root part of the tree; adopt(host, null) says that the host has none.
    const adopt = (host, root) => { closedRoots.set(host, root ?? null); };

    // assigned is what a slot shows: the nodes put into it, or null when it shows its own children.
    const assigned = el => {
      if (localName(el) !== 'slot' || !(el instanceof HTMLSlotElement)) return null;
      const nodes = el.assignedNodes();
      return nodes.length ? nodes : null;
    };

    // children lists the flat-tree children of a node: of a host those of its root, of a slot what is assigned to it.
    const children = node => {
      let from = node;
      if (nodeType(node) === 1) {
        const nodes = assigned(node);
        if (nodes) return nodes;
        from = shadow(node) ?? node;
      }
      const out = [];
      for (let c = firstChild(from); c; c = nextSibling(c)) out.push(c);
      return out;
    };

    // slotOf is the slot that shows a node, also inside a closed root that was adopted.
    const slotOf = (node, host) => {
      const open = nodeType(node) === 1 ? assignedSlot(node) : nodeType(node) === 3 ? textSlot(node) : null;
      if (open || !host) return open;
      const root = shadow(host);
      if (!root || rootOf(host)) return null;
      for (const slot of all(root, 'slot')) if (slot.assignedNodes().includes(node)) return slot;
      return null;
    };

    // parent is the flat-tree parent element (or the document), null for a node that is shown nowhere.
    const parent = node => {
      const up = parentNode(node);
      if (!up) return null;
      if (nodeType(up) === 11) return up.host ?? null;
      if (nodeType(up) !== 1) return up;
      if (shadow(up)) return slotOf(node, up);
      return up;
    };

    // contains says whether inner is outer or lies below it in the flat tree.
    const contains = (outer, inner) => {
      for (let n = inner; n; n = parent(n)) if (n === outer) return true;
      return false;
    };

    // tree is the root (document or shadow root) whose ids and labels a node can name.
    const tree = node => getRootNode(node);

    // byId finds an element by id in the tree of a node, as IDREFs do.
    const byId = (node, id) => {
      const root = tree(node);
      return id && root.getElementById ? (nodeType(root) === 9 ? Document : DocumentFragment).prototype.getElementById.call(root, id) : null;
    };

    // labels lists the labels of a form control in document order. The browser's own `labels` searches the document anew
    // for every control, so the labels of a tree are gathered once.
    const gathered = memo(root => {
      const of = new Map();
      for (const label of byTag(root, 'label')) {
        const control = label.control;
        if (!control) continue;
        const list = of.get(control);
        if (list) list.push(label); else of.set(control, [label]);
      }
      return of;
    });
    const NONE = [];
    const labels = el => gathered(tree(el)).get(el) ?? NONE;

    // bearers lists the elements of a tree that bear an attribute which changes more than themselves, in document order.
    const BEARING = ['style', 'aria-owns', 'aria-labelledby'];
    const bearers = memo(root => {
      const out = Object.fromEntries(BEARING.map(a => [a, []]));
      for (const el of all(root, BEARING.map(a => `[${a}]`).join(','))) for (const a of BEARING) if (hasAttribute(el, a)) out[a].push(el);
      return out;
    });

    // hosts lists the elements with a reachable shadow root below root, in document order.
    const hosts = root => {
      const out = [];
      for (const el of all(root, '*')) if (shadow(el)) out.push(el);
      return out;
    };

    // queryAll is querySelectorAll through every reachable root, in document order (a host, its root, then its children).
    const queryAll = (css, under = document) => {
      let hits;
      try { hits = all(under, css); } catch (e) {
        throw fail('invalid_selector', '', `not a CSS selector: ${css}`, { selector: css, cause: String(e?.message ?? e) });
      }
      const out = [], own = nodeType(under) === 1 ? shadow(under) : null;
      if (own) out.push(...queryAll(css, own));
      const inside = hosts(under);
      if (!inside.length) { out.push(...hits); return out; }
      let h = 0;
      const follows = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;
      for (const hit of hits) {
        while (h < inside.length && follows(inside[h], hit)) out.push(...queryAll(css, shadow(inside[h++])));
        out.push(hit);
      }
      while (h < inside.length) out.push(...queryAll(css, shadow(inside[h++])));
      return out;
    };

    // look says how an element is painted: 0 not at all, 1 boxed but `visibility: hidden`, 2 seen by its style.
    // Only the style is asked: an element of size zero or outside the viewport is 2.
    const SEEN = { visibilityProperty: true, checkVisibilityCSS: true };
    const check = Element.prototype.checkVisibility && method(Element.prototype.checkVisibility);
    const measure = el => {
      if (check?.(el, SEEN)) return 2;
      if (check?.(el)) return 1;
      const style = styleOf(el);
      if (check ? style.display !== 'contents' : style.display === 'none' || !style.display) return stand(el);
      if (style.display === 'contents' || !check) {
        const up = parent(el);
        if (!up || nodeType(up) === 1 && !look(up)) return 0;
      }
      return style.visibility === 'visible' ? 2 : 1;
    };
    // stand finds who is painted in the place of an element that has no box of its own: an option's list, an area's image.
    const stand = el => {
      const name = localName(el);
      if (name === 'option' || name === 'optgroup') {
        const list = el.closest('select');
        return list && !hiddenByAuthor(el, list) ? look(list) : 0;
      }
      if (name === 'area') {
        const map = el.closest('map'), id = map && (getAttribute(map, 'name') || getAttribute(map, 'id'));
        const image = id && tree(el).querySelector(`img[usemap="#${CSS.escape(id)}"]`);
        return image ? look(image) : 0;
      }
      return 0;
    };
    const hiddenByAuthor = (el, upTo) => {
      for (let n = el; n && n !== upTo; n = parentNode(n)) if (hasAttribute(n, 'hidden') || n.style?.display === 'none') return true;
      return false;
    };
    // unveiled tells for the rest of a frozen time that no style sheet speaks of visibility: what has a box is seen then.
    let plain = false;
    onThaw(() => { plain = false; });
    const unveiled = () => { plain = frozenNow; };
    const look = memo(el => plain && boxed(el) ? 2 : measure(el));
    // boxed is the quick half of look: it has a box of its own.
    const boxed = el => check !== undefined && check(el);

    // rendered: the element has a box, or stands for one (`display: contents`, options, areas).
    const rendered = el => isConnected(el) && look(el) > 0;

    // visible: someone could see it. Its style shows it, and it or something in it takes up room.
    const visible = el => {
      if (!isConnected(el) || look(el) < 2) return false;
      const box = rectOf(el);
      if (box.width > 0 && box.height > 0) return true;
      for (const c of children(el)) {
        if (nodeType(c) === 1 ? visible(c) : nodeType(c) === 3 && textVisible(c)) return true;
      }
      return localName(el) === 'option' || localName(el) === 'area';
    };
    const textVisible = text => {
      if (!/\S/.test(text.data)) return false;
      const range = document.createRange();
      range.selectNodeContents(text);
      const box = range.getBoundingClientRect();
      return box.width > 0 && box.height > 0;
    };

    // text is what a person reads below a node: like innerText, but through shadow roots and slots. Nothing hidden is in it.
    // Parts of the page without shadow roots are left to innerText itself, which the browser computes fastest.
    const innerText = getter(HTMLElement.prototype, 'innerText');
    const BLOCK = /^(block|flex|grid|table|list-item|flow-root)/;
    const text = (node = document.body ?? document.documentElement) => frozen(() => {
      if (!node) return '';
      const type = nodeType(node);
      if (type === 3) { const up = parent(node); return up && look(up) === 2 ? node.data.replace(SPACE, ' ') : ''; }
      if (type !== 1 || !rendered(node)) return '';
      const spine = new Set();
      for (const host of deepHosts(node)) for (let n = host; n && !spine.has(n); n = parent(n)) { spine.add(n); if (n === node) break; }
      return spine.size || !(node instanceof HTMLElement) || assigned(node)
        ? tidy(pieces(node, spine)) : innerText(node);
    });
    const tidy = s => s.replace(/[\t ]*\n[\t ]*/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
    const deepHosts = under => {
      const out = shadow(under) ? [under] : [];
      for (const root of out.length ? [under, shadow(under)] : [under]) for (const h of hosts(root)) out.push(...deepHosts(h));
      return out;
    };
    const SILENT = new Set(['script', 'style', 'template', 'noscript', 'title', 'head']);
    const pieces = (top, spine) => {
      let out = '';
      const stack = [{ kids: children(top), at: 0, end: '' }];
      while (stack.length) {
        const frame = stack[stack.length - 1];
        if (frame.at === frame.kids.length) { out += frame.end; stack.pop(); continue; }
        const node = frame.kids[frame.at++], type = nodeType(node);
        if (type === 3) { const up = parentNode(node); if (nodeType(up) !== 1 || look(up) === 2) out += node.data.replace(SPACE, ' '); continue; }
        if (type !== 1 || SILENT.has(localName(node)) || !look(node)) continue;
        const brk = BLOCK.test(styleOf(node).display) ? '\n' : '';
        if (spine.has(node) || !(node instanceof HTMLElement) || localName(node) === 'slot') {
          out += brk;
          stack.push({ kids: children(node), at: 0, end: brk });
        } else if (localName(node) === 'br') out += '\n';
        else out += brk + innerText(node) + brk;
      }
      return out;
    };

    // closedCandidates lists elements that may hold a closed root nobody handed over yet, for a driver that can ask.
    // closedSigns keeps of them those that show signs of one: they paint, and none of their own children do.
    const plainHosts = [...HOSTS].filter(n => n !== 'body').join(','), emptyHosts = plainHosts.replaceAll(/\w+/g, '$&:empty');
    // unasked: it may have a closed root as far as anybody knows.
    const unasked = el => !closedRoots.has(el) && mayHost(localName(el)) && !shadow(el);
    const custom = el => localName(el).includes('-') && el instanceof HTMLElement && el.matches(':defined');
    const orphaned = el => {
      for (let c = firstChild(el); c; c = nextSibling(c)) {
        if (nodeType(c) === 1 && !SILENT.has(localName(c))) return styleOf(c).display === '';
      }
      return false;
    };
    const closedCandidates = (limit = 500) => {
      const out = [], visit = root => {
        for (const el of all(root, '*')) {
          if (out.length >= limit) return;
          const root = shadow(el);
          if (root) visit(root);
          else if (custom(el) && unasked(el)) out.push(el);
        }
        for (const el of all(root, emptyHosts)) {
          if (out.length >= limit) return;
          if (unasked(el) && el.offsetHeight > 0 && !out.includes(el)) out.push(el);
        }
        for (const el of all(root, plainHosts)) {
          if (out.length >= limit) return;
          if (firstChild(el) && unasked(el) && orphaned(el)) out.push(el);
        }
      };
      visit(document);
      return out;
    };
    const closedSigns = (among = closedCandidates()) => frozen(() => among.filter(el => {
      if (look(el) < 2) return false;
      if (!custom(el)) return orphaned(el);
      const box = rectOf(el);
      if (!(box.width > 0 && box.height > 0)) return false;
      for (let c = firstChild(el); c; c = nextSibling(c)) {
        if (nodeType(c) === 3 ? textVisible(c) : nodeType(c) === 1 && look(c) > 0) return false;
      }
      return true;
    }));

    return {
      text, labels, bearers, byTag, custom, mayHost, closedCandidates, closedSigns, unasked, children, parent, contains, shadow, adopt, assigned, queryAll, frozen, memo, onThaw, still, look, measure, boxed, unveiled, rendered, visible, byId, tree, hosts, all,
      firstChild, nextSibling, parentNode, nodeType, localName, getAttribute, hasAttribute, hasAttributes, rectOf, styleOf, isElement, isConnected,
      closedRoots,
    };
  })();

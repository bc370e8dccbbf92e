
  // selectorHint is a short selector that a person could read; it need not be unique.
  const selectorHint = el => {
    const name = dom.localName(el), id = dom.getAttribute(el, 'id');
    if (id) return `#${CSS.escape(id)}`;
    const field = dom.getAttribute(el, 'name');
    return field ? `${name}[name=${JSON.stringify(field)}]` : name;
  };

  // snapshot: {max_nodes, interactive_only, root_ref, want: {nodes, outline, text}} → {title, url, nodes?, outline?, text?,
  // total, truncated, omitted, frames, unopened}. roots: the driver can open closed roots; unopened counts where one may be.
  // nodes[0] is the document; frames says where each frame stands in nodes and lines.
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
    out.unopened = args.roots ? closed.filter(dom.unasked).length : 0;
    for (const el of dom.closedSigns(closed)) out.omitted.push({ element_ref: refs.of(el), selector_hint: selectorHint(el), kind: 'closed_shadow_root' });
    return out;
  });

  // flatten numbers the items in document order and writes them as the protocol's nodes. What is empty or does not hold is not said.
  const flatten = (root, places) => {
    const nodes = [], stack = [[root, null]];
    while (stack.length) {
      const [n, parent] = stack.pop();
      const i = nodes.length;
      if (parent) parent.children.push(i);
      if (typeof n === 'string') { nodes.push({ role: 'text', name: squash(n) }); continue; }
      if (n.role === 'iframe') places.set(n, i);
      const node = { role: n.role, name: n.name() };
      if (!n.valued && n.text) { const text = squash(n.text); if (text && text !== node.name) node.text = text; }
      if (n.el) {
        node.ref = refs.of(n.el);
        if (n.acts) {
          if (!n.states.disabled) node.actionable = true;
          node.selector_hint = selectorHint(n.el);
        }
      }
      if (n.hidden) node.a11y_hidden = true;
      if (n.states !== items.NONE) Object.assign(node, n.states);
      if (n.items.length) node.children = [];
      nodes.push(node);
      for (let k = n.items.length - 1; k >= 0; k--) stack.push([n.items[k], node]);
    }
    return nodes;
  };

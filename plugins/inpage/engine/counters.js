
  // counters tells what CSS counters show. It is asked only when generated content inside a name holds one, and then walks
  // the document once, in order, as CSS Lists 3 (counter scopes) says. A page too large for that shows no counters in names.
  const counters = (() => {
    const LARGEST = 5000;
    const pairs = (text, unset) => {
      const out = [];
      if (!text || text === 'none') return out;
      for (const [, name, n] of text.matchAll(/(-?[_a-zA-Z][-\w]*)(?:\s+(-?\d+))?/g)) out.push([name, n === undefined ? unset : +n]);
      return out;
    };

    const walk = dom.memo(root => {
      const seen = new Map();
      if (dom.all(root, '*').length > LARGEST) return seen;
      const scopes = new Map(); // name → instances, innermost last: {value, up: the parent whose children see it}
      const instances = name => { let s = scopes.get(name); if (!s) scopes.set(name, s = []); return s; };
      const create = (name, value, up) => {
        const s = instances(name), last = s[s.length - 1];
        if (last && last.up === up) last.value = value; else s.push({ value, up });
      };
      const innermost = (name, up) => { const s = instances(name); if (!s.length) s.push({ value: 0, up }); return s[s.length - 1]; };
      const apply = (style, up) => {
        for (const [name, n] of pairs(style.counterReset, 0)) create(name, n, up);
        for (const [name, n] of pairs(style.counterIncrement, 1)) innermost(name, up).value += n;
        for (const [name, n] of pairs(style.counterSet, 0)) innermost(name, up).value = n;
      };
      const pseudo = (el, which) => {
        const style = dom.styleOf(el, which);
        if (!style.content || style.content === 'none' || style.content === 'normal') return;
        apply(style, el);
        if (!style.content.includes('counter')) return;
        const values = new Map();
        for (const [name, s] of scopes) if (s.length) values.set(name, s.map(i => i.value));
        seen.set(el, { ...seen.get(el), [which]: values });
      };
      const leave = el => { for (const s of scopes.values()) while (s.length && s[s.length - 1].up === el) s.pop(); };
      const stack = [[root.documentElement ?? root, false]];
      while (stack.length) {
        const [el, done] = stack.pop();
        if (done) { pseudo(el, '::after'); leave(el); continue; }
        if (dom.nodeType(el) === 1) {
          if (!dom.look(el)) continue;
          apply(dom.styleOf(el), dom.parentNode(el));
          pseudo(el, '::before');
          stack.push([el, true]);
        }
        const below = [];
        for (let c = dom.firstChild(el); c; c = dom.nextSibling(c)) if (dom.nodeType(c) === 1) below.push([c, false]);
        while (below.length) stack.push(below.pop());
      }
      return seen;
    });

    // at is what `counter(name)` or `counters(name, "sep")` shows in a pseudo-element.
    const at = (el, which, token) => {
      const [, plural, name, separator] = /^counter(s?)\(\s*([-\w]+)\s*(?:,\s*"((?:[^"\\]|\\.)*)")?/.exec(token) ?? [];
      const values = walk(dom.tree(el)).get(el)?.[which]?.get(name);
      if (!values) return '';
      return plural ? values.join(separator ?? '.') : String(values[values.length - 1]);
    };

    return { at };
  })();

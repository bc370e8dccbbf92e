
  // styles reads the style sheets of a tree once, to know which elements a rule may give a hand cursor, generated content or
  // transformed letters. Asking the computed style of every element would cost more than all the rest of a snapshot.
  // Keys are as a browser's own rule hash: the classes, ids and tags of a selector's last compound. They may name too many
  // elements, never too few; a sheet that cannot be read (another origin's) may concern every element.
  const styles = (() => {
    const LARGEST = 30000;

    const UNIFORM = /^\s*[-\w]*(\.[-\w]+)*(::?(before|after))?(\s*,\s*[-\w]*(\.[-\w]+)*(::?(before|after))?)*\s*$/;
    // alike is a key that elements share to which the same rules of tags and classes apply; null where more than these may.
    const alike = el => {
      if (!dom.hasAttributes(el)) return dom.localName(el);
      if (dom.hasAttribute(el, 'style') || dom.hasAttribute(el, 'id') || dom.hasAttribute(el, 'part')) return null;
      return `${dom.localName(el)}.${dom.getAttribute(el, 'class') ?? ''}`;
    };

    class Keys {
      constructor() {
        this.any = false; this.every = false; this.ids = false; this.names = new Set(); this.classes = new Map();
        this.uniform = true; // whether tag and classes alone decide which rules match
        this.answers = new Map();
      }
      // add takes the last compound of every selector of a list.
      add(selectors) {
        this.any = true;
        for (const key of lastKeys(selectors)) if (key === '*') this.every = true; else { this.names.add(key); this.ids ||= key[0] === '#'; }
      }
      // take adds the selectors, where there are any. various: more than tag and classes decides, so that like elements may differ.
      take(selectors, various) { if (selectors) this.add(selectors); if (various) this.uniform = false; }
      all() { this.any = this.every = true; this.uniform = false; }
      // answer is what ask says of an element; of those with the same tag and classes one is asked, where these decide alone.
      answer(el, ask) {
        const same = this.uniform && dom.still() && !dom.shadow(el) ? alike(el) : null;
        if (same === null) return ask(el);
        let v = this.answers.get(same);
        if (v === undefined) this.answers.set(same, v = ask(el));
        return v;
      }
      // may says whether a rule may concern the element.
      may(el, name, attributes = true) {
        if (!this.any) return false;
        if (this.every || this.names.has(name)) return true;
        if (!attributes) return false;
        const id = this.ids && dom.getAttribute(el, 'id');
        if (id && this.names.has(`#${id}`)) return true;
        const classes = dom.getAttribute(el, 'class');
        if (!classes) return false;
        let known = this.classes.get(classes);
        if (known === undefined) this.classes.set(classes, known = classes.split(SPACE).some(c => this.names.has(`.${c}`)));
        return known;
      }
    }

    const unescape = s => s.replace(/\\([0-9a-fA-F]{1,6})\s?|\\(.)/g, (_, hex, c) => hex ? String.fromCodePoint(parseInt(hex, 16) || 0xfffd) : c);
    // lastKeys gives one key a selector: a class if the last compound has one, else its id, else its tag, else "*".
    const lastKeys = selectors => {
      let flat = selectors;
      for (let before = ''; before !== flat;) { before = flat; flat = flat.replace(/\([^()]*\)/g, ''); }
      flat = flat.replace(/\[[^\]]*\]/g, '[]');
      return flat.split(',').map(selector => {
        const last = selector.trim().split(/(?<!\\)[\s>+~]+/).pop().replace(/\[\]/g, '').replace(/(?<!\\)::?[-\w]+/g, '');
        if (/[&*|]/.test(last.replace(/\\./g, '')) && !/[.#]/.test(last)) return '*';
        const found = /\.((?:\\.|[^.#:\\&])+)/.exec(last);
        if (found) return `.${unescape(found[1])}`;
        const id = /#((?:\\.|[^.#:\\&])+)/.exec(last);
        if (id) return `#${unescape(id[1])}`;
        return /^[a-zA-Z][-\w]*$/.test(last) ? last.toLowerCase() : '*';
      });
    };

    // Values that are the same whatever element has them.
    const STRINGS = /^("(\\.|[^"\\])*"[\s/]*)+$/, TRANSFORM = /^(none|uppercase|lowercase|capitalize)$/;
    const EMPTY = /^(""|''|none|normal|)$/;
    // of is what the sheets of a document or shadow root can do: {cursor, before, after, transform, unseen}. unseen: some rule
    // speaks of `visibility`, so that a box may be there and not be painted.
    const of = dom.memo(root => {
      const found = { cursor: new Keys(), before: new Keys(), after: new Keys(), transform: new Keys(), unseen: false };
      let budget = LARGEST;
      const unknown = () => { found.cursor.all(); found.before.all(); found.after.all(); found.transform.all(); found.unseen = true; };
      const scan = (rules, outer, inside) => {
        for (const rule of rules) {
          if (--budget < 0) return unknown();
          let selectors = outer;
          const style = rule.style;
          if (style && style.length) {
            if (style.visibility) found.unseen = true;
            const hand = style.cursor, content = style.content, transform = style.textTransform;
            if (hand || content || transform || style.display) {
              const text = rule.selectorText ?? '', apart = inside || !UNIFORM.test(text || '*');
              // A nested rule speaks of its outer rule's elements where it says & or only adds pseudo-elements.
              selectors = text ? text.includes('&') && outer ? `${text},${outer}` : text : outer || '*';
              const front = selectors.includes(':before'), back = selectors.includes(':after');
              if (hand) found.cursor.add(selectors);
              if (front || back) {
                const makes = content && !EMPTY.test(content), various = apart || makes && !STRINGS.test(content);
                if (front) found.before.take(makes && selectors, various);
                if (back) found.after.take(makes && selectors, various);
              }
              if (transform) found.transform.take(transform !== 'none' && selectors, apart || !TRANSFORM.test(transform));
            }
          }
          if (rule.styleSheet) read(rule.styleSheet);
          else if (rule.cssRules?.length) scan(rule.cssRules, rule.selectorText ?? outer, inside || !(rule instanceof CSSMediaRule || rule instanceof CSSSupportsRule || rule instanceof CSSLayerBlockRule));
        }
      };
      const read = sheet => {
        if (sheet.disabled) return;
        let rules;
        try { rules = sheet.cssRules; } catch { return unknown(); }
        scan(rules, '', false);
      };
      for (const sheet of [...(root.styleSheets ?? []), ...(root.adoptedStyleSheets ?? [])]) read(sheet);
      for (const el of dom.bearers(root).style) {
        const style = dom.getAttribute(el, 'style');
        if (!found.transform.any && /text-transform/i.test(style)) found.transform.any = true;
        if (!found.unseen && /visibility/i.test(style)) found.unseen = true;
      }
      if (root.host) { // both are inherited into the root
        const outer = of(dom.tree(root.host));
        found.transform.any ||= outer.transform.any;
        found.unseen ||= outer.unseen;
      }
      return found;
    });

    // transformed is the text-transform of an element. Without a rule of its own it has its parent's.
    const own = el => dom.styleOf(el).textTransform || 'none';
    const transformed = dom.memo(el => {
      let tree = dom.tree(el), { transform } = of(tree);
      if (!transform.any) return 'none';
      const climbed = [];
      for (let n = el, i = 0; n && dom.nodeType(n) === 1 && i < 500; n = dom.parent(n), i++) {
        if (calm.has(n)) break;
        climbed.push(n);
        if (dom.tree(n) !== tree) { tree = dom.tree(n); ({ transform } = of(tree)); }
        if (transform.may(n, dom.localName(n)) || dom.shadow(n) || dom.hasAttribute(n, 'part') || (dom.getAttribute(n, 'style') ?? '').includes('text-transform')) {
          return n === el ? transform.answer(el, own) : own(el);
        }
      }
      if (dom.still()) for (const n of climbed) calm.add(n);
      return 'none';
    });
    // calm elements are known to have none, so that their children need not climb further.
    const calm = new Set();
    dom.onThaw(() => { calm.clear(); displays.clear(); });

    // flows says whether an element runs on in the line. Of elements with the same tag and class below the same tag and
    // class one is asked: it decides only about a space in a name.
    const INLINE = /^(inline|contents|ruby|none$|$)/, BOXED = /^inline-(block|flex|grid|table)/;
    const displays = new Map();
    const display = el => {
      const own = alike(el), up = own !== null && dom.parent(el), above = up && dom.nodeType(up) === 1 ? alike(up) : null;
      if (above === null) return dom.styleOf(el).display;
      const key = `${above}>${own}`;
      let d = displays.get(key);
      if (d === undefined) {
        d = dom.styleOf(el).display;
        if (dom.still()) displays.set(key, d);
      }
      return d;
    };
    const flows = el => { const d = display(el); return INLINE.test(d) && !BOXED.test(d); };

    return { of, transformed, flows };
  })();

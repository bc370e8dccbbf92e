
  // clock is the page's time and patience: nothing here polls faster than the page can change.
  const clock = (() => {
    const later = setTimeout, paint = requestAnimationFrame, perf = performance;
    const now = () => perf.now();
    const sleep = ms => new Promise(done => later(done, ms));
    // frame resolves after the next frame, or after 50 ms where frames do not come (a hidden page).
    const frame = () => new Promise(done => {
      let over = false;
      const end = () => { if (!over) { over = true; done(); } };
      paint(end);
      later(end, 50);
    });
    // change resolves when the document changes, at the latest after ms.
    const change = ms => new Promise(done => {
      const watch = new MutationObserver(() => end());
      let over = false;
      const end = () => { if (!over) { over = true; watch.disconnect(); done(); } };
      const what = { subtree: true, childList: true, attributes: true, characterData: true };
      watch.observe(document, what);
      later(end, ms);
    });
    return { now, sleep, frame, change };
  })();

  // target finds the element that a call means: {ref | selector | text | x, y}. Nothing here scrolls or acts.
  const target = (() => {
    const { nodeType, localName, getAttribute, hasAttribute, children, parent, look } = dom;

    // describe names an element for a person: `div#ov "Cookie notice"`.
    const hint = el => {
      if (!el) return 'nothing';
      const id = getAttribute(el, 'id'), cls = getAttribute(el, 'class')?.trim().split(/\s+/)[0];
      return localName(el) + (id ? `#${id}` : cls ? `.${cls}` : '');
    };
    const shorten = (s, n) => s.length > n ? `${s.slice(0, n - 1).replace(/[\ud800-\udbff]$/, '')}…` : s;
    const describe = el => {
      if (!el) return 'nothing';
      const words = shorten(squash((el === document.body || el === document.documentElement ? '' : dom.text(el)) || getAttribute(el, 'aria-label') || ''), 60);
      return hint(el) + (words ? ` "${words}"` : '');
    };
    const card = el => ({ element_ref: refs.of(el), role: roles.of(el), name: shorten(names.of(el), 80) });

    // hitAt is the innermost element painted at a point of the viewport, through every reachable shadow root.
    const hitAt = (x, y) => {
      let el = Document.prototype.elementFromPoint.call(document, x, y);
      for (;;) {
        const root = el && dom.shadow(el);
        const inner = root?.elementFromPoint(x, y);
        if (!inner || inner === el || inner.getRootNode() !== root) return el;
        el = inner;
      }
    };

    // actor is the nearest element at or above el that people act on, up to a limit.
    const acts = el => states.acts(el, roles.of(el));
    const actor = el => {
      for (let n = el; n && nodeType(n) === 1 && n !== document.body; n = parent(n)) if (acts(n)) return n;
      return null;
    };

    // controlOf gives the control that a label stands for.
    const controlOf = el => {
      for (let n = el; n && nodeType(n) === 1; n = parent(n)) {
        if (localName(n) === 'label') return n.control ?? null;
        if (acts(n)) return null;
      }
      return null;
    };
    // labelsOf lists the labels of a control that someone sees.
    const labelsOf = el => { try { return [...(el.labels ?? [])].filter(dom.visible); } catch { return []; } };

    // pick is what a person means by a text: the control of a label, the thing to act on that the text stands in, or the text's own element.
    const pick = el => controlOf(el) ?? actor(el) ?? el;

    // ---- text

    const BREAK = '\n', SILENT = new Set(['script', 'style', 'template', 'noscript', 'head', 'title', 'textarea', 'select', 'option', 'datalist', 'iframe', 'object', 'canvas', 'video', 'audio']);
    const INLINE = /^(inline|contents|ruby|$)/;
    // Elements that run on in the line unless a style says otherwise; all others part the text.
    const RUNS = new Set('a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q ruby rb rt s samp small slot span strike strong sub sup svg text tspan time tt u var wbr'.split(' '));
    const parts = el => !RUNS.has(localName(el)) || (hasAttribute(el, 'class') || hasAttribute(el, 'style')) && !INLINE.test(dom.styleOf(el).display);

    // book writes the visible text of the document into one string and remembers which element covers which part of it.
    const book = () => {
      const spans = [], pieces = [];
      let length = 0, last = BREAK, ink = 0; // ink counts pieces that are not blank
      const put = s => {
        let t = s.replace(/\s+/g, ' ');
        if (t[0] === ' ' && (last === ' ' || last === BREAK)) t = t.slice(1);
        if (!t) return;
        pieces.push(t);
        length += t.length;
        last = t[t.length - 1];
        if (t !== ' ') ink++;
      };
      const stop = () => { if (last !== BREAK) { pieces.push(BREAK); length++; last = BREAK; } };
      const stack = [];
      const enter = el => {
        const brk = parts(el);
        if (brk) stop();
        stack.push({ el, kids: children(el), at: 0, from: length, brk, ink });
      };
      const root = document.body ?? document.documentElement;
      if (root) enter(root);
      while (stack.length) {
        const top = stack[stack.length - 1];
        if (top.at === top.kids.length) {
          stack.pop();
          if (ink > top.ink) spans.push({ el: top.el, from: top.from, to: length });
          if (top.brk) stop();
          continue;
        }
        const node = top.kids[top.at++], type = nodeType(node);
        if (type === 3) { if (look(top.el) === 2 || localName(top.el) === 'slot') put(node.data); continue; }
        if (type !== 1 || SILENT.has(localName(node)) || !look(node)) continue;
        if (localName(node) === 'br') { stop(); continue; }
        enter(node);
      }
      return { text: pieces.join(''), spans };
    };

    // spots lists where words occur in a text.
    const spots = (text, words) => {
      const out = [];
      for (let i = text.indexOf(words); i >= 0; i = text.indexOf(words, i + words.length)) out.push(i);
      return out;
    };
    // cover is the innermost span that holds all of a spot. Spans are in the order of their ends, inner ones first.
    const cover = (spans, from, to) => {
      let lo = 0, hi = spans.length;
      while (lo < hi) { const mid = (lo + hi) >> 1; if (spans[mid].to < to) lo = mid + 1; else hi = mid; }
      for (; lo < spans.length; lo++) if (spans[lo].from <= from) return spans[lo];
      return null;
    };

    // NAMED are elements whose name is, or may be, something else than the text they show. Whoever acts around one is named by it too.
    const NAMED = '[aria-label],[aria-labelledby],[alt],[title],[placeholder],input,select,textarea,svg,fieldset,iframe,button input,a input';
    // TIES tell hits apart that look equally good to a text: a person means the one in the open dialog, that can be seen, is not
    // a silent copy, and can be acted on.
    const TIES = [
      () => { const open = dom.queryAll('dialog:modal,[aria-modal=true]').filter(dom.visible); return el => open.some(d => dom.contains(d, el)); },
      () => el => { const b = dom.rectOf(el); return b.right + scrollX > 0 && b.bottom + scrollY > 0; },
      () => el => { for (let n = el; n && nodeType(n) === 1; n = parent(n)) if (getAttribute(n, 'aria-hidden') === 'true') return false; return true; },
      () => el => states.enabled(el),
    ];
    const byText = query => dom.frozen(() => {
      const words = squash(query.replace(/\s+/g, ' '));
      if (!words) throw fail('invalid_request', '', 'text_query is empty', { field: 'text_query' });
      const { text: written, spans } = book(), text = wellFormed(written); // as a snapshot gave it
      const lower = words.toLowerCase();
      // tiers, best first: the whole text as it is written, the whole text in another case, a part of it.
      const tiers = [new Set(), new Set(), new Set()];
      const whole = s => { const t = squash(s); return t === words ? 0 : t.toLowerCase() === lower ? 1 : -1; };
      const low = text.toLowerCase();
      // Lower case may be longer than the text (İ); then only what is written alike is found.
      const places = low.length === text.length ? spots(low, lower) : spots(text, words);
      for (const at of places) {
        const span = cover(spans, at, at + words.length);
        if (!span) continue;
        const tier = whole(text.slice(span.from, span.to));
        tiers[tier < 0 ? 2 : tier].add(span.el);
      }
      const named = new Set();
      for (const el of dom.queryAll(NAMED)) {
        named.add(el);
        const around = actor(el);
        if (around) named.add(around);
      }
      for (const el of named) {
        const name = wellFormed(names.of(el));
        if (!name) continue;
        const tier = whole(name);
        if (tier >= 0) tiers[tier].add(el);
        else if (name.toLowerCase().includes(lower)) tiers[2].add(el);
      }
      for (const el of dom.queryAll('input[placeholder],textarea[placeholder]')) {
        if (el.value) continue; // Its placeholder is not seen.
        const tier = whole(el.placeholder);
        if (tier >= 0 || el.placeholder.toLowerCase().includes(lower)) tiers[tier >= 0 ? tier : 2].add(el);
      }
      const seen = el => dom.visible(el) || labelsOf(el).length > 0;
      for (const tier of tiers) {
        const hits = [...new Set([...tier].map(pick))].filter(el => seen(el) && !states.collapsed(el));
        if (!hits.length) continue;
        const able = hits.filter(acts);
        let best = able.length ? able : hits;
        // Of hits inside one another the innermost is meant.
        best = best.filter(el => !best.some(other => other !== el && dom.contains(el, other)));
        for (const rule of TIES) {
          if (best.length === 1) break;
          const better = best.filter(rule());
          if (better.length) best = better;
        }
        if (best.length === 1) return best[0];
        best.sort((a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
        throw fail('invalid_request', 'ambiguous_target', `${best.length} elements match the text "${shorten(words, 80)}" equally well; give the element_ref of one`,
          { candidates: best.slice(0, 10).map(card) });
      }
      return null;
    });

    // ---- refs

    // closest lists elements of this document with the role and name that a lost ref had.
    const closest = (role, name) => dom.frozen(() => {
      if (!role || role === 'document') return [];
      const out = [];
      for (const el of dom.queryAll('*')) {
        if (look(el) !== 2 || roles.of(el) !== role || names.of(el) !== name) continue;
        out.push(card(el));
        if (out.length === 5) break;
      }
      return out;
    });

    const byRef = (ref, was) => {
      const plain = String(ref).trim().replace(/^@/, '');
      const el = refs.documentOf(plain) === documentNumber() ? refs.get(plain) : null;
      if (el && dom.isConnected(el)) return el;
      const candidates = was ? closest(was.role, was.name) : [];
      throw fail('element_not_found', 'stale_ref', `the element of ${plain} is no longer in the page; take a new page.snapshot${candidates.length ? ' or use one of the candidates' : ''}`,
        { element_ref: plain, candidates });
    };

    // find gives the element, or null when it is not there yet. It throws for a stale ref, a bad selector and an ambiguous text.
    const find = t => {
      if (t.ref !== undefined) return byRef(t.ref, t.was);
      if (t.selector !== undefined) return dom.queryAll(t.selector)[0] ?? null;
      if (t.text !== undefined) return byText(t.text);
      if (t.focused) return edit.active();
      return hitAt(t.x, t.y);
    };
    const said = t => t.selector !== undefined ? `the selector ${t.selector}` : t.text !== undefined ? `the text "${shorten(t.text, 80)}"` : 'the target';

    const frameElements = () => dom.queryAll('iframe,frame,object,embed').filter(dom.rendered);
    const missing = t => {
      if (t.focused) return fail('element_not_found', 'nothing_focused', 'no element has the focus; give a target');
      if (t.x !== undefined) return fail('element_not_found', '', `there is nothing at ${t.x}, ${t.y}; the viewport is ${innerWidth} by ${innerHeight} CSS pixels`);
      const frames = t.selector !== undefined && frameElements().length ? '; if it stands in a frame, give the frame\'s element_ref as frame_ref' : '';
      return fail('element_not_found', '', `nothing matches ${said(t)}${frames || '; take a page.snapshot to see what is there'}`);
    };

    // wait finds the element, waiting for it until the deadline (of clock.now). With leave 'now' it does not wait, and with
    // 'frames' only for a moment when the document shows frames; the driver then looks elsewhere first.
    const wait = async (t, deadline, leave) => {
      const giveUp = clock.now() + (leave === 'frames' ? 150 : 0);
      for (;;) {
        const began = clock.now();
        const el = find(t);
        if (el) return el;
        const now = clock.now();
        if (t.focused || t.x !== undefined) throw missing(t);
        if (leave && now >= giveUp) {
          const frames = frameElements().map(refs.of);
          if (leave === 'now' || frames.length) throw fail('element_not_found', 'elsewhere', missing(t).message, { frames });
        }
        if (now >= deadline) throw missing(t);
        // A search that is dear is made more rarely.
        const rest = 3 * (now - began), end = leave && giveUp > now ? Math.min(giveUp, deadline) : deadline;
        await clock.change(Math.min(Math.max(rest, 100), end - now));
        if (rest > 60) await clock.sleep(Math.min(rest, Math.max(0, end - clock.now())));
      }
    };

    // textAround is the visible text of the document with a mark in the place of each frame, for a driver that puts its text there.
    const textAround = frames => dom.frozen(() => {
      const spine = new Set(), marks = new Map(frames.map(el => [el, `\ue000${refs.of(el)}\ue001`]));
      for (const el of frames) for (let n = parent(el); n && !spine.has(n); n = parent(n)) spine.add(n);
      let out = '';
      const stack = [{ kids: children(document.body ?? document.documentElement), at: 0, end: '' }];
      while (stack.length) {
        const top = stack[stack.length - 1];
        if (top.at === top.kids.length) { out += top.end; stack.pop(); continue; }
        const node = top.kids[top.at++], type = nodeType(node);
        if (type === 3) { out += dom.text(node); continue; }
        if (type !== 1 || !look(node)) continue;
        const end = parts(node) ? '\n' : '';
        if (marks.has(node)) out += `\n${marks.get(node)}\n`;
        else if (spine.has(node)) { out += end; stack.push({ kids: children(node), at: 0, end }); }
        else if (localName(node) === 'br') out += '\n';
        else if (!SILENT.has(localName(node))) out += end + dom.text(node) + end;
      }
      return out.replace(/[\t ]*\n[\t ]*/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
    });

    return { textAround, describe, hint, card, hitAt, actor, acts, controlOf, labelsOf, find, wait, closest, frameElements, shorten };
  })();

  // locate tells of a target without touching it: {ref, role, name, tag}.
  ops.locate = async ({ target: t, wait = 0, leave }) => {
    const el = await target.wait(t, clock.now() + wait, leave), card = target.card(el);
    return { ref: card.element_ref, role: card.role, name: card.name, tag: dom.localName(el) };
  };
  ops.closest = ({ role, name }) => target.closest(role, name);
  ops.frames = () => target.frameElements().map(refs.of);

  // read is snapshot with what a driver wants beside it: the places of frames in the text, and the HTML.
  ops.read = args => {
    const out = ops.snapshot(args);
    if (args.want?.text && !args.root_ref && out.frames.length) {
      out.text = target.textAround(out.frames.map(f => refs.get(f.ref)).filter(Boolean));
    }
    if (args.want?.html) out.html = page.html();
    if (args.want?.dom) out.dom = page.tree(args.max_nodes ?? 0);
    return out;
  };
  // about tells a person of a frame element that could not be read.
  ops.about = ({ ref }) => {
    const el = refs.get(ref);
    return el ? { selector_hint: selectorHint(el), url: el.src ?? el.data ?? '' } : {};
  };

  // page gives the document as it is, without passwords.
  const page = (() => {
    const html = () => {
      const root = document.documentElement;
      if (!root) return '';
      if (!dom.all(document, 'input[type=password][value]').length) return root.outerHTML;
      // The copy lives in a document without a window, so nothing in it loads or runs.
      const copy = document.implementation.createHTMLDocument('').importNode(root, true);
      for (const field of copy.querySelectorAll('input[type=password][value]')) field.removeAttribute('value');
      return copy.outerHTML;
    };
    // tree is the DOM as {tag, attributes, children} and strings, through shadow roots (`#shadow`), at the most max nodes.
    const tree = max => {
      let left = max > 0 ? max : Infinity;
      const root = { tag: '#document', children: [] }, stack = [[document, root]];
      while (stack.length && left > 0) {
        const [node, into] = stack.pop(), below = [];
        const add = (list, to) => {
          for (const c of list) {
            if (left <= 0) break;
            const type = dom.nodeType(c);
            if (type === 3) { if (/\S/.test(c.data)) { to.children.push(c.data); left--; } continue; }
            if (type !== 1) continue;
            const name = dom.localName(c), item = { tag: name };
            if (c.attributes?.length) {
              item.attributes = {};
              for (const a of c.attributes) if (!(a.name === 'value' && name === 'input' && c.type === 'password')) item.attributes[a.name] = a.value;
            }
            item.children = [];
            to.children.push(item);
            left--;
            below.push([c, item]);
          }
        };
        const shadow = dom.nodeType(node) === 1 && dom.shadow(node);
        if (shadow) { const item = { tag: '#shadow', children: [] }; into.children.push(item); add(shadow.childNodes, item); }
        add(node.childNodes, into);
        while (below.length) stack.push(below.pop());
      }
      return root;
    };
    return { html, tree };
  })();

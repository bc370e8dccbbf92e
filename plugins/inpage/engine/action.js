
  // guard watches for the input that the driver is about to send, and tells whether it reached its element. Input that
  // would land on another element because the page moved meanwhile is stopped before the page sees it, so the driver may
  // aim again. The listeners stand on the window from the start, ahead of the page's own.
  const guard = (() => {
    const PRESS = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'contextmenu', 'dblclick'];
    const MOVE = ['pointermove', 'mousemove', 'pointerover', 'mouseover'];
    const KEYS = ['keydown', 'keypress', 'keyup', 'beforeinput', 'input'];
    const DRAG = ['dragstart', 'dragover', 'drop', 'dragend'];
    const KINDS = { press: PRESS, move: MOVE, keys: KEYS, drop: [...DRAG, 'pointerup', 'mouseup', 'pointermove', 'mousemove'] };
    const STOP = new Set(PRESS);
    let armed = null, wake = null;

    // reached says whether an event at a hit counts for the element: it or something in it, its label, or the
    // link or control around it.
    const reached = (hit, el) => {
      if (!hit) return false;
      if (dom.contains(el, hit)) return true;
      for (const label of target.labelsOf(el)) {
        if (dom.contains(label, hit)) { const a = target.actor(hit); return !a || a === label || !dom.contains(label, a); }
      }
      return dom.contains(hit, el) && target.actor(el) === hit;
    };

    const place = e => {
      const first = e.composedPath()[0] ?? e.target;
      if (first?.nodeType !== 1) return first?.nodeType === 3 ? dom.parent(first) : null;
      return dom.shadow(first) && 'clientX' in e ? target.hitAt(e.clientX, e.clientY) ?? first : first;
    };

    // ask notes a click on a file input, which opens the browser's dialog of files; a script or a label may have made it.
    const ask = (a, e) => {
      const el = e.composedPath()[0] ?? e.target;
      if (el?.nodeType === 1 && dom.localName(el) === 'input' && el.type === 'file' && !el.disabled) a.asked = { el, e };
    };

    const see = e => {
      const a = armed;
      if (a && e.type === 'click') ask(a, e);
      if (!a || !a.types.has(e.type) || !(e.isTrusted || a.synthetic)) return;
      a.seen[e.type] = (a.seen[e.type] ?? 0) + 1;
      if (a.kind === 'press' || a.kind === 'move' || a.kind === 'drop') {
        const hit = a.el && (a.block || a.kind === 'press') ? reached(place(e), a.el) : true;
        if (a.kind === 'press') {
          // The first event of a press decides: the page may change under the later ones because of it.
          if (a.ok === null) { a.ok = hit || !a.block; if (!hit) a.other = target.describe(place(e)); }
          if (!a.ok && a.block) { e.preventDefault(); e.stopImmediatePropagation(); }
        } else if (a.el ? reached(place(e), a.el) : true) { a.ok = true; a.on[e.type] = true; }
      } else if (a.ok === null) a.ok = true;
      wake?.();
    };
    for (const type of new Set([...PRESS, ...KEYS])) addEventListener(type, see, true);
    // Moves and drags are many, so their listeners stand only while they are waited for.
    const listen = (on, types) => {
      for (const type of types) if (!STOP.has(type)) (on ? addEventListener : removeEventListener)(type, see, true);
    };

    const active = () => navigator.userActivation?.isActive === true;

    // arm starts to watch: kind press, move, keys or drop; el is what must be reached; force lets everything through.
    const arm = (kind, el, { force = false, synthetic = false } = {}) => {
      disarm();
      armed = { kind, el, types: new Set(KINDS[kind]), synthetic, block: !force, ok: null, seen: {}, on: {}, other: '', active: active() };
      if (kind !== 'press' && kind !== 'keys') listen(true, armed.types);
    };
    const disarm = () => {
      if (armed && armed.kind !== 'press' && armed.kind !== 'keys') listen(false, armed.types);
      armed = null;
    };

    // confirm tells what came, waiting a moment for it: {ok, seen, on, other, active, files}. ok is null when nothing came;
    // files is the ref of the input for which the browser was asked to choose files.
    const confirm = async (wait, until) => {
      const a = armed;
      if (!a) return { ok: null, seen: {}, on: {}, other: '', active: false };
      const end = clock.now() + wait, done = until ?? (s => s.ok !== null);
      while (!done(a) && clock.now() < end) {
        await Promise.race([new Promise(r => { wake = r; }), clock.sleep(end - clock.now())]);
        wake = null;
        await clock.sleep(0); // The page's listeners and what the browser does by itself come in the same task as ours.
      }
      if (armed === a) disarm();
      // A trusted press activates the window whoever hides the event; so one that was not active before got a press that we did not see.
      const files = a.asked && !a.asked.e.defaultPrevented ? refs.of(a.asked.el) : '';
      return { ok: a.ok, seen: a.seen, on: a.on, other: a.other, active: !a.active && active(), files };
    };
    return { arm, disarm, confirm, reached };
  })();

  // aim finds the point of an element where input reaches it, scrolling it there.
  const aim = (() => {
    const { localName, nodeType, children, rectOf } = dom;
    const refuse = (reason, message, details) => fail('element_not_actionable', reason, message, details);

    // area gives the box of an image map's area.
    const area = el => {
      const map = el.closest('map'), name = map && (map.name || map.id);
      const image = name && dom.tree(el).querySelector(`img[usemap="#${CSS.escape(name)}"]`);
      if (!image) return [];
      const box = rectOf(image), style = dom.styleOf(image);
      const left = box.left + parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft);
      const top = box.top + parseFloat(style.borderTopWidth) + parseFloat(style.paddingTop);
      const n = el.coords.split(/[\s,]+/).map(Number).filter(Number.isFinite);
      if (/^circ/i.test(el.shape)) return [new DOMRect(left + n[0] - n[2], top + n[1] - n[2], 2 * n[2], 2 * n[2])];
      if (/^default/i.test(el.shape)) return [box];
      const xs = n.filter((_, i) => i % 2 === 0), ys = n.filter((_, i) => i % 2 === 1);
      if (!xs.length || !ys.length) return [];
      return [new DOMRect(left + Math.min(...xs), top + Math.min(...ys), Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys))];
    };

    // boxes lists the boxes in which an element is painted: its own, one a line; or those of what is in it when it has none of its own.
    const boxes = (el, depth = 0) => {
      if (localName(el) === 'area') return area(el);
      const own = [...el.getClientRects()].filter(r => r.width > 0 && r.height > 0);
      if (own.length || depth > 8) return own;
      const out = [];
      for (const c of children(el)) {
        if (nodeType(c) === 1) { if (dom.look(c)) out.push(...boxes(c, depth + 1)); }
        else if (nodeType(c) === 3 && /\S/.test(c.data)) {
          const range = document.createRange();
          range.selectNodeContents(c);
          out.push(...[...range.getClientRects()].filter(r => r.width > 0 && r.height > 0));
        }
        if (out.length > 20) break;
      }
      return out;
    };

    // surfaces lists what stands for an element on the screen: itself, then its labels.
    const surfaces = el => [el, ...target.labelsOf(el)].filter(s => dom.look(s) === 2 || localName(s) === 'area');

    const view = () => {
      const root = document.documentElement, quirks = document.compatMode === 'BackCompat' ? document.body : null;
      return { width: (quirks ?? root).clientWidth || innerWidth, height: (quirks ?? root).clientHeight || innerHeight };
    };

    // SPOTS are shares of a box, the middle first.
    const SPOTS = [[.5, .5], [.25, .5], [.75, .5], [.5, .25], [.5, .75], [.1, .5], [.9, .5], [.2, .2], [.8, .2], [.2, .8], [.8, .8], [.03, .1], [.97, .1], [.03, .9], [.97, .9]];
    const round = (v, lo, hi) => { const r = Math.round(v); return r > lo + .5 && r < hi - .5 ? r : v; };
    const points = box => {
      const { width, height } = view();
      const left = Math.max(box.left, 0), top = Math.max(box.top, 0), right = Math.min(box.right, width), bottom = Math.min(box.bottom, height);
      if (right - left < .5 || bottom - top < .5) return [];
      return SPOTS.map(([u, v]) => ({ x: round(left + u * (right - left), left, right), y: round(top + v * (bottom - top), top, bottom) }));
    };

    // outline gives points on the lines that a drawing consists of: one that is not filled has nothing in its middle.
    const outline = el => {
      if (el.namespaceURI !== 'http://www.w3.org/2000/svg') return [];
      const { width, height } = view(), out = [];
      for (const shape of [el, ...el.querySelectorAll('path,circle,ellipse,line,polyline,polygon,rect')].slice(0, 8)) {
        const to = shape.getTotalLength && shape.getScreenCTM();
        if (!to) continue;
        const length = shape.getTotalLength();
        for (const share of [0, .5, .25, .75, .125, .625]) {
          const { x, y } = shape.getPointAtLength(share * length).matrixTransform(to);
          if (x >= 0 && y >= 0 && x < width && y < height) out.push({ x, y });
        }
      }
      return out;
    };

    // candidates are the points to try, one by one: most elements are hit at the first.
    const candidates = function* (surface, list) {
      for (const box of list) yield* points(box);
      yield* outline(surface);
    };

    // spot looks for a point where the hit test reaches the element. Points on another control inside it come last.
    const spot = el => {
      let second = null, cover = null;
      for (const surface of surfaces(el)) {
        const list = boxes(surface).sort((a, b) => b.width * b.height - a.width * a.height).slice(0, 8);
        for (const point of candidates(surface, list)) {
          const hit = target.hitAt(point.x, point.y);
          if (!guard.reached(hit, el)) { cover ??= hit; continue; }
          const inner = hit === el ? el : target.actor(hit);
          if (inner && inner !== el && inner !== surface && dom.contains(el, inner)) { second ??= point; continue; }
          return { point };
        }
      }
      return second ? { point: second } : { cover };
    };

    const signature = el => surfaces(el).map(s => boxes(s).slice(0, 4).map(b => `${b.left.toFixed(1)},${b.top.toFixed(1)},${b.width.toFixed(1)},${b.height.toFixed(1)}`).join(';')).join('|');

    // still waits until the element keeps its place for two frames; false when it has not by then.
    const still = async (el, deadline) => {
      let last = signature(el);
      for (;;) {
        await clock.frame();
        const now = signature(el);
        if (now === last) return true;
        if (clock.now() > deadline) return false;
        last = now;
      }
    };

    // bring scrolls the element into the middle (or another place) of every pane around it, at once.
    const bring = (el, block) => {
      const s = surfaces(el)[0] ?? el;
      const of = boxes(s).length || !dom.children(s).length ? s : [...children(s)].find(c => nodeType(c) === 1) ?? s;
      of.scrollIntoView({ block, inline: block === 'center' ? 'center' : 'nearest', behavior: 'instant' });
    };

    // shift scrolls the pane around the element, so that its middle stands at a share of the pane's height: between two bars.
    const shift = (el, share) => {
      const box = boxes(surfaces(el)[0] ?? el)[0], pane = panes.of(dom.parent(el) ?? el, 'y');
      if (!box) return;
      const frame = pane === panes.root() ? { top: 0, height: view().height } : rectOf(pane);
      pane.scrollBy({ top: box.top + box.height / 2 - (frame.top + frame.height * share), behavior: 'instant' });
    };

    // shown refuses what nobody can see.
    const shown = el => {
      const all = surfaces(el);
      if (!all.length) throw refuse('not_visible', `${target.describe(el)} is not visible`, { element_ref: refs.of(el) });
      if (!all.some(s => boxes(s).length)) throw refuse('zero_size', `${target.describe(el)} has no size`, { element_ref: refs.of(el) });
    };

    const usable = el => {
      if (localName(el) === 'option' && states.collapsed(el)) {
        throw refuse('not_visible', 'an option of a closed list cannot be clicked; use page.select on its list', { element_ref: refs.of(el) });
      }
      if (states.disabled(el)) throw refuse('disabled', `${target.describe(el)} is disabled`, { element_ref: refs.of(el) });
    };

    const covered = (el, cover) => refuse('covered', `${target.describe(el)} is covered by ${target.describe(cover)}`,
      { element_ref: refs.of(el), covered_by: target.describe(cover), covered_by_ref: cover ? refs.of(cover) : '' });

    // reach makes one attempt: {point, moving?}. It throws why not. quick leaves out the scrolling.
    const reach = async (el, { force, deadline, quick }) => {
      if (localName(el) === 'option') usable(el);
      if (!force) usable(el);
      shown(el);
      const stillUntil = Math.min(deadline, clock.now() + 1500);
      let steady = force || await still(el, stillUntil);
      if (!dom.isConnected(el)) return null;
      let got = spot(el);
      if (!got.point && !quick) for (const place of ['center', 'start', 'end', 'nearest', .3, .7, .2, .8]) {
        if (typeof place === 'string') bring(el, place); else shift(el, place);
        await clock.frame();
        if (!force && steady) steady = await still(el, stillUntil);
        got = spot(el);
        if (got.point || force && inside(el)) break;
      }
      if (!dom.isConnected(el)) return null;
      if (!got.point) {
        if (force) { const point = inside(el); if (point) return { point }; }
        if (got.cover === null && !inside(el)) throw refuse('not_visible', `${target.describe(el)} cannot be scrolled into view`, { element_ref: refs.of(el) });
        throw covered(el, got.cover);
      }
      return steady ? got : { ...got, ...await predict(el, got.point), moving: true };
    };
    // inside is some point of the element in the viewport, whatever covers it.
    const inside = el => { for (const s of surfaces(el)) for (const b of boxes(s)) { const p = points(b)[0]; if (p) return p; } return null; };

    // predict tells where the point of a moving element goes, in CSS pixels a millisecond.
    const predict = async (el, point) => {
      const a = (surfaces(el)[0] ?? el).getBoundingClientRect(), t0 = clock.now();
      await clock.frame();
      await clock.frame();
      const b = (surfaces(el)[0] ?? el).getBoundingClientRect(), dt = Math.max(1, clock.now() - t0);
      const now = spot(el).point ?? { x: point.x + b.x - a.x, y: point.y + b.y - a.y };
      return { point: now, vx: (b.x - a.x) / dt, vy: (b.y - a.y) / dt };
    };

    // PATIENCE is how long a reason must hold before it is believed, in milliseconds.
    const PATIENCE = { covered: 2500, disabled: 1000, not_visible: 3000, zero_size: 3000 };

    // prepare waits until the target can be acted on and gives the element and the point.
    const prepare = async (t, { wait = 0, force = false, leave = false, quick = false, redirect }) => {
      const deadline = clock.now() + wait;
      let why = '', since = 0;
      for (;;) {
        let el = await target.wait(t, deadline, leave);
        if (redirect) el = redirect(el);
        try {
          const got = await reach(el, { force, deadline, quick });
          if (got) return { el, ...got };
        } catch (e) {
          if (!(e instanceof EngineError) || e.code !== 'element_not_actionable') throw e;
          if (localName(el) === 'option') throw e;
          const now = clock.now();
          if (e.reason !== why) { why = e.reason; since = now; }
          if (now >= deadline || now - since >= (PATIENCE[why] ?? 1000)) throw e;
        }
        await clock.change(100);
      }
    };
    return { prepare, reach, boxes, surfaces, spot, points, view, shown, usable, bring, refuse, still };
  })();

  // labelled turns a label into its control, so that a text or a selector of a label means what it labels.
  const labelled = el => dom.localName(el) === 'label' && el.control ? el.control : el;

  // prepare makes a target ready for the pointer and arms the guard: {ref, x, y, moving, vx, vy, frame}.
  // A target {x, y} is a point already; frame tells that the point lies on a frame element, in whose document the driver goes on.
  ops.prepare = async a => {
    const t = a.target, kind = a.kind ?? 'press';
    if (t.x !== undefined) {
      const hit = await target.wait(t, clock.now());
      if (a.arm !== false) guard.arm(kind, null, a);
      return { ref: refs.of(hit), x: t.x, y: t.y, frame: /^(iframe|frame|object|embed)$/.test(dom.localName(hit)), tag: dom.localName(hit) };
    }
    const got = await aim.prepare(t, a);
    if (a.arm !== false) guard.arm(kind, got.el, a);
    return {
      ref: refs.of(got.el), x: got.point.x, y: got.point.y, moving: Boolean(got.moving), vx: got.vx ?? 0, vy: got.vy ?? 0,
      at: Date.now(), tag: dom.localName(got.el), frame: false,
    };
  };
  ops.arm = a => { guard.arm(a.kind, a.ref ? target.find({ ref: a.ref }) : null, a); return {}; };
  ops.disarm = () => { guard.disarm(); return {}; };

  // confirm tells what the guard saw. A press is waited for until its click came, because the click may follow late.
  ops.confirm = ({ wait = 250, until }) => guard.confirm(wait, until === 'click'
    ? s => s.ok === false || s.ok && (s.seen.click || s.seen.auxclick || s.seen.contextmenu)
    : until === 'drop' ? s => s.on.drop || s.on.mouseup || s.seen.dragend : undefined);

  // through turns a point in a child frame into one in this document's viewport, scrolled to where it can be hit.
  ops.through = async ({ ref, x, y, quick, force }) => {
    const el = target.find({ ref });
    const where = () => {
      const box = dom.rectOf(el), style = dom.styleOf(el);
      const sx = el.offsetWidth ? box.width / el.offsetWidth : 1, sy = el.offsetHeight ? box.height / el.offsetHeight : 1;
      return {
        x: box.left + sx * (el.clientLeft + parseFloat(style.paddingLeft) + x),
        y: box.top + sy * (el.clientTop + parseFloat(style.paddingTop) + y),
      };
    };
    const fits = () => {
      const p = where(), v = aim.view();
      return p.x >= 0 && p.y >= 0 && p.x < v.width && p.y < v.height && target.hitAt(p.x, p.y) === el ? p : null;
    };
    // A frame of another process gets input by what was last painted, so what was scrolled just now must be painted first.
    const painted = async p => {
      if (el.contentDocument || quick) return p;
      await clock.frame();
      await clock.frame();
      return fits();
    };
    let p = fits();
    if (p) p = await painted(p);
    if (!quick) for (const at of [.5, .25, .75]) {
      if (p) break;
      el.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
      if ((p = fits()) && (p = await painted(p))) break;
      const v = aim.view();
      for (let pane = dom.parent(el); pane; pane = dom.parent(pane)) {
        const node = pane === document ? document.scrollingElement : dom.nodeType(pane) === 1 && panes.scrolls(pane) ? pane : null;
        if (!node) continue;
        const root = node === document.scrollingElement, box = root ? { left: 0, top: 0, width: v.width, height: v.height } : dom.rectOf(node), now = where();
        node.scrollBy({ left: now.x - (box.left + box.width / 2), top: now.y - (box.top + box.height * at), behavior: 'instant' });
        if (root) break;
      }
      await clock.frame();
      p = fits();
      if (p) p = await painted(p);
    }
    if (p) return p;
    const now = where();
    if (force) return now;
    const v = aim.view();
    if (now.x < 0 || now.y < 0 || now.x >= v.width || now.y >= v.height) throw aim.refuse('not_visible', `the point lies outside of what is seen of the frame ${target.describe(el)}`, {});
    const cover = target.hitAt(now.x, now.y);
    throw aim.refuse('covered', `the frame ${target.hint(el)} is covered by ${target.describe(cover)}`, { covered_by: target.describe(cover) });
  };
  // into turns a point of this document's viewport into one of the document that a frame element shows.
  ops.into = ({ ref, x, y }) => {
    const el = target.find({ ref }), box = dom.rectOf(el), style = dom.styleOf(el);
    const sx = el.offsetWidth ? box.width / el.offsetWidth : 1, sy = el.offsetHeight ? box.height / el.offsetHeight : 1;
    return { x: (x - box.left) / sx - el.clientLeft - parseFloat(style.paddingLeft), y: (y - box.top) / sy - el.clientTop - parseFloat(style.paddingTop) };
  };

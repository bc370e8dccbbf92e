
  // panes finds what scrolls.
  const panes = (() => {
    const root = () => document.scrollingElement ?? document.documentElement;
    const clips = v => v === 'auto' || v === 'scroll' || v === 'overlay' || v === 'hidden';
    // scrolls says whether an element is a pane that can move in a direction (x, y, or either).
    const scrolls = (el, axis) => {
      if (el === root()) return axis === 'x' ? el.scrollWidth > el.clientWidth : axis === 'y' ? el.scrollHeight > el.clientHeight : true;
      const style = dom.styleOf(el);
      const x = clips(style.overflowX) && el.scrollWidth > el.clientWidth, y = clips(style.overflowY) && el.scrollHeight > el.clientHeight;
      return axis === 'x' ? x : axis === 'y' ? y : x || y;
    };
    // of is the pane that an element is or stands in. An author's `overflow: hidden` counts for the element itself alone.
    const of = (el, axis) => {
      for (let n = el; n && dom.nodeType(n) === 1; n = dom.parent(n)) {
        if (n === document.body && n !== root() || n === root()) continue;
        const style = dom.styleOf(n), own = axis === 'x' ? style.overflowX : style.overflowY;
        if (scrolls(n, axis) && (n === el || own !== 'hidden')) return n;
      }
      return root();
    };
    return { root, scrolls, of };
  })();

  // scroll moves the pane that the target is or stands in, or the page: {scroll_x, scroll_y, moved, ref}.
  ops.scroll = async ({ target: t, dx = 0, dy = 0, to, wait = 0, leave }) => {
    const el = t ? await target.wait(t, clock.now() + wait, leave) : null;
    if (el && to === 'into_view') {
      aim.shown(el);
      aim.bring(el, 'center');
      const pane = panes.of(dom.parent(el) ?? el, 'y');
      await clock.frame();
      await clock.frame();
      return { scroll_x: pane.scrollLeft, scroll_y: pane.scrollTop, moved: true };
    }
    const axis = to === 'left' || to === 'right' || !to && dx && !dy ? 'x' : 'y';
    const pane = el ? panes.of(el, axis) : panes.root();
    const before = [pane.scrollLeft, pane.scrollTop];
    // Negative is beyond the edge, and in a pane that begins at the right or the bottom it is the edge.
    if (to) pane.scrollTo({ left: to === 'left' ? -pane.scrollWidth : to === 'right' ? pane.scrollWidth : pane.scrollLeft, top: to === 'top' ? -pane.scrollHeight : to === 'bottom' ? pane.scrollHeight : pane.scrollTop, behavior: 'instant' });
    else pane.scrollBy({ left: dx, top: dy, behavior: 'instant' });
    // The page hears of it with the next frame, and what it then draws belongs to the answer.
    await clock.frame();
    await clock.frame();
    return { scroll_x: pane.scrollLeft, scroll_y: pane.scrollTop, moved: before[0] !== pane.scrollLeft || before[1] !== pane.scrollTop };
  };

  // rect tells where an element is, after scrolling it into view: in CSS pixels of this document's viewport, with the scroll offsets.
  ops.rect = async ({ ref, scroll }) => {
    const el = target.find({ ref });
    aim.shown(el);
    if (scroll) {
      const box = dom.rectOf(el), v = aim.view();
      if (box.top < 0 || box.left < 0 || box.bottom > v.height || box.right > v.width) { aim.bring(el, 'center'); await clock.frame(); }
    }
    const list = aim.boxes(aim.surfaces(el)[0] ?? el);
    const left = Math.min(...list.map(b => b.left)), top = Math.min(...list.map(b => b.top));
    return {
      x: left, y: top, width: Math.max(...list.map(b => b.right)) - left, height: Math.max(...list.map(b => b.bottom)) - top,
      scroll_x: scrollX, scroll_y: scrollY,
    };
  };
  ops.offset = () => ({ x: scrollX, y: scrollY });

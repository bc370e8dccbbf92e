
  // wait tests conditions until they hold all at once: {satisfied, met:[…], url, frames:[…]}.
  // The driver tells of other frames (elsewhere: {present, absent}: whether they show the two texts), and goes on by itself in a new document.
  const waiting = (() => {
    const flat = s => s.replace(/\s+/g, ' ').trim().toLowerCase();
    const BUTTONS = 'input[type=submit],input[type=button],input[type=reset]';

    // shows says whether a person can read the words in this document, letters in either case.
    const shows = words => {
      const want = flat(words);
      if (flat(dom.text()).includes(want)) return true;
      return dom.queryAll(BUTTONS).some(b => flat(b.value).includes(want) && dom.visible(b));
    };
    const matches = css => dom.frozen(() => dom.queryAll(css).some(el => dom.rendered(el) && dom.look(el) === 2));

    const tests = {
      text_present: (v, other) => other.present || shows(v),
      text_absent: (v, other) => !other.absent && !shows(v),
      selector_present: v => matches(v),
      selector_absent: v => !matches(v),
      element_ref_present: v => { const el = refs.get(v); return Boolean(el) && dom.isConnected(el); },
      url_matches: v => new RegExp(v, 'u').test(location.href),
      navigation_complete: () => document.readyState === 'complete',
    };
    const met = (conditions, other) => Object.keys(conditions).filter(k => tests[k](conditions[k], other));
    return { met, shows };
  })();

  ops.wait = async ({ conditions, elsewhere = {}, ms = 0, frames }) => {
    const end = clock.now() + ms, want = Object.keys(conditions).length;
    const texts = 'text_present' in conditions || 'text_absent' in conditions;
    for (;;) {
      const began = clock.now(), met = waiting.met(conditions, elsewhere), now = clock.now();
      const list = texts ? target.frameElements().map(refs.of) : [];
      const news = list.some(ref => !(frames ?? []).includes(ref));
      if (met.length === want || now >= end || frames && news) return { satisfied: met.length === want, met, url: location.href, frames: list };
      const rest = 4 * (now - began);
      await clock.change(Math.min(Math.max(100, rest), end - now));
      // Many changes a second are looked at once, and a dear test is made more rarely.
      await clock.sleep(Math.min(Math.max(15, rest), Math.max(0, end - clock.now())));
    }
  };

  // shows tells of the two texts in this document, for a driver that waits in the document around it.
  ops.shows = ({ present, absent }) => ({
    present: present != null && waiting.shows(present), absent: absent != null && waiting.shows(absent),
    frames: target.frameElements().map(refs.of),
  });
  ops.has = ({ ref }) => { const el = refs.get(ref); return Boolean(el) && dom.isConnected(el); };
  ops.where = () => ({ url: location.href, title: document.title });

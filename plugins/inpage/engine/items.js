
  // items is the tree that a walk makes: what says something, with its texts, in document order.
  const items = (() => {
    const { hasAttribute, hasAttributes } = dom;

    // What holds blocks of text side by side; in all other nodes text runs on.
    const CONTAINERS = new Set(['document', 'main', 'region', 'article', 'banner', 'contentinfo', 'complementary', 'navigation', 'form', 'search',
      'group', 'dialog', 'alertdialog', 'tabpanel', 'feed', 'sectionheader', 'sectionfooter', 'figure', 'application', 'toolbar', 'generic', 'log', 'blockquote']);

    // Item is a node of the snapshot: an element that says something. items holds its nodes and the texts between them.
    class Item {
      constructor(el, role, up) {
        this.el = el; this.role = role; this.up = up;
        this.items = NOTHING; this.text = ''; this.run = '';
        this.acts = false; this.hidden = false; this.holdsActing = false; this.kids = 0; this.texts = 0;
        this.gap = false; this.quiet = false; this.valued = false;
        this.alone = false; // its element holds one text and nothing else
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
      const name = n.alone && names.simple(n.el, n.role) || names.named(n.el, n.role);
      if (name || n.role !== 'generic' || !n.acts || n.holdsActing) return name;
      const text = n.items.length ? names.inner(n.el) : squash(n.text) || names.inner(n.el);
      return text.length <= LONGEST ? text : '';
    };

    // Tree takes what a walk meets, in order. It keeps the first nodes up to its limit and counts the rest.
    class Tree {
      constructor(max, controlsOnly) {
        this.root = new Item(null, 'document', null);
        this.limit = max > 0 ? max : Infinity;
        this.controlsOnly = controlsOnly;
        this.total = 1; this.kept = 1;
        this.space = false; // white space stood between the last text or node and what comes now
        this.joint = []; // the elements inside a line whose edges were passed since the last text
      }

      // list adds a node below up. at is its number in order, -1 when it is beyond the limit.
      list(el, role, up) {
        this.flush(up);
        this.total++;
        up.kids++;
        const n = new Item(el, role, up);
        n.gap = this.space;
        this.space = false;
        n.at = -1;
        if (this.kept < this.limit && up.at >= 0) { n.at = this.kept++; put(up, n); }
        return n;
      }

      // append adds a text to the line of a node. Two pieces that a page shows apart, without a space in the source, are kept so.
      append(n, data) {
        if (n.run && this.joint.length && !/\s$/.test(n.run) && !/^\s/.test(data) && this.joint.slice(0, 6).some(el => !styles.flows(el))) n.run += ' ';
        this.joint.length = 0;
        n.run += data;
      }

      // flush makes the line so far a node of its own. Its white space stays, since marks inside a line run on.
      flush(n) {
        const run = n.run;
        n.run = '';
        this.space = false;
        if (!run) return;
        const text = run.replace(SPACE, ' ');
        if (text === ' ') { this.space = true; return; }
        if (n.quiet) { n.text += text; return; }
        if (this.controlsOnly) return;
        this.total++;
        n.texts++;
        if (this.kept < this.limit && n.at >= 0) { this.kept++; put(n, text); }
      }

      // part ends a line where a block begins or ends: in a container the next goes on a line of its own.
      part(n) { if (n.run) { if (CONTAINERS.has(n.role)) this.flush(n); else n.run += ' '; } }

      // close ends a node. The text of one that holds no other node is its own.
      close(n) {
        if (n.kids === 0 && n.texts === 0) { n.text += n.run.replace(SPACE, ' '); n.run = ''; return; }
        this.flush(n);
        if (n.kids > 0 || n.texts !== 1) return;
        this.total--;
        if (n.items.length) { n.text = n.items[0]; n.items = NOTHING; this.kept--; }
      }
    }

    return { Tree, NONE };
  })();

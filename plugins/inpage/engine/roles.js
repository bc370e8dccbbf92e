
  // roles gives an element's ARIA role: the author's first valid one (WAI-ARIA 1.2 and 1.3, DPUB-ARIA, graphics), or what
  // HTML-AAM and SVG-AAM say of the element. "generic" is an element that says nothing; "none" one that was silenced.
  const roles = (() => {
    const { localName, getAttribute, hasAttribute, parent, all, firstChild, nextSibling, nodeType } = dom;

    const KNOWN = new Set((`alert alertdialog application article banner blockquote button caption cell checkbox code columnheader
      combobox comment complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic
      graphics-document graphics-object graphics-symbol grid gridcell group heading image img insertion link list listbox listitem
      log main mark marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph
      presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox sectionfooter
      sectionheader separator slider spinbutton status strong subscript suggestion superscript switch tab table tablist tabpanel
      term textbox time timer toolbar tooltip tree treegrid treeitem doc-abstract doc-acknowledgments doc-afterword doc-appendix
      doc-backlink doc-biblioentry doc-bibliography doc-biblioref doc-chapter doc-colophon doc-conclusion doc-cover doc-credit
      doc-credits doc-dedication doc-endnote doc-endnotes doc-epigraph doc-epilogue doc-errata doc-example doc-footnote
      doc-foreword doc-glossary doc-glossref doc-index doc-introduction doc-noteref doc-notice doc-pagebreak doc-pagefooter
      doc-pageheader doc-pagelist doc-part doc-preface doc-prologue doc-pullquote doc-qna doc-subtitle doc-tip doc-toc`).split(/\s+/));
    const SAME = { image: 'img', presentation: 'none', directory: 'list' };

    // A role that means nothing outside of these: such an element keeps what its tag says (WAI-ARIA, required context).
    // Menu items and tabs keep their role anywhere, because what an author calls a menu item can be pressed.
    const CONTEXT = {
      listitem: ['list'],
      option: ['listbox', 'combobox', 'group'],
      treeitem: ['tree', 'group', 'treeitem'],
      row: ['table', 'grid', 'treegrid', 'rowgroup'],
      rowgroup: ['table', 'grid', 'treegrid'],
      gridcell: ['row'], rowheader: ['row'], columnheader: ['row'],
    };

    // Roles whose children say nothing of their own (WAI-ARIA, children presentational).
    const LEAF = new Set(['button', 'checkbox', 'img', 'math', 'menuitemcheckbox', 'menuitemradio', 'meter', 'option',
      'progressbar', 'radio', 'scrollbar', 'separator', 'slider', 'switch', 'tab', 'graphics-symbol']);

    // The global states and properties that undo role=none. aria-hidden, and those deprecated on every role, do not.
    const GLOBAL = ['aria-atomic', 'aria-braillelabel', 'aria-busy', 'aria-controls', 'aria-current', 'aria-describedby',
      'aria-description', 'aria-details', 'aria-dropeffect', 'aria-flowto', 'aria-grabbed', 'aria-keyshortcuts', 'aria-label',
      'aria-labelledby', 'aria-live', 'aria-owns', 'aria-relevant', 'aria-roledescription'];
    const NAMING = new Set(['aria-label', 'aria-labelledby', 'aria-roledescription', 'aria-braillelabel']);

    const filled = (el, name) => { const v = getAttribute(el, name); return v !== null && v.trim() !== ''; };

    // named says cheaply whether an author gave the element a name of its own (landmarks hang on it).
    const named = el => {
      if (filled(el, 'aria-label') || filled(el, 'title')) return true;
      const ids = getAttribute(el, 'aria-labelledby');
      if (!ids) return false;
      return ids.split(/\s+/).some(id => { const e = dom.byId(el, id); return e && /\S/.test(e.textContent || '') || e && filled(e, 'aria-label'); });
    };

    // focusable says whether the element can take the focus at all.
    const FIELDS = new Set(['input', 'select', 'textarea', 'button']);
    const focusable = el => {
      const name = localName(el);
      if (FIELDS.has(name)) return !el.disabled && !(name === 'input' && el.type === 'hidden');
      if (hasAttribute(el, 'tabindex')) return Number.isInteger(parseInt(getAttribute(el, 'tabindex'), 10));
      if (name === 'a' || name === 'area') return hasAttribute(el, 'href') || hasAttribute(el, 'xlink:href');
      if (name === 'summary') return summarizes(el);
      if (name === 'iframe' || (name === 'audio' || name === 'video') && hasAttribute(el, 'controls')) return true;
      return editableRoot(el);
    };

    // editableRoot is the outermost element of a contenteditable region.
    const editableRoot = el => {
      const v = getAttribute(el, 'contenteditable');
      if (v === null || /^false$/i.test(v) || !el.isContentEditable) return false;
      const up = parent(el);
      return !(up && nodeType(up) === 1 && up.isContentEditable);
    };

    const summarizes = el => {
      const up = el.parentElement;
      if (!up || localName(up) !== 'details') return false;
      for (let c = firstChild(up); c; c = nextSibling(c)) if (nodeType(c) === 1 && localName(c) === 'summary') return c === el;
      return false;
    };

    // explicit is the author's role, or null: the first token that is a role and may be used here.
    const explicit = el => {
      const attr = getAttribute(el, 'role');
      if (attr === null) return null;
      for (const token of attr.split(SPACE)) {
        const role = token.toLowerCase();
        if (!KNOWN.has(role)) continue;
        if ((role === 'region' || role === 'form') && !named(el)) continue;
        if ((role === 'none' || role === 'presentation') && undone(el)) return null;
        if (CONTEXT[role] && !within(el, CONTEXT[role])) continue;
        return SAME[role] ?? role;
      }
      return null;
    };

    // undone is the conflict resolution of role=none: a focusable or globally described element keeps its meaning.
    const undone = el => focusable(el) || GLOBAL.some(a => NAMING.has(a) ? filled(el, a) : hasAttribute(el, a));

    // within says whether the nearest ancestor that says anything has one of these roles.
    const asking = new Set();
    const within = (el, wanted) => {
      if (asking.has(el)) return false;
      asking.add(el);
      try { return lies(el, wanted); } finally { asking.delete(el); }
    };
    const lies = (el, wanted) => {
      if (owner(el)?.some(o => wanted.includes(of(o)))) return true;
      for (let up = parent(el), i = 0; up && nodeType(up) === 1 && i < 64; up = parent(up), i++) {
        const role = of(up);
        if (wanted.includes(role)) return true;
        if (role !== 'generic' && role !== 'none' && !(role === 'group' && wanted.includes('group'))) return false;
      }
      return false;
    };
    // owner lists the elements that claim this one by aria-owns.
    const owner = el => {
      const id = getAttribute(el, 'id');
      if (!id) return null;
      const claims = [...all(dom.tree(el), '[aria-owns]')].filter(o => o !== el && getAttribute(o, 'aria-owns').split(/\s+/).includes(id));
      return claims.length ? claims : null;
    };

    // nearest finds the closest flat-tree ancestor for which test answers something, up to the body.
    const nearest = (el, test) => {
      for (let up = parent(el); up && nodeType(up) === 1; up = parent(up)) { const r = test(up); if (r) return r; }
      return null;
    };
    const SECTIONS = new Set(['article', 'aside', 'main', 'nav', 'section']);
    const SECTION_ROLES = new Set(['article', 'complementary', 'main', 'navigation', 'region']);
    const inSection = (el, withMain) => nearest(el, up => {
      const role = hasAttribute(up, 'role') ? explicit(up) : null;
      if (role) return SECTION_ROLES.has(role) && (withMain || role !== 'main');
      const name = localName(up);
      return SECTIONS.has(name) && (withMain || name !== 'main');
    });

    // Tables: a table's parts take their meaning from the table, and a table made for layout has none.
    const tableOf = el => dom.parentNode(el)?.closest?.('table') ?? null;
    const DATA = 'caption,colgroup,col,thead,tfoot,th,td[headers],td[scope],td[abbr]';
    const layout = dom.memo(table => {
      if (hasAttribute(table, 'role') || hasAttribute(table, 'summary') || hasAttribute(table, 'aria-label') || hasAttribute(table, 'aria-labelledby')) return false;
      if (table.isContentEditable) return false;
      for (const el of all(table, DATA)) if (tableOf(el) === table) return false;
      const rows = table.rows;
      if (!rows.length) return true;
      if (rows.length >= 20 && rows[0].cells.length > 1) return false;
      if (all(table, 'table').length) return true;
      return rows.length === 1 || rows[0].cells.length <= 1 && rows[rows.length - 1].cells.length <= 1;
    });
    const inTable = (el, role) => {
      const table = tableOf(el);
      if (!table) return 'generic';
      const whole = of(table);
      if (whole === 'table') return role;
      if (whole === 'grid' || whole === 'treegrid') return role === 'cell' ? 'gridcell' : role;
      return 'generic';
    };
    const header = el => {
      const scope = (getAttribute(el, 'scope') ?? '').toLowerCase();
      if (scope === 'row' || scope === 'rowgroup') return 'rowheader';
      if (scope === 'col' || scope === 'colgroup') return 'columnheader';
      const side = (step, n = el[step]) => { while (n && !/^t[dh]$/.test(localName(n))) n = n[step]; return n && localName(n); };
      const before = side('previousElementSibling'), after = side('nextElementSibling');
      if (!before && !after) return 'columnheader';
      return (before ?? 'th') === 'th' && (after ?? 'th') === 'th' ? 'columnheader' : 'rowheader';
    };

    const INPUT = {
      button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button', checkbox: 'checkbox', radio: 'radio',
      range: 'slider', number: 'spinbutton', search: 'searchbox', hidden: 'none',
    };
    const input = el => {
      const type = el.type;
      if (type === 'checkbox') {
        if (hasAttribute(el, 'switch')) return 'switch';
        return hasAttribute(el, 'aria-pressed') ? 'button' : 'checkbox';
      }
      if (hasAttribute(el, 'list') && /^(text|email|search|tel|url)$/.test(type) && el.list) return 'combobox';
      return INPUT[type] ?? 'textbox';
    };

    const LIST = new Set(['ul', 'ol', 'menu', 'dir']);
    const listItem = el => {
      const up = parent(el);
      if (!up || nodeType(up) !== 1) return 'generic';
      const role = of(up);
      if (role === 'list') return 'listitem';
      return !LIST.has(localName(up)) && within(el, ['list']) ? 'listitem' : 'generic';
    };

    const listOfPairs = el => { // dt and dd keep their meaning unless their list was silenced
      const dl = nearest(el, up => localName(up) === 'dl' && up);
      return !(dl && hasAttribute(dl, 'role') && explicit(dl) === 'none');
    };

    // inGrid: a row or cell that people move through, so that its row has a name.
    const inGrid = el => {
      const role = nearest(el, up => { const r = of(up); return r !== 'generic' && r !== 'rowgroup' && r !== 'none' && r; });
      return role === 'grid' || role === 'treegrid';
    };

    // The roles that HTML-AAM gives by tag, as a word or as a function of the element.
    const HTML = {
      a: el => hasAttribute(el, 'href') ? 'link' : 'generic',
      area: el => hasAttribute(el, 'href') ? 'link' : 'generic',
      address: 'group', article: 'article', audio: 'audio', blockquote: 'blockquote', button: 'button', canvas: 'canvas',
      aside: el => !inSection(el, false) || named(el) ? 'complementary' : 'generic',
      caption: el => inTable(el, 'caption'),
      code: 'code', dd: el => listOfPairs(el) ? 'definition' : 'generic', del: 'deletion', details: 'group', dfn: 'term', dialog: 'dialog',
      dir: 'list', dt: el => listOfPairs(el) ? 'term' : 'generic', em: 'emphasis', fieldset: 'group', figcaption: 'caption', figure: 'figure',
      footer: el => inSection(el, true) ? 'sectionfooter' : 'contentinfo',
      form: el => named(el) ? 'form' : 'generic',
      frame: 'iframe', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading',
      header: el => inSection(el, true) ? 'sectionheader' : 'banner',
      hgroup: 'group', hr: 'separator', iframe: 'iframe',
      img: el => getAttribute(el, 'alt') === '' && !filled(el, 'aria-label') && !filled(el, 'aria-labelledby') && !hasAttribute(el, 'tabindex') ? 'none' : 'img',
      input, ins: 'insertion', li: listItem, main: 'main', mark: 'mark', math: 'math', menu: 'list', meter: 'meter', nav: 'navigation',
      object: el => el.contentWindow ? 'iframe' : 'generic',
      ol: 'list', optgroup: 'group', option: 'option', output: 'status', p: 'paragraph', progress: 'progressbar', s: 'deletion',
      search: 'search', section: el => named(el) ? 'region' : 'generic',
      select: el => el.multiple || el.size > 1 ? 'listbox' : 'combobox',
      strong: 'strong', sub: 'subscript', summary: el => summarizes(el) ? 'button' : 'generic', sup: 'superscript',
      table: el => layout(el) ? 'generic' : 'table',
      tbody: el => inTable(el, 'rowgroup'), thead: el => inTable(el, 'rowgroup'), tfoot: el => inTable(el, 'rowgroup'),
      td: el => inTable(el, 'cell'), th: el => inTable(el, header(el)), tr: el => inTable(el, 'row'),
      textarea: 'textbox', time: 'time', ul: 'list', video: 'video',
    };

    // SVG-AAM: shapes say something only when an author named them.
    const spoken = el => {
      if (filled(el, 'aria-label') || filled(el, 'aria-labelledby') || filled(el, 'aria-roledescription')) return true;
      for (let c = firstChild(el); c; c = nextSibling(c)) if (nodeType(c) === 1 && localName(c) === 'title' && /\S/.test(c.textContent)) return true;
      return false;
    };
    const SVG = {
      a: el => hasAttribute(el, 'href') || hasAttribute(el, 'xlink:href') ? 'link' : spoken(el) ? 'group' : 'generic',
      svg: el => spoken(el) || filled(el, 'title') ? 'img' : 'generic',
      g: el => spoken(el) ? 'group' : 'generic',
      image: el => spoken(el) ? 'img' : 'generic',
      text: el => spoken(el) ? 'group' : 'generic', tspan: el => spoken(el) ? 'group' : 'generic', textPath: el => spoken(el) ? 'group' : 'generic',
      foreignObject: el => spoken(el) ? 'group' : 'generic', use: el => spoken(el) ? 'graphics-object' : 'generic', symbol: el => spoken(el) ? 'graphics-object' : 'generic',
    };
    for (const shape of ['circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'rect']) SVG[shape] = el => spoken(el) ? 'graphics-symbol' : 'generic';
    const BY_TAG = new Map(Object.entries(HTML)), BY_DRAWING = new Map(Object.entries(SVG));

    // native is the role of the tag alone.
    const native = (el, attributes = true) => {
      const name = localName(el), rule = BY_TAG.get(name);
      if (rule === undefined && !attributes && !BY_DRAWING.has(name) && name !== 'math') return 'generic';
      if (el instanceof HTMLElement) {
        if (rule !== undefined) {
          const role = typeof rule === 'string' ? rule : rule(el);
          if (role !== 'generic') return role;
        }
        if (attributes && hasAttribute(el, 'contenteditable') && editableRoot(el)) return 'textbox';
        return 'generic';
      }
      if (el instanceof SVGElement) {
        return BY_DRAWING.get(name)?.(el) ?? 'generic';
      }
      return name === 'math' ? 'math' : 'generic';
    };

    // least is HTML-AAM's minimum role: what can be dragged or takes the focus first is never nothing.
    const least = (el, role) => (role === 'generic' || role === 'none') && el instanceof HTMLElement
      && (hasAttribute(el, 'draggable') || hasAttribute(el, 'autofocus')) ? 'group' : role;

    // of is the role of an element, lower case.
    // asked computes it anew, for a walk that comes by every element once; of remembers it.
    const asked = (el, attributes = dom.hasAttributes(el)) =>
      attributes ? least(el, (hasAttribute(el, 'role') ? explicit(el) : null) ?? native(el)) : native(el, false);
    const of = dom.memo(el => asked(el));

    return { of, asked, native, explicit, focusable, editableRoot, summarizes, named, filled, nearest, inGrid, tableOf, layout, LEAF };
  })();

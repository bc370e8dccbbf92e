
  // outline writes the tree that the snapshot read as lines for a model: `- role "name" [state] [ref=d1e2]: value`, two
  // spaces an indent. What says nothing is left out, and what was said is not said again.
  const outline = (() => {
    // Marks of text inside a line of text: they show as plain text.
    const INLINE = new Set(['strong', 'emphasis', 'code', 'mark', 'subscript', 'superscript', 'time']);
    // Wrappers that say nothing unless they are named or can be acted on.
    const WRAPPER = new Set(['generic', 'none', 'group', 'rowgroup', 'sectionheader', 'sectionfooter', 'figure', 'paragraph', 'graphics-document', 'graphics-object', 'document']);
    // Said to be there even when empty.
    const SPEAKS = new Set(['iframe', 'progressbar', 'meter', 'scrollbar', 'canvas', 'video', 'audio', 'alert', 'dialog', 'alertdialog', 'textbox', 'combobox', 'listbox']);
    const CELL = new Set(['cell', 'gridcell', 'columnheader', 'rowheader']);
    const ITEM = new Set(['listitem', 'cell', 'gridcell', 'columnheader', 'rowheader', 'term', 'definition']);
    const OPTIONS = 40;

    // plain: no state that a line would show.
    const plain = n => { for (const k in n.states) if (k !== 'level') return false; return true; };
    const quote = s => JSON.stringify(s);

    // say is a text of the page on a line: one line, and in quotes where it could be taken for a ref of ours.
    const say = s => { const t = wellFormed(squash(s)); return t.includes('[ref=') ? quote(t) : t; };

    // flags are the states of a line, in brackets.
    const flags = n => {
      const s = n.states;
      let out = '';
      if (s.checked === 'mixed') out += ' [checked=mixed]'; else if (s.checked === 'true') out += ' [checked]';
      if (s.pressed === 'mixed') out += ' [pressed=mixed]'; else if (s.pressed === 'true') out += ' [pressed]'; else if (s.pressed) out += ' [pressed=false]';
      if (s.selected) out += ' [selected]';
      if (s.expanded !== undefined && !(s.expanded === false && n.el instanceof HTMLSelectElement)) out += s.expanded ? ' [expanded]' : ' [expanded=false]';
      if (s.disabled) out += ' [disabled]';
      if (s.required) out += ' [required]';
      if (s.level && n.role === 'heading') out += ` [level=${s.level}]`;
      if (s.focused) out += ' [focused]';
      if (n.hidden) out += ' [a11y_hidden]';
      if (n.acts && !s.disabled || n.role === 'iframe') out += ` [ref=${refs.of(n.el)}]`;
      return out;
    };

    // Three kinds of a node: it goes ahead as text, it is passed through, or it has a line of its own.
    const inline = n => INLINE.has(n.role) && !n.acts && !n.authored();
    const through = n => WRAPPER.has(n.role) && !n.acts && !n.shown() && !(n.role === 'paragraph' && !n.items.length);

    // parts lists what a node shows: texts joined across inline marks, and nodes that have lines.
    const parts = n => {
      const out = [];
      let run = '';
      const flush = () => { const t = squash(run); if (t) out.push(t); run = ''; };
      const stack = [frameOf(n, false)];
      while (stack.length) {
        const top = stack[stack.length - 1];
        if (top.at === top.items.length) { if (top.apart) flush(); stack.pop(); continue; }
        const item = top.items[top.at++];
        // Two texts side by side were parted by a block.
        if (typeof item === 'string') { if (top.at > 1 && typeof top.items[top.at - 2] === 'string') flush(); run += item; continue; }
        if (inline(item)) { run += item.gap ? ' ' : ''; stack.push(frameOf(item, false)); continue; }
        flush();
        if (through(item)) stack.push(frameOf(item, true)); else out.push(item);
      }
      flush();
      return out;
    };
    const frameOf = (n, apart) => ({ items: n.items.length ? n.items : [n.text], at: 0, apart });

    // simple is the text of a cell or an item that holds nothing else, or null.
    const simple = (n, list) => {
      if (n.acts || n.hidden || !plain(n)) return null;
      if (list.length === 0) return n.authored() ? n.name() : '';
      if (list.length === 1 && typeof list[0] === 'string') return n.authored() ? n.name() : list[0];
      return null;
    };

    // choices is the line of a collapsed list's options: the agent picks with page.select.
    const choices = el => {
      const labels = [...el.options].map(o => squash(names.optionName(o)));
      const shown = labels.slice(0, OPTIONS).join(' | ');
      return labels.length > OPTIONS ? `${shown} | … ${labels.length - OPTIONS} more` : shown;
    };

    // tells says whether the name alone tells all there is, so that only what can be acted on is listed below.
    const tells = n => n.acts && names.FROM_CONTENT.has(n.role) || roles.LEAF.has(n.role) || n.role === 'generic' && n.acts && n.contentName();

    // write makes the lines below root; frames gets the line number of every frame.
    const write = (root, frames) => {
      const lines = [];
      const put = (depth, text) => { lines.push('  '.repeat(depth) + text); };
      const stack = [{ list: parts(root), at: 0, depth: 0, name: '' }];
      // echo: the line before or after is called the same.
      const echo = (frame, text) => [frame.list[frame.at - 2], frame.list[frame.at]].some(x => x && typeof x !== 'string' && x.name() === text);
      const sayText = (frame, text) => { if (text !== frame.name && !echo(frame, text)) put(frame.depth, `- text: ${say(text)}`); };
      while (stack.length) {
        const frame = stack[stack.length - 1];
        if (frame.at === frame.list.length) { stack.pop(); continue; }
        const n = frame.list[frame.at++];
        if (typeof n === 'string') { sayText(frame, n); continue; }
        if (n.role === 'iframe') {
          frames.push({ node: n, line: lines.length });
          put(frame.depth, `- iframe${n.name() ? ` ${quote(n.name())}` : ''}${flags(n)}`);
          continue;
        }
        if (n.el && n.role === 'combobox' && n.el instanceof HTMLSelectElement) {
          put(frame.depth, head(n, true) + (n.states.value ? `: ${say(n.states.value)}` : ''));
          put(frame.depth + 1, `- options: ${say(choices(n.el))}`);
          continue;
        }
        let list = parts(n);
        if (n.role === 'row') { row(n, list, frame, stack, put); continue; }
        if (tells(n)) {
          list = deepActing(list);
          const value = n.states.value ?? (n.name() ? undefined : squash(n.text) || undefined);
          if (!n.acts && !list.length && value === undefined && (!n.name() ? !SPEAKS.has(n.role) : n.role === 'img' && echo(frame, n.name()))) continue;
          put(frame.depth, head(n, true) + (value !== undefined ? `: ${say(value)}` : ''));
          if (list.length) stack.push({ list, at: 0, depth: frame.depth + 1, name: n.name() });
          continue;
        }
        if (ITEM.has(n.role) && !n.acts && !n.authored() && list.length === 1 && typeof list[0] !== 'string' && plain(n)) {
          stack.push({ list, at: 0, depth: frame.depth, name: frame.name }); // an item that only holds one thing is that thing
          continue;
        }
        const value = n.states.value;
        if (list.length === 0 || list.length === 1 && typeof list[0] === 'string') {
          const text = list[0] ?? '', name = n.shown() ? n.name() : '';
          const said = name && (text === name || names.FROM_CONTENT.has(n.role) && !n.authored()) || text === frame.name ? '' : text;
          if (!name && !said && value === undefined && !n.acts && !SPEAKS.has(n.role)) continue;
          if (!n.acts && value === undefined && (name || text) === frame.name && text && !said) continue; // the line above said it
          const rest = value !== undefined ? value : said;
          put(frame.depth, head(n, Boolean(name)) + (rest !== '' ? `: ${say(rest)}` : ''));
          continue;
        }
        const named = n.shown() && (!names.FROM_CONTENT.has(n.role) || n.authored() || n.acts);
        put(frame.depth, head(n, named) + (value !== undefined ? `: ${say(value)}` : ''));
        stack.push({ list, at: 0, depth: frame.depth + 1, name: named ? n.name() : '' });
      }
      return lines;
    };

    const head = (n, named) => {
      const name = named ? n.name() : '';
      return `- ${n.role}${name ? ` ${quote(name)}` : ''}${flags(n)}`;
    };

    // deepActing keeps, of what lies in an element whose name tells its content, only what can be acted on.
    const deepActing = list => {
      const out = [], stack = [...list].reverse();
      while (stack.length) {
        const n = stack.pop();
        if (typeof n === 'string') continue;
        if (n.acts || n.role === 'iframe') out.push(n); else for (let i = n.items.length - 1; i >= 0; i--) stack.push(n.items[i]);
      }
      return out;
    };

    // row writes a table's row: its plain cells on its own line, parted by bars, the others below.
    const row = (n, list, frame, stack, put) => {
      const texts = [], rest = [];
      let headers = 0;
      for (const c of list) {
        const cell = typeof c !== 'string' && CELL.has(c.role);
        const text = cell ? simple(c, parts(c)) : typeof c === 'string' ? c : null;
        if (cell && c.role === 'columnheader') headers++;
        if (text !== null && !rest.length) texts.push(text); else if (text !== '') rest.push(text ?? c);
      }
      while (texts.length && texts[texts.length - 1] === '') texts.pop();
      if (!texts.length && !rest.length && !n.acts) return;
      const mark = headers && headers === list.length ? ' [header]' : '';
      put(frame.depth, head(n, n.authored()) + mark + (texts.length ? `: ${say(texts.join(' | '))}` : ''));
      if (rest.length) stack.push({ list: rest, at: 0, depth: frame.depth + 1, name: '' });
    };

    return { write };
  })();

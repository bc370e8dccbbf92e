// Keys as the browser takes them: with key codes and text, so that they do what they do on a keyboard (US layout).
const named = {
  enter: ['Enter', 'Enter', 13, '\r'], return: ['Enter', 'Enter', 13, '\r'], tab: ['Tab', 'Tab', 9], escape: ['Escape', 'Escape', 27], esc: ['Escape', 'Escape', 27],
  backspace: ['Backspace', 'Backspace', 8], delete: ['Delete', 'Delete', 46], insert: ['Insert', 'Insert', 45], space: [' ', 'Space', 32, ' '],
  home: ['Home', 'Home', 36], end: ['End', 'End', 35], pageup: ['PageUp', 'PageUp', 33], pagedown: ['PageDown', 'PageDown', 34],
  arrowleft: ['ArrowLeft', 'ArrowLeft', 37], left: ['ArrowLeft', 'ArrowLeft', 37], arrowup: ['ArrowUp', 'ArrowUp', 38], up: ['ArrowUp', 'ArrowUp', 38],
  arrowright: ['ArrowRight', 'ArrowRight', 39], right: ['ArrowRight', 'ArrowRight', 39], arrowdown: ['ArrowDown', 'ArrowDown', 40], down: ['ArrowDown', 'ArrowDown', 40],
};
for (let i = 1; i <= 12; i++) named[`f${i}`] = [`F${i}`, `F${i}`, 111 + i];

const marks = { ';': ['Semicolon', 186], '=': ['Equal', 187], ',': ['Comma', 188], '-': ['Minus', 189], '.': ['Period', 190], '/': ['Slash', 191], '`': ['Backquote', 192], '[': ['BracketLeft', 219], '\\': ['Backslash', 220], ']': ['BracketRight', 221], "'": ['Quote', 222] };
const shifted = { '!': '1', '@': '2', '#': '3', $: '4', '%': '5', '^': '6', '&': '7', '*': '8', '(': '9', ')': '0', ':': ';', '+': '=', '<': ',', _: '-', '>': '.', '?': '/', '~': '`', '{': '[', '|': '\\', '}': ']', '"': "'" };
const bits = { alt: 1, option: 1, ctrl: 2, control: 2, meta: 4, cmd: 4, command: 4, win: 4, windows: 4, shift: 8 };
const modifierKeys = { 1: ['Alt', 'AltLeft', 18], 2: ['Control', 'ControlLeft', 17], 4: ['Meta', 'MetaLeft', 91], 8: ['Shift', 'ShiftLeft', 16] };

export function modifierBits(text) {
  let out = 0;
  for (const word of String(text ?? '').toLowerCase().split(/[+\s]+/).filter(Boolean)) {
    if (!bits[word]) throw new Error(`There is no modifier key ${word}.`);
    out |= bits[word];
  }
  return out;
}

function single(char) {
  if (/^[a-z]$/i.test(char)) return [char, `Key${char.toUpperCase()}`, char.toUpperCase().charCodeAt(0), char, /[A-Z]/.test(char)];
  if (/^[0-9]$/.test(char)) return [char, `Digit${char}`, char.charCodeAt(0), char];
  if (char === ' ') return named.space;
  if (marks[char]) return [char, ...marks[char], char];
  const base = shifted[char];
  if (base) { const [, code, vk] = single(base); return [char, code, vk, char, true]; }
  return [char, '', 0, char];
}

// combo gives the events of one combination, such as ctrl+a or Enter.
export function combo(text) {
  let rest = text;
  let held = 0;
  for (let m; (m = /^(\w+)\+(?=.)/.exec(rest)) && bits[m[1].toLowerCase()]; rest = rest.slice(m[0].length)) held |= bits[m[1].toLowerCase()];
  const alone = bits[rest.toLowerCase()];
  const found = alone ? modifierKeys[alone] : [...rest].length === 1 ? single(rest) : named[rest.toLowerCase()];
  if (!found) throw new Error(`There is no key ${JSON.stringify(rest)}.`);
  let [key, code, windowsVirtualKeyCode, writes, shift] = found;
  if (shift) held |= 8;
  if (held & 8 && /^[a-z]$/.test(key)) { key = key.toUpperCase(); writes = key; }
  const quiet = held & ~8; // with another modifier a key is a command and writes nothing
  const events = [];
  let on = 0;
  for (const bit of [2, 1, 4, 8]) {
    if (!(held & bit)) continue;
    on |= bit;
    const [k, c, vk] = modifierKeys[bit];
    events.push({ type: 'rawKeyDown', key: k, code: c, windowsVirtualKeyCode: vk, modifiers: on });
  }
  const commands = { 2: { a: ['selectAll'], c: ['copy'], x: ['cut'], v: ['paste'], z: ['undo'], y: ['redo'] } }[quiet]?.[key.toLowerCase()];
  const down = { key, code, windowsVirtualKeyCode, modifiers: held, ...(commands ? { commands } : {}) };
  events.push(writes !== undefined && !quiet ? { ...down, type: 'keyDown', text: writes, unmodifiedText: writes } : { ...down, type: 'rawKeyDown' });
  events.push({ type: 'keyUp', key, code, windowsVirtualKeyCode, modifiers: held });
  for (const bit of [8, 4, 1, 2]) {
    if (!(held & bit)) continue;
    on &= ~bit;
    const [k, c, vk] = modifierKeys[bit];
    events.push({ type: 'keyUp', key: k, code: c, windowsVirtualKeyCode: vk, modifiers: on });
  }
  return events;
}

// typing gives the events for a text, a key for each character that a keyboard has.
export function* typing(text) {
  for (const char of text.replace(/\r\n?/g, '\n')) {
    if (char === '\n') yield* combo('Enter');
    else if (char === '\t') yield* combo('Tab');
    else if (char === '+' || single(char)[1]) yield* combo(char);
    else yield { insert: char };
  }
}

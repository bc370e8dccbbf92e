// The computer tool: a person's mouse, keyboard and eyes, in CSS pixels of the tab's viewport.
import { guarded, send, watch } from './debug.js';
import { checkTab } from './group.js';
import { combo, modifierBits, typing } from './keys.js';
import { inPage } from './tools.js';

const text = said => ({ content: [{ type: 'text', text: said }] });
const pictures = new Map();
const mostPictures = 20;

// keepPicture keeps a picture for upload_image and gives its id.
export function keepPicture(data, mime) {
  const id = `screenshot_${Date.now()}_${pictures.size}`;
  pictures.set(id, { data, mime });
  if (pictures.size > mostPictures) pictures.delete(pictures.keys().next().value);
  return id;
}

export function picture(id) { return pictures.get(id); }

function point(value, name) {
  if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isFinite)) throw new Error(`${name} must be two numbers, [x, y].`);
  return { x: value[0], y: value[1] };
}

async function place(tabId, { action, coordinate, ref, force }) {
  if (coordinate !== undefined) return point(coordinate, 'coordinate');
  if (!ref) throw new Error(`coordinate or ref is required for ${action}.`);
  return inPage(tabId, 'aim', { ref, force });
}

const mouse = (tabId, type, at, more) => send(tabId, 'Input.dispatchMouseEvent', { type, ...at, ...more });

async function click(tabId, args, button, count) {
  const at = await place(tabId, args);
  const modifiers = modifierBits(args.modifiers);
  await mouse(tabId, 'mouseMoved', at, { modifiers });
  for (let n = 1; n <= count; n++) {
    const held = { button, clickCount: n, modifiers };
    await mouse(tabId, 'mousePressed', at, { ...held, buttons: button === 'right' ? 2 : 1 });
    await mouse(tabId, 'mouseReleased', at, held);
  }
  return `(${Math.round(at.x)}, ${Math.round(at.y)})`;
}

// shoot takes a picture whose pixels are CSS pixels of the viewport.
export async function shoot(tabId, { clip, full, format = 'jpeg', quality = 70 } = {}) {
  const { cssVisualViewport: seen, cssContentSize: whole } = await send(tabId, 'Page.getLayoutMetrics');
  const { result } = await send(tabId, 'Runtime.evaluate', { expression: 'devicePixelRatio', returnByValue: true });
  const area = clip ?? (full ? { x: 0, y: 0, width: whole.width, height: Math.min(whole.height, 16384) } : { x: 0, y: 0, width: seen.clientWidth, height: seen.clientHeight });
  const origin = full ? { x: 0, y: 0 } : { x: seen.pageX, y: seen.pageY };
  const params = { format, ...(format === 'jpeg' ? { quality } : {}), captureBeyondViewport: Boolean(full), clip: { x: area.x + origin.x, y: area.y + origin.y, width: area.width, height: area.height, scale: 1 / (result.value || 1) } };
  // A picture waits for its frame to be shown, and a tab in the background is shown nowhere; the frame then counts as done
  // when another takes its place, so the same is asked for again until the first is there.
  const rough = { ...params, format: 'jpeg', quality: 1 };
  const stir = setInterval(() => send(tabId, 'Page.captureScreenshot', rough).catch(() => {}), full ? 300 : 60);
  let data;
  try {
    ({ data } = await send(tabId, 'Page.captureScreenshot', params));
  } finally {
    clearInterval(stir);
  }
  return { data, mime: `image/${format}`, width: Math.round(area.width), height: Math.round(area.height) };
}

async function screenshotBlock(tabId, options) {
  let shot = await shoot(tabId, options);
  if (shot.data.length > 500_000 && shot.mime === 'image/jpeg') shot = await shoot(tabId, { ...options, quality: 35 });
  return { ...shot, id: keepPicture(shot.data, shot.mime) };
}

const actions = {
  async screenshot(tabId) {
    const shot = await screenshotBlock(tabId);
    return { content: [{ type: 'text', text: `Successfully captured screenshot (${shot.width}x${shot.height}, jpeg) - ID: ${shot.id}` }, { type: 'image', data: shot.data, mimeType: shot.mime }] };
  },
  async zoom(tabId, { region }) {
    if (!Array.isArray(region) || region.length !== 4 || !region.every(Number.isFinite)) throw new Error('region must be four numbers, [x0, y0, x1, y1].');
    const [x0, y0, x1, y1] = region;
    if (x1 <= x0 || y1 <= y0) throw new Error('region is empty.');
    const shot = await screenshotBlock(tabId, { clip: { x: x0, y: y0, width: x1 - x0, height: y1 - y0 } });
    return { content: [{ type: 'text', text: `Zoomed into (${x0}, ${y0})–(${x1}, ${y1}) - ID: ${shot.id}` }, { type: 'image', data: shot.data, mimeType: shot.mime }] };
  },
  left_click: async (tabId, args) => text(`Clicked at ${await click(tabId, args, 'left', 1)}`),
  right_click: async (tabId, args) => text(`Right-clicked at ${await click(tabId, args, 'right', 1)}`),
  double_click: async (tabId, args) => text(`Double-clicked at ${await click(tabId, args, 'left', 2)}`),
  triple_click: async (tabId, args) => text(`Triple-clicked at ${await click(tabId, args, 'left', 3)}`),
  async hover(tabId, args) {
    const at = await place(tabId, args);
    await mouse(tabId, 'mouseMoved', at, { modifiers: modifierBits(args.modifiers) });
    return text(`Hovered at (${Math.round(at.x)}, ${Math.round(at.y)})`);
  },
  async type(tabId, { text: words }) {
    if (typeof words !== 'string' || !words) throw new Error('text is required for type action.');
    for (const event of typing(words)) {
      if (event.insert) await send(tabId, 'Input.insertText', { text: event.insert });
      else await send(tabId, 'Input.dispatchKeyEvent', event);
    }
    return text(`Typed ${JSON.stringify(words.slice(0, 50))}${words.length > 50 ? '…' : ''}`);
  },
  async key(tabId, { text: words, repeat = 1 }) {
    const keys = String(words ?? '').trim().split(/\s+/).filter(Boolean);
    if (!keys.length) throw new Error('text is required for key action.');
    const events = keys.map(combo);
    const times = Math.max(1, Math.min(Number(repeat) || 1, 100));
    for (let n = 0; n < times; n++) for (const event of events.flat()) await send(tabId, 'Input.dispatchKeyEvent', event);
    return text(`Pressed ${keys.length * times} key${keys.length * times > 1 ? 's' : ''}: ${Array(times).fill(keys.join(' ')).join(' ')}`);
  },
  async scroll(tabId, args) {
    const at = args.ref ? await place(tabId, { ...args, force: true }) : point(args.coordinate, 'coordinate');
    const ticks = Math.max(1, Math.min(Number(args.scroll_amount) || 3, 10));
    const way = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[args.scroll_direction ?? 'down'];
    if (!way) throw new Error('scroll_direction is up, down, left or right.');
    await mouse(tabId, 'mouseWheel', at, { deltaX: way[0] * ticks * 100, deltaY: way[1] * ticks * 100 });
    await new Promise(done => setTimeout(done, 150));
    const shot = await screenshotBlock(tabId);
    return { content: [{ type: 'text', text: `Scrolled ${args.scroll_direction ?? 'down'} by ${ticks} ticks at (${at.x}, ${at.y})` }, { type: 'image', data: shot.data, mimeType: shot.mime }] };
  },
  async scroll_to(tabId, { ref, coordinate }) {
    if (ref) await inPage(tabId, 'reveal', { ref });
    else {
      const { x, y } = point(coordinate, 'coordinate');
      await send(tabId, 'Runtime.evaluate', { expression: `void scrollTo({left: ${x}, top: ${y}, behavior: 'instant'})` });
    }
    return text('Scrolled to target');
  },
  async wait(tabId, { duration = 1 }) {
    const seconds = Math.max(0, Math.min(Number(duration) || 0, 30));
    await new Promise(done => setTimeout(done, seconds * 1000));
    return text(`Waited for ${seconds} seconds`);
  },
  async left_click_drag(tabId, { start_coordinate, coordinate, modifiers }) {
    const from = point(start_coordinate, 'start_coordinate');
    const to = point(coordinate, 'coordinate');
    const held = { button: 'left', modifiers: modifierBits(modifiers) };
    await mouse(tabId, 'mouseMoved', from, {});
    await mouse(tabId, 'mousePressed', from, { ...held, buttons: 1, clickCount: 1 });
    for (let i = 1; i <= 10; i++) {
      await mouse(tabId, 'mouseMoved', { x: from.x + ((to.x - from.x) * i) / 10, y: from.y + ((to.y - from.y) * i) / 10 }, { ...held, buttons: 1 });
      await new Promise(done => setTimeout(done, 16));
    }
    await mouse(tabId, 'mouseReleased', to, { ...held, clickCount: 1 });
    return text(`Dragged from (${from.x}, ${from.y}) to (${to.x}, ${to.y})`);
  },
};

export async function computer(args) {
  const tab = await checkTab(args.tabId);
  const act = Object.hasOwn(actions, args.action) ? actions[args.action] : null;
  if (!act) throw new Error(`Unknown computer action: ${args.action}`);
  const page = await watch(tab.id);
  return guarded(page, () => act(tab.id, args));
}

// documents.js runs functions in documents. Firefox never settles a call whose document goes away meanwhile, so that is
// watched here: what waits in a document that is replaced ends with document_gone.
import { Refusal } from './refusal.js';

const pending = new Map(); // tab → Set of {frame, reject}

// left ends the calls of a frame whose document was replaced; those of frames below go with the top one.
export function left(tab, frame) {
  for (const p of pending.get(tab) ?? []) if (frame === 0 || p.frame === frame) p.reject(new Refusal('document_gone', 'the document was replaced'));
}

export function closed(tab) {
  for (const p of pending.get(tab) ?? []) p.reject(new Refusal('tab_gone', 'the tab was closed'));
  pending.delete(tab);
}

const PRIVILEGED = /missing host permission|cannot access|restricted|privileged/i;
const GONE = /invalid tab id|no tab with id/i;

function refusalOf(e) {
  if (e instanceof Refusal) return e;
  const text = String(e?.message ?? e);
  if (GONE.test(text)) return new Refusal('tab_gone', text);
  if (/document|frame|destroyed|actor|unloaded|conduit/i.test(text) && !/^missing host permission for the tab$/i.test(text)) return new Refusal('document_gone', text);
  if (PRIVILEGED.test(text)) return new Refusal('privileged', text);
  return new Refusal('failed', text);
}

// guarded runs fn for as long as the frame's document lives.
async function guarded(tab, frame, fn) {
  let waiting;
  const gone = new Promise((_, reject) => { waiting = { frame, reject }; });
  let set = pending.get(tab);
  if (!set) pending.set(tab, set = new Set());
  set.add(waiting);
  try { return await Promise.race([fn(), gone]); } catch (e) { throw refusalOf(e); } finally {
    set.delete(waiting);
    if (!set.size && pending.get(tab) === set) pending.delete(tab);
  }
}

// run calls a function in a frame's document, in the add-on's world or the page's, and gives {document, result}. With document
// it runs in that document alone.
export function run(tab, frame, document, world, func, args) {
  const target = document ? { tabId: tab, documentIds: [document] } : { tabId: tab, frameIds: [frame] };
  return guarded(tab, frame, async () => {
    const [r] = await browser.scripting.executeScript({ target, world, func, args, injectImmediately: true });
    if (!r) throw new Refusal('document_gone', 'the frame shows no document');
    if (r.error) throw new Refusal('failed', String(r.error.message ?? r.error));
    return { document: r.documentId, result: r.result };
  });
}

const FILES = ['engine.js', 'hands.js'];

// inside is run in the add-on's world, where the engine and the hands are put first if they are missing.
export async function inside(tab, frame, document, func, args) {
  const first = await run(tab, frame, document, 'ISOLATED', func, args);
  if (first.result?.missing !== true) return first;
  await guarded(tab, frame, () => browser.scripting.executeScript({
    target: { tabId: tab, documentIds: [first.document] }, files: FILES, injectImmediately: true,
  }));
  return run(tab, frame, first.document, 'ISOLATED', func, args);
}

// The engine that runs in the page: one script for every provider. The files of this folder are joined in the order
// engine.go lists, inside one function; nothing leaks but __drover.
// It runs in an isolated world where the browser has one. It never writes to the document and raises no event of its own.
(() => {
  'use strict';

  // The driver puts a digest of the script here, so that a page keeps one engine and a newer one replaces an older.
  const VERSION = '@VERSION@';
  if (globalThis.__drover?.version === VERSION) return VERSION;

  // ops holds what `__drover.call` can be asked: ops.NAME = args => value, or a promise of one.
  const ops = Object.create(null);

  // EngineError is an answer, not an accident: code is one of the protocol's fourteen, reason refines it.
  class EngineError extends Error {
    constructor(code, reason, message, details) {
      super(message);
      this.code = code;
      this.reason = reason || '';
      this.details = details || {};
    }
  }

  // fail makes an error to throw: `throw fail('element_not_found', 'stale_ref', 'the element is gone')`.
  const fail = (code, reason, message, details) => new EngineError(code, reason, message, details);

  const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

  // wellFormed replaces lone surrogates by U+FFFD, so that every string is valid UTF-8 on the way out.
  const wellFormed = typeof ''.toWellFormed === 'function'
    ? s => s.toWellFormed()
    : s => s.replace(LONE, '\ufffd');

  // encode is JSON.stringify whose strings are well-formed Unicode. JSON.stringify writes a lone surrogate as an
  // escape, so the slow way is taken only when the quick one shows such an escape.
  const ESCAPED = /\\u[dD][89a-fA-F]/;
  const encode = value => {
    const quick = JSON.stringify(value);
    if (quick === undefined || !ESCAPED.test(quick)) return quick;
    return JSON.stringify(value, (_, v) => {
      if (typeof v === 'string') return wellFormed(v);
      if (v === null || typeof v !== 'object' || Array.isArray(v)) return v;
      const out = {};
      for (const k of Object.keys(v)) out[wellFormed(k)] = v[k];
      return out;
    });
  };

  // SPACE is what HTML and accname collapse; a no-break space stays.
  const SPACE = /[\t\n\f\r ]+/g;

  // squash collapses ASCII white space and trims it.
  const UNEVEN = /[\t\n\f\r]|  |^ | $/;
  const squash = s => UNEVEN.test(s) ? s.replace(SPACE, ' ').replace(/^ | $/g, '') : s;

  // The number of this document: the first call proposes one, and it stays. refs are `d<number>e<n>`.
  let docNumber = 0;
  const documentNumber = () => docNumber;
  const adoptDocumentNumber = n => { if (!docNumber && Number.isInteger(n) && n > 0) docNumber = n; };

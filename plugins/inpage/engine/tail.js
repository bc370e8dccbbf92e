
  // doc is the number of this document. The first call proposes one and the engine keeps it; refs carry it.
  const answer = body => `{"doc":${documentNumber()},${body}}`;
  const good = value => answer(`"value":${encode(value) ?? 'null'}`);
  const bad = e => answer(`"error":${encode(e instanceof EngineError
    ? { code: e.code, reason: e.reason, message: e.message, details: e.details }
    : { code: 'internal_error', reason: '', message: String(e?.message ?? e), details: {} })}`);

  // call answers with a JSON string, or a promise of one: {"doc":N,"value":…} or {"doc":N,"error":{…}}. It never throws.
  const call = (op, args, doc) => {
    try {
      adoptDocumentNumber(doc);
      if (!Object.hasOwn(ops, op)) throw fail('unsupported_method', '', `the engine has no operation ${op}`);
      const value = ops[op](args ?? {});
      return typeof value?.then === 'function' ? value.then(good, bad) : good(value);
    } catch (e) {
      return bad(e);
    }
  };

  // element, candidates and adopt hand elements to a driver that can do with them what no string can: find the frame that one
  // shows, put files into it, open its closed root.
  Object.defineProperty(globalThis, '__drover', {
    value: Object.freeze({ version: VERSION, call, element: refs.get, candidates: dom.closedCandidates, adopt: dom.adopt }),
    configurable: true, enumerable: false, writable: false,
  });
  return VERSION;
})()

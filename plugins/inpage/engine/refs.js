  // refs names elements: `d<document>e<n>`. The same element keeps its ref as long as it lives; a number is never given twice,
  // and the document's number is part of it, so a ref of an older document can never mean an element of this one.
  const refs = (() => {
    const SHAPE = /^@?d(\d+)e(\d+)$/;
    const names = new WeakMap();  // Element → ref
    const elements = new Map();   // ref → WeakRef(Element)
    let last = 0;

    const forget = typeof FinalizationRegistry === 'function' ? new FinalizationRegistry(ref => elements.delete(ref)) : null;

    // of gives the element's ref, a new one at first sight.
    const of = el => {
      let ref = names.get(el);
      if (ref === undefined) {
        ref = `d${documentNumber()}e${++last}`;
        names.set(el, ref);
        elements.set(ref, new WeakRef(el));
        forget?.register(el, ref);
      }
      return ref;
    };

    // get finds the element of a ref (a leading @ is dropped), or null when it is gone or was never given.
    // The element may have left the document since; the caller asks isConnected.
    const get = ref => elements.get(String(ref).replace(/^@/, ''))?.deref() ?? null;

    // known says whether the element has a ref already.
    const known = el => names.has(el);

    // documentOf is the number of the document that a ref names, or 0 for something that is no ref.
    const documentOf = ref => Number(SHAPE.exec(String(ref))?.[1] ?? 0);

    return { of, get, known, documentOf };
  })();

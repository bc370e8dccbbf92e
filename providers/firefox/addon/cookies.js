// cookies.js reads and writes cookies of addresses. Nothing here lists the cookies of all sites.
import { Refusal } from './refusal.js';

const told = c => ({
  name: c.name, value: c.value, domain: c.domain, path: c.path, secure: c.secure, http_only: c.httpOnly, same_site: c.sameSite,
  expires: c.session ? 0 : c.expirationDate ?? 0,
});
// ask looks for cookies in every partition and first party.
const ask = url => browser.cookies.getAll({ url, partitionKey: {}, firstPartyDomain: null });
const place = c => `http${c.secure ? 's' : ''}://${c.domain.replace(/^\./, '')}${c.path}`;

export const methods = {
  async 'cookies.get'(p) {
    const seen = new Map();
    for (const url of p.urls) for (const c of await ask(url)) seen.set(`${c.name}\n${c.domain}\n${c.path}\n${c.partitionKey?.topLevelSite ?? ''}`, c);
    return { cookies: [...seen.values()].map(told) };
  },
  async 'cookies.set'(p) {
    const c = p.cookie, details = { url: p.url, name: c.name, value: c.value, path: c.path || '/', secure: c.secure, httpOnly: c.http_only };
    if (c.domain) details.domain = c.domain;
    if (c.same_site) details.sameSite = c.same_site;
    if (c.expires) details.expirationDate = c.expires;
    try { await browser.cookies.set(details); } catch (e) { throw new Refusal('bad_request', String(e?.message ?? e)); }
    return {};
  },
  async 'cookies.clear'(p) {
    let removed = 0;
    for (const url of p.urls) for (const c of await ask(url)) {
      const details = { url: place(c), name: c.name, storeId: c.storeId, firstPartyDomain: c.firstPartyDomain };
      if (c.partitionKey) details.partitionKey = c.partitionKey;
      await browser.cookies.remove(details);
      removed++;
    }
    return { removed };
  },
};

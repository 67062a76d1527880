/** Every browser test begins as on the first visit: nothing is stored, whatever tests ran before. */
import { openDB } from 'idb';
import { beforeEach } from 'vitest';

beforeEach(async () => {
  localStorage.clear();
  sessionStorage.clear();
  history.replaceState(null, '', `${location.pathname}${location.search}`);
  for (const { name } of await indexedDB.databases()) {
    if (!name?.startsWith('amalgam-')) continue;
    const library = await openDB(name);
    for (const store of library.objectStoreNames) await library.clear(store);
    library.close();
  }
});

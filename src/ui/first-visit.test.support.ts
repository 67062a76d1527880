/** Every browser test begins as on the first visit: nothing is kept by the studio, whatever tests ran before. */
import { openDB } from 'idb';
import { beforeEach } from 'vitest';

beforeEach(async () => {
  localStorage.clear();
  for (const { name } of await indexedDB.databases()) {
    if (!name?.startsWith('amalgam-')) continue;
    const shelf = await openDB(name);
    for (const store of shelf.objectStoreNames) await shelf.clear(store);
    shelf.close();
  }
});

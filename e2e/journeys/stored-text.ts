/** Searches every storage of a browser for a text. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';

/** Places of the page's origin that hold the text: storages, databases, files, caches, cookies, address, document. */
export async function placesInPage(
  page: Page,
  text: string,
): Promise<{ holding: string[]; searched: number }> {
  return page.evaluate(async (wanted) => {
    const holding: string[] = [];
    let searched = 0;
    const look = (place: string, content: string) => {
      searched++;
      if (content.includes(wanted)) holding.push(place);
    };
    look('localStorage', JSON.stringify({ ...localStorage }));
    look('sessionStorage', JSON.stringify({ ...sessionStorage }));
    look('cookies', document.cookie);
    look('address', location.href);
    look('history', JSON.stringify(history.state));
    look('document', document.documentElement.outerHTML);
    for (const input of document.querySelectorAll('input, textarea, select')) {
      look('field', (input as HTMLInputElement).value);
    }
    for (const { name } of performance.getEntries()) look('resource', name);
    for (const { name } of await indexedDB.databases()) {
      const database = await new Promise<IDBDatabase>((resolve, reject) => {
        const request = indexedDB.open(name!);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      for (const store of database.objectStoreNames) {
        const values = await new Promise<unknown[]>((resolve, reject) => {
          const request = database.transaction(store).objectStore(store).getAll();
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
        look(`database ${name}/${store}`, JSON.stringify(values));
      }
      database.close();
    }
    // one character for each byte, so that text is found in files of any kind
    const latin = new TextDecoder('latin1');
    for (const name of await caches.keys()) {
      const cache = await caches.open(name);
      for (const request of await cache.keys()) {
        const response = await cache.match(request);
        look(`cache ${request.url}`, latin.decode(await response!.arrayBuffer()));
      }
    }
    const walk = async (folder: FileSystemDirectoryHandle, path: string): Promise<void> => {
      for await (const [name, entry] of folder.entries()) {
        look(`${path}${name}`, name);
        if (entry.kind === 'directory') await walk(entry as FileSystemDirectoryHandle, `${path}${name}/`);
        else {
          const file = await (entry as FileSystemFileHandle).getFile();
          look(`${path}${name}`, latin.decode(await file.arrayBuffer()));
        }
      }
    };
    await walk(await navigator.storage.getDirectory(), 'opfs/');
    return { holding, searched };
  }, text);
}

/** Files below a folder that hold the text, as bytes or in UTF-16: databases, caches and the history of a browser. */
export function filesHolding(folder: string, text: string): string[] {
  const forms = [Buffer.from(text), Buffer.from(text, 'utf16le')];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => {
    const whole = join(folder, path);
    const stats = statSync(whole, { throwIfNoEntry: false });
    if (!stats?.isFile()) return false;
    const bytes = readFileSync(whole);
    return forms.some((form) => bytes.includes(form));
  });
}

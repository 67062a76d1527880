/** Steps of a user in every browser; each journey ends with its row of the table. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SAMPLES } from '../disk-folder';
import type { FakeHub } from '../fake-hub';
import { treeHashOf } from '../tree-hash';
import { type Person, personAt, type Tab } from './tab';

export interface Walk {
  tab: Tab;
  person: Person;
  url: string;
  /** The page of held.html. */
  heldUrl: string;
  hub: FakeHub;
  /** The studio as `npm start` serves it, until `leave` was called. */
  started: { url: string; leave(): Promise<void> };
  /** Abilities of the browser as its page reports them. Without storage, files stay in memory, and the page says so. */
  hasStorage: boolean;
  hasWebGpu: boolean;
  /** Beginning of the sha256 of what each journey merged; compared over the browsers. */
  merged: Map<string, string>;
}

/** A result for the table; throws where the journey fails. */
export type Journey = (walk: Walk) => Promise<string>;

async function opened({ tab, person, url, hasStorage }: Walk): Promise<void> {
  // the app saves the recipe when it closes, so the storage is cleared from a file beside it
  await tab.goto(`${url}samples/expected.json`);
  await tab.run(`(async () => {
    localStorage.clear();
    sessionStorage.clear();
    for (const { name } of await indexedDB.databases()) {
      await new Promise((resolve, reject) => {
        const deletion = indexedDB.deleteDatabase(name);
        deletion.onsuccess = resolve;
        deletion.onerror = () => reject(deletion.error);
      });
    }
  })()`);
  await tab.goto(url);
  await person.sees('^Ready:');
  if (!hasStorage) await person.sees('keeps no files: up to 1\\.07.GB stay in memory');
}

async function chooseEngine({ person }: Walk, engine: 'WebGPU' | 'CPU'): Promise<void> {
  await person.presses('button', '^(CPU|WebGPU)( ·|$)');
  await person.presses('radio', `^${engine}`);
  await person.finds('button', `^${engine}( ·|$)`);
}

/** The tree hash that the page shows of the merge that just ended. */
async function shownHash({ person }: Walk): Promise<string> {
  await person.sees('^Merged in');
  await person.presses('tab', '^Files');
  const title = await person.until<string>(
    'the hash',
    `document.querySelector('[title^="tree hash "]')?.getAttribute('title')`,
  );
  return title.slice('tree hash '.length);
}

/** Merges the sample. */
async function merge(walk: Walk, engine: 'WebGPU' | 'CPU'): Promise<string> {
  await opened(walk);
  await chooseEngine(walk, engine);
  await walk.person.presses('button', '^Merge$');
  return shownHash(walk);
}

/** The digits of the tree hash. */
const hashOf = (bytes: Uint8Array) => treeHashOf(bytes).slice('tree2:'.length);

function same(walk: Walk, sha256: string): string {
  const reference = walk.merged.get('sample');
  if (sha256 !== reference) throw new Error(`${walk.tab.browser}: ${sha256} instead of ${reference}`);
  return sha256.slice(0, 12);
}

export const JOURNEYS: Record<string, Journey> = {
  async 'holds files and workers that are waited for'({ tab, person, heldUrl, hasStorage }) {
    await tab.goto(heldUrl);
    await person.until('the page', `typeof hold === 'function'`);
    // other browsers have no readers side by side: one reader waits for the other
    const rounds = /chrom/i.test(tab.browser) ? 1000 : 50;
    const files = hasStorage ? await tab.run<number>(`hold('files', ${rounds})`) : 2 * rounds;
    const workers = await tab.run<number>(`hold('workers', 5)`);
    if (files !== 2 * rounds || workers !== 10) throw new Error(`${files} opens, ${workers} workers`);
    return `${hasStorage ? `${files} opens, ` : ''}${workers} workers`;
  },
  async 'opens and predicts'(walk) {
    await opened(walk);
    return walk.hasStorage ? 'yes' : 'yes, and says: 1.07 GB in memory';
  },
  async 'merges on the CPU'(walk) {
    const sha256 = await merge(walk, 'CPU');
    walk.merged.set('sample', sha256);
    return sha256.slice(0, 12);
  },
  async 'saves as a download'(walk) {
    const { tab, person } = walk;
    if (tab.downloads === undefined) {
      // the content of the link is read where the driver has no place for downloads
      await tab.run(`(() => {
        const make = URL.createObjectURL;
        URL.createObjectURL = (file) => { window.offered = file; return make.call(URL, file); };
      })()`);
      await person.presses('button', '^Download model\\.safetensors');
      const saved = await person.until<string>(
        'the file',
        `window.offered && window.offered.arrayBuffer().then((bytes) => new Uint8Array(bytes).toBase64?.() ??
          btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join('')))`,
      );
      same(walk, hashOf(Buffer.from(saved, 'base64')));
      return 'same bytes';
    }
    await person.presses('button', '^Download model\\.safetensors');
    const file = join(tab.downloads, 'model.safetensors');
    // Firefox makes the file empty and writes beside it first
    const isWhole = () => existsSync(file) && statSync(file).size > 0 && !existsSync(`${file}.part`);
    for (let tried = 0; !isWhole(); tried++) {
      if (tried === 300) throw new Error(`${tab.browser}: no download came`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    same(walk, hashOf(readFileSync(file)));
    return 'same bytes';
  },
  async 'merges on WebGPU'(walk) {
    return walk.hasWebGpu ? same(walk, await merge(walk, 'WebGPU')) : 'no WebGPU';
  },
  async 'merges beside a merge that was left'(walk) {
    const { tab, person, url } = walk;
    await opened(walk);
    await chooseEngine(walk, 'CPU');
    // by the page itself, as soon as the merge has its lock: a driver comes too late
    await tab.run(`void (async () => {
      const isHeld = async () => (await navigator.locks.query()).held.some(({ name }) => name === 'amalgam-run');
      while (!(await isHeld())) await new Promise((resolve) => setTimeout(resolve));
      location.href = ${JSON.stringify(`${url}samples/expected.json?left`)};
    })()`);
    await person.presses('button', '^Merge$');
    await person.until('the other page', `location.search === '?left'`);
    return same(walk, await merge(walk, 'CPU'));
  },
  async 'resumes after a kill'(walk) {
    if (!walk.tab.restart) return 'keeps nothing';
    await opened(walk);
    await chooseEngine(walk, walk.hasWebGpu ? 'WebGPU' : 'CPU');
    const seen = `[...document.querySelectorAll('.run-line')].some((e) => /^([5-9]|[1-4]\\d) of 56/.test(e.innerText)) ? 'under way' : /^Merged in/m.test(document.body.innerText) && 'merged'`;
    for (let tried = 1; tried <= 5; tried++) {
      await walk.person.presses('button', '^Merge$');
      await walk.person.until('the merge begun', `!/^Merged in/m.test(document.body.innerText)`);
      if ((await walk.person.until<string>('a tensor merged', seen, 5)) === 'merged') continue;
      walk.tab = await walk.tab.restart!();
      walk.person = personAt(walk.tab);
      await walk.tab.goto(walk.url);
      await walk.person.sees('^Ready:|is not finished');
      // it can have ended before it was killed
      const isLeft = await walk.person
        .until('what is left', `document.body.innerText.includes('is not finished')`, 200, 10_000)
        .catch(() => false);
      if (!isLeft) continue;
      await walk.person.presses('button', '^Resume$');
      return same(walk, await shownHash(walk));
    }
    throw new Error('The merge was never met in the middle.');
  },
  async 'measures perplexity'(walk) {
    const { person } = walk;
    await opened(walk);
    await chooseEngine(walk, 'CPU');
    await person.presses('tab', '^Measure');
    for (const name of ['common', 'harbour', 'workshop']) await person.presses('button', `^${name}$`);
    await person.presses('button', '^Measure \\d');
    return person.until<string>(
      'five perplexities',
      `(() => {
        const all = [...document.querySelectorAll('table .measure-value')].map((e) => /^\\d+\\.\\d+/.exec(e.textContent)?.[0]);
        return all.length === 5 && all.every(Boolean) && all.sort().join(' ');
      })()`,
    );
  },
  async 'compares two models'(walk) {
    const { person } = walk;
    await opened(walk);
    await person.presses('link', '^Difference');
    await person.presses('button', '^Measure difference$');
    await person.sees('^56 tensors compared: 56 modified');
    await person.sees('Both configs say the same');
    return '56 of 56 modified';
  },
  async 'merges a model of one’s own'(walk) {
    const { tab, person } = walk;
    await opened(walk);
    await chooseEngine(walk, 'CPU');
    await person.presses('button', '^Remove workshop$');
    await person.presses('button', '^\\+ add$');
    await person.presses('tab', 'computer|local');
    // a folder that is picked arrives as its files, with their paths
    await tab.run(`(async () => {
      const input = document.querySelector('input[aria-label="Model files"]');
      const chosen = new DataTransfer();
      for (const name of ${JSON.stringify(readdirSync(join(SAMPLES, 'workshop')))}) {
        const blob = await (await fetch('samples/workshop/' + name)).blob();
        const file = new File([blob], name);
        Object.defineProperty(file, 'webkitRelativePath', { value: 'mine/' + name });
        chosen.items.add(file);
      }
      input.files = chosen.files;
      [...input.files].forEach((file) => Object.defineProperty(file, 'webkitRelativePath', { value: 'mine/' + file.name }));
      input.dispatchEvent(new Event('change', { bubbles: true }));
    })()`);
    await person.finds('button', '^Remove mine$');
    await tab.run(`[...document.querySelectorAll('button')].find((b) => b.innerText === 'Done')?.click()`);
    await person.sees('^Ready:');
    await person.presses('button', '^Merge$');
    const sha256 = await shownHash(walk);
    walk.merged.set('own', sha256);
    return sha256.slice(0, 12);
  },
  async 'merges from a Hub with faults'(walk) {
    const { person, hub } = walk;
    await opened(walk);
    await chooseEngine(walk, 'CPU');
    for (const name of ['kitchen', 'harbour', 'workshop']) await person.presses('button', `^Remove ${name}$`);
    await person.presses('button', '^change$');
    await person.presses('tab', 'Hub$');
    await person.presses('summary', '^Access token and hub');
    await person.fills('^Hub$', hub.url, 'submit');
    hub.faults.length = 0;
    hub.faults.push(
      { path: '/api/models', fault: { kind: 'status', status: 429, headers: { 'Retry-After': '1' } } },
      { path: 'amalgam/base/model.safetensors', fault: { kind: 'flip', at: 70_000 } },
      { path: 'amalgam/base/model.safetensors', fault: { kind: 'cut', after: 40_000 } },
      { path: 'amalgam/kitchen/adapter_model.safetensors', fault: { kind: 'short', by: 10 } },
      { path: 'amalgam/harbour/adapter_model.safetensors', fault: { kind: 'status', status: 503 } },
    );
    await person.fills('^Search the Hub$', 'base');
    await person.presses('button', '^Use as base: amalgam/base$');
    for (const name of ['kitchen', 'harbour', 'workshop']) {
      await person.presses('button', `^Add: amalgam/${name}$`);
      await person.finds('button', `^Remove ${name}$`);
    }
    await person.presses('button', '^Done$');
    await person.sees('^Ready:');
    await person.presses('button', '^Merge$');
    const sha256 = await shownHash(walk);
    const left = hub.faults.filter(({ times = 1 }) => times > 0).length;
    walk.merged.set('hub', sha256);
    return `${sha256.slice(0, 12)}, ${hub.faults.length - left} faults`;
  },
  async 'opens offline'(walk) {
    const { tab, person, started } = walk;
    if (!walk.hasStorage) return 'keeps nothing';
    await tab.goto(started.url);
    const active = 'navigator.serviceWorker.getRegistration().then((found) => Boolean(found?.active))';
    await person.until('the service worker', active);
    await started.leave();
    await tab.goto(started.url);
    await person.sees('^Ready:');
    return 'yes';
  },
};

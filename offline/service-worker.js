// Keeps the app itself (page, scripts, styles, the sample family) so that it opens without a network. Everything else
// passes by untouched: models, datasets and the Hub are never seen here. The build fills in FILES (path, sha256) and VERSION.
const FILES = __FILES__;
const VERSION = '__VERSION__';

const PREFIX = 'amalgam-app-';
const CACHE = PREFIX + VERSION;
const page = new URL('index.html', self.registration.scope).href;
const kept = new Set(FILES.map(([file]) => new URL(file, self.registration.scope).href));

self.addEventListener('install', (event) => {
  event.waitUntil(keepAll());
});

// A host that is just being updated may answer with files of two versions: a version is kept whole or not at all, and
// tried again at the next visit.
async function keepAll() {
  const answers = await Promise.all(
    FILES.map(async ([file, sha256]) => {
      // past the browser's own cache: a half-updated one would be kept for good
      const response = await fetch(new Request(file, { cache: 'reload' }));
      const digest = await crypto.subtle.digest('SHA-256', await response.clone().arrayBuffer());
      const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      if (!response.ok || hex !== sha256) throw new Error(`${file} is not the file of version ${VERSION}`);
      return [file, response];
    }),
  );
  const cache = await caches.open(CACHE);
  for (const [file, response] of answers) await cache.put(file, response);
}

self.addEventListener('activate', (event) => {
  event.waitUntil(sweep().then(() => self.clients.claim()));
});

// The page says when: never while something runs.
self.addEventListener('message', (event) => {
  if (event.data === 'take over') self.skipWaiting();
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || request.headers.has('Range')) return;
  const url = request.url.replace(/[?#].*$/, '');
  if (request.mode === 'navigate' && (url === self.registration.scope || url === page)) {
    event.respondWith(answer(page, request));
  } else if (kept.has(url)) {
    event.respondWith(answer(url, request));
  } else if (url.startsWith(new URL('assets/', self.registration.scope).href)) {
    // of the version before: a tab that is still open with it may load its parts
    event.respondWith(caches.match(url).then(async (found) => isolated(found ?? (await fetch(request)))));
  }
});

async function answer(url, request) {
  const cache = await caches.open(CACHE);
  return isolated((await cache.match(url)) ?? (await fetch(request)));
}

/** With the headers under which threads can share memory, on hosts that send none of their own. */
function isolated(response) {
  const { body, status, statusText } = response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  return new Response(body, { status, statusText, headers });
}

/** The version before is kept for tabs that are open with it; older ones go. */
async function sweep() {
  const versions = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(versions.slice(0, -1).map((name) => caches.delete(name)));
}

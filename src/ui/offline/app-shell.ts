/** The service worker that lets the app open without a network, and the way to its next version. */
import { trustedWorkerUrl } from '../../trusted-worker-url';
import type { Studio } from '../state/studio';

/** The version that waits to take over, once there is one. */
let waiting: ServiceWorker | null = null;

/**
 * Has the browser store the app. Where it cannot (private windows, plain http, a build without the worker) the app
 * works as before, with the network only.
 */
export async function installApp(studio: Studio): Promise<void> {
  // absent in insecure contexts and some private windows
  if (!('serviceWorker' in navigator)) return;
  try {
    const registration = await navigator.serviceWorker.register(trustedWorkerUrl('sw.js'));
    const watch = (worker: ServiceWorker | null) => {
      const ready = () => {
        // the first version ever takes over by itself; a later one waits for the user
        if (worker?.state !== 'installed' || !navigator.serviceWorker.controller) return;
        waiting = worker;
        studio.store.setState({ update: true });
      };
      worker?.addEventListener('statechange', ready);
      ready();
    };
    watch(registration.waiting);
    registration.addEventListener('updatefound', () => watch(registration.installing));
    const look = () => registration.update().catch(() => undefined); // offline: another time
    await look();
    // a tab may stay open for weeks
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') void look();
    });
  } catch (thrown) {
    console.info('Amalgam cannot be kept for use offline:', thrown);
  }
}

/** Lets the waiting version take over and opens the page with it. */
export function reloadToUpdate(): void {
  if (!waiting) return;
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
  waiting.postMessage('take over');
}

/**
 * A worker's URL under the strict policy of the built studio, where `new Worker` takes a `TrustedScriptURL` only.
 * Import the worker as `./some.worker?worker&url` and start it with `startWorker` (platform.ts).
 */
interface TrustedTypePolicy {
  createScriptURL(url: string): string;
}

let policy: TrustedTypePolicy | undefined;

/**
 * The URL made absolute and, where the browser has Trusted Types, vouched for. `Worker` takes the result either way.
 * @throws TypeError when the URL is not on our own origin.
 */
export function trustedWorkerUrl(url: string): string {
  const { trustedTypes } = globalThis as unknown as {
    trustedTypes?: { createPolicy(name: string, rules: TrustedTypePolicy): TrustedTypePolicy };
  };
  if (!trustedTypes) return ownOrigin(url);
  policy ??= trustedTypes.createPolicy('amalgam', { createScriptURL: ownOrigin });
  return policy.createScriptURL(url);
}

function ownOrigin(url: string): string {
  const absolute = new URL(url, location.href);
  if (absolute.origin !== location.origin) throw new TypeError(`Not a worker of Amalgam: ${absolute.href}`);
  return absolute.href;
}

import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { checkListedPath } from './listed-path';
import type { ModelFolder } from './model-folder';
import { rangeSource } from './range-source';
import { retrying, type Transfer } from './retries';
import { fetchOk, readAll } from './transfer';

const listingSchema = v.object({
  files: v.array(v.object({ path: v.string(), size: v.pipe(v.number(), v.safeInteger(), v.minValue(0)) })),
});

const LISTING_BYTES = 16 * 1024 * 1024;

/**
 * A folder that the headless command serves on the page's own origin: `url` (slash at the end) answers with
 * `{"files": [{"path", "size"}]}`, and each file with Range requests at `url` + path.
 * @param path the name a recipe uses for the folder.
 * @throws Usage for a URL on another origin or without the slash; the network's failures in words.
 */
export async function openServedFolder(
  path: string,
  url: string,
  transfer: Transfer = {},
  pageOrigin = globalThis.location.origin,
): Promise<ModelFolder> {
  const base = new URL(url, `${pageOrigin}/`);
  if (base.origin !== pageOrigin || !base.pathname.endsWith('/') || base.search !== '' || base.hash !== '') {
    throw new AmalgamError(
      'Usage',
      `${url} is not a folder on the page's own origin ${pageOrigin}.`,
      'Served folders come from the headless command alone. Open other models from the Hub or from disk.',
    );
  }
  const subject = { name: `the folder ${path}`, host: base.host };
  const listing = await retrying(
    async (signal, received) =>
      readAll(
        await fetchOk(base.href, { headers: {} }, subject, transfer, signal),
        subject,
        LISTING_BYTES,
        received,
      ),
    subject,
    transfer,
  );
  const { files } = parseListing(new TextDecoder().decode(listing), path);
  return {
    path,
    origin: { kind: 'served' },
    files: files.map((file) => {
      checkListedPath(file.path, path);
      const target = {
        url: base.href + file.path.split('/').map(encodeURIComponent).join('/'),
        byteLength: file.size,
        subject: { name: `${path}/${file.path}`, host: base.host },
      };
      return { path: file.path, byteLength: file.size, open: () => rangeSource(target, transfer) };
    }),
  };
}

function parseListing(text: string, path: string): v.InferOutput<typeof listingSchema> {
  try {
    return v.parse(listingSchema, JSON.parse(text));
  } catch (cause) {
    throw new AmalgamError(
      'HubError',
      `The listing of ${path} is not a list of files.`,
      'Start the headless command again.',
      { cause },
    );
  }
}

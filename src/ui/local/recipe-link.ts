/**
 * Recipes in a link: their YAML, deflated, in the part of the address behind `#`, which browsers never send anywhere.
 */

import { AmalgamError } from '../../errors';
import { bytesOf, piecesOf } from '../../platform';

/** Longest link part read, and longest text inflated: no recipe comes near, and a bomb goes no further. */
const MAX_LINK = 100_000;
const MAX_TEXT = 1_000_000;
/** Most runs read. */
const MAX_RUNS = 16;

/** A run that is shown beside the recipe. */
interface LinkedRun {
  yaml: string;
  /** Given by a person. */
  name: string | null;
}

/** What a link has besides the recipe. */
interface LinkExtras {
  runs: readonly LinkedRun[];
  view: URLSearchParams;
}

/** The address of this page with a recipe in it, and what is shown of it. */
export async function recipeLink(yaml: string, page: string, extras?: LinkExtras): Promise<string> {
  const url = new URL(page);
  const said = new URLSearchParams({ recipe: await packed(yaml) });
  for (const { yaml: own, name } of extras?.runs ?? []) {
    said.append('run', `${await packed(own)}${name === null ? '' : `.${name}`}`);
  }
  for (const [name, value] of extras?.view ?? []) said.set(name, value);
  url.hash = said.toString();
  return url.href;
}

/** The YAML in an address, or undefined where there is none. @throws AmalgamError `LinkInvalid` */
export async function recipeInLink(hash: string): Promise<string | undefined> {
  const text = new URLSearchParams(hash.slice(1)).get('recipe');
  return text === null ? undefined : unpacked(text);
}

/** The runs in an address. @throws AmalgamError `LinkInvalid` */
export async function runsInLink(hash: string): Promise<LinkedRun[]> {
  const all = new URLSearchParams(hash.slice(1)).getAll('run').slice(0, MAX_RUNS);
  return Promise.all(
    all.map(async (text) => {
      const end = text.indexOf('.');
      const yaml = await unpacked(end < 0 ? text : text.slice(0, end));
      return { yaml, name: end < 0 ? null : text.slice(end + 1) };
    }),
  );
}

async function packed(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  return toBase64Url(await throughStream(bytes, new CompressionStream('deflate-raw'), MAX_LINK));
}

async function unpacked(text: string): Promise<string> {
  if (text.length > MAX_LINK) throw invalid();
  try {
    const inflated = await throughStream(
      fromBase64Url(text),
      new DecompressionStream('deflate-raw'),
      MAX_TEXT,
    );
    return new TextDecoder('utf-8', { fatal: true }).decode(inflated);
  } catch (cause) {
    throw invalid(cause);
  }
}

function invalid(cause?: unknown): AmalgamError {
  return new AmalgamError(
    'LinkInvalid',
    'The recipe in this link cannot be read: a part of the link is missing or was changed.',
    'Ask for the link again, or for the recipe as a YAML file.',
    { cause },
  );
}

async function throughStream(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
  limit: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const piece of piecesOf(new Blob([bytes]).stream().pipeThrough(stream))) {
    length += piece.byteLength;
    if (length > limit) throw new RangeError(`more than ${limit} bytes`);
    pieces.push(piece as Uint8Array<ArrayBuffer>);
  }
  return bytesOf(new Blob(pieces));
}

function toBase64Url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (b) => String.fromCharCode(b)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

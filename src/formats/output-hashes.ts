/** The file of an output with the hashes of its inputs and its files. */
import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { parseJson } from './strict-json';

export const HASHES_FILE = 'amalgam-hashes.json';

/** How a reader who has no Amalgam makes the same hash of a file. */
export const HASHES_ABOUT =
  'tree2: sha256 of the digests of pieces of 2 MiB, each the sha256 of the sha256s of its parts of 256 KiB. On a command line: ' +
  `split -b 2M --filter='split -b 256K --filter="openssl dgst -sha256 -binary" | openssl dgst -sha256 -binary' FILE | sha256sum`;

export interface OutputHashes {
  /** By the name that the recipe has for the file: the sha256 that the Hub has for it, or `tree2:` and a tree hash. */
  inputs: Record<string, string>;
  /** `tree2:` and the tree hash of every file of the output but this one, by its path. */
  outputs: Record<string, string>;
}

const schema = v.object({
  inputs: v.record(v.string(), v.string()),
  outputs: v.record(v.string(), v.string()),
});

/** The text of {@link HASHES_FILE}, names in order. */
export function hashesText(
  inputs: Readonly<Record<string, string>>,
  outputs: Readonly<Record<string, string>>,
): string {
  const sorted = (hashes: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(hashes).sort(([a], [b]) => (a < b ? -1 : 1)));
  const all = { about: HASHES_ABOUT, inputs: sorted(inputs), outputs: sorted(outputs) };
  return `${JSON.stringify(all, null, 2)}\n`;
}

/**
 * The text of a {@link HASHES_FILE} with another hash for one file; as it is where the file is not in it.
 * @throws AmalgamError `JsonInvalid`, `LimitExceeded`
 */
export function withOutputHash(text: string, path: string, hash: string): string {
  const { inputs, outputs } = parseHashes(text);
  return Object.hasOwn(outputs, path) ? hashesText(inputs, { ...outputs, [path]: hash }) : text;
}

/** Contents of a {@link HASHES_FILE}. @throws AmalgamError `JsonInvalid`, `LimitExceeded` */
export function parseHashes(text: string): OutputHashes {
  const parsed = v.safeParse(schema, parseJson(text, HASHES_FILE));
  if (parsed.success) return parsed.output;
  throw new AmalgamError(
    'JsonInvalid',
    `${HASHES_FILE}: this is no list of hashes.`,
    'The file is damaged or is not what its name says. Get it again.',
  );
}

/**
 * Outputs of other programs that the tests are held against. A group of them is two files of `fixtures/golden`:
 * GROUP.json holds the texts by path, GROUP.safetensors the other files as bytes (U8), each a tensor named by its path.
 *
 *     npx tsx e2e/goldens.ts unpack GROUP FOLDER      writes the files of a group into a new folder
 *     npx tsx e2e/goldens.ts pack GROUP FOLDER        makes the group of the files of a folder
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { headerLength, parseSafetensorsHeader } from '../src/formats/safetensors-header';
import { buildSafetensorsHeader } from '../src/formats/safetensors-write';

const root = join(import.meta.dirname, '..');
const IS_TEXT = /\.(json|yml|md)$/;

const packs = (group: string) =>
  [`${group}.json`, `${group}.safetensors`].map((name) => join(root, 'e2e/fixtures/golden', name)) as [
    string,
    string,
  ];

/** Writes every file of a group below a folder, byte for byte as it was packed. */
function unpack(group: string, folder: string): void {
  const [texts, tensors] = packs(group);
  const put = (path: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  for (const [path, text] of Object.entries(
    JSON.parse(readFileSync(texts, 'utf8')) as Record<string, string>,
  ))
    put(path, text);
  const file = readFileSync(tensors);
  const end = 8 + headerLength(file.subarray(0, 8), file.length, tensors);
  const { tensors: files } = parseSafetensorsHeader(
    Uint8Array.from(file.subarray(8, end)),
    file.length,
    tensors,
  );
  for (const [path, { begin, end: last }] of files) put(path, file.subarray(begin, last));
}

/** Makes a group of the files below a folder. */
function pack(group: string, folder: string): void {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length).replaceAll('\\', '/'))
    .sort();
  const [texts, tensors] = packs(group);
  const text = paths.filter((path) => IS_TEXT.test(path));
  const entries = text.map((path) => [path, readFileSync(join(folder, path), 'utf8')]);
  writeFileSync(texts, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
  const files = paths
    .filter((path) => !IS_TEXT.test(path))
    .map((path) => ({ path, bytes: readFileSync(join(folder, path)) }));
  const header = buildSafetensorsHeader(
    files.map(({ path, bytes }) => ({
      ...{ name: path, dtype: 'U8', shape: [bytes.length], byteLength: bytes.length },
    })),
    {},
  );
  writeFileSync(tensors, Buffer.concat([header, ...files.map(({ bytes }) => bytes)]));
}

/**
 * The folder with the files of a group, for tests to read. It is unpacked once, by whichever process asks first, and named by
 * the hash of the group.
 */
export function goldenFolder(group: string): string {
  const hash = createHash('sha256');
  for (const path of packs(group)) hash.update(readFileSync(path));
  const kept = join(root, 'node_modules/.cache/goldens');
  const folder = join(kept, `${group}-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(kept, { recursive: true });
  const begun = mkdtempSync(join(kept, 'begun-'));
  unpack(group, begun);
  try {
    renameSync(begun, folder);
  } catch (refused) {
    // another process was first
    rmSync(begun, { recursive: true });
    if (!existsSync(folder)) throw refused;
  }
  return folder;
}

if (process.argv[1] === import.meta.filename) {
  const [verb, group, folder] = process.argv.slice(2);
  const act = { pack, unpack }[verb!];
  if (!act || !group || !folder) throw new Error('Usage: npx tsx e2e/goldens.ts pack|unpack GROUP FOLDER');
  act(group, folder);
}

/** The vocabulary of a model: the tokens of its tokenizer.json, and how many rows its embedding has for them. */
import { errorReport } from '../../errors';
import { MAX_JSON_LENGTH } from '../../formats/strict-json';
import { readTokenizerJson, type TokenizerTokens } from '../../formats/tokenizer-json';
import { readSmallText } from '../../inputs/header';
import type { Model } from '../../inputs/model';
import { embeddingRows } from '../../inputs/model-tensors';
import { findFile, type ModelFile, type ModelFolder } from '../../sources/model-folder';
import type { Plan } from '../plan/plan';

export const TOKENIZER_JSON = 'tokenizer.json';

export interface Vocabulary {
  ref: string;
  /** Key of the opened folder that the tokenizer files are in: the adapter's where it brings a tokenizer of its own. */
  path: string;
  folder: ModelFolder;
  /** Its tokenizer.json. */
  file?: ModelFile;
  /** Rows of the embedding; undefined where nobody knows which tensor that is. */
  rows: number | undefined;
}

/** A vocabulary whose tokens are known. */
export interface KnownVocabulary extends Vocabulary {
  tokens: TokenizerTokens;
  rows: number;
  /** Token → row of the embedding, for the tokens that have one. */
  ids: ReadonlyMap<string, number>;
}

/** Place of a model's tokenizer, without reading it. */
export function vocabularyOf(model: Model): Vocabulary {
  const { ref, checkpoint, adapter } = model;
  const own = adapter && findFile(adapter.folder, TOKENIZER_JSON) ? adapter : checkpoint;
  const file = findFile(own.folder, TOKENIZER_JSON);
  return { ref, path: own.path, folder: own.folder, ...(file ? { file } : {}), rows: embeddingRows(model) };
}

// a plan is made again at every move of a slider: the contents of files are read once
const read = new WeakMap<ModelFile, Promise<TokenizerTokens>>();
const within = new WeakMap<TokenizerTokens, { rows: number; ids: ReadonlyMap<string, number> }>();
const compared = new WeakMap<ModelFile, WeakMap<ModelFile, Promise<boolean>>>();

/** Whether the tokens of a vocabulary are at hand: known already, or in a file that is not on a hub. */
export function isNear({ file, folder }: Vocabulary): boolean {
  return file !== undefined && (read.has(file) || folder.origin.kind !== 'hub');
}

/** The tokens of a tokenizer.json; every file is read once. @throws AmalgamError, see {@link readTokenizerJson} */
function tokensOf(file: ModelFile, path: string): Promise<TokenizerTokens> {
  const known =
    read.get(file) ??
    readSmallText(file, path, MAX_JSON_LENGTH).then((text) =>
      readTokenizerJson(text, `${path}/${file.path}`),
    );
  read.set(file, known);
  // a file that could not be reached may be there the next time
  known.catch(() => read.delete(file));
  return known;
}

/**
 * Reads the tokenizer.json that a plan takes from a hub as it is; what is wrong with it is said by the next plan, and where it
 * is copied.
 * @returns whether there was one that nobody had read
 */
export async function readTaken(
  extras: Plan['extras'],
  fileOf: (folder: string, file: string) => { folder: ModelFolder; file: ModelFile },
): Promise<boolean> {
  const taken = extras.find(({ path }) => path === TOKENIZER_JSON)?.content;
  if (!taken || 'text' in taken) return false;
  const { folder, file } = fileOf(taken.folder, taken.file);
  if (folder.origin.kind !== 'hub' || read.has(file)) return false;
  return tokensOf(file, taken.folder).then(
    () => true,
    () => false,
  );
}

/**
 * Reads the tokens of a vocabulary, or reports in words why they are not known.
 * @throws AmalgamError `Canceled` only
 */
export async function knownVocabulary(vocabulary: Vocabulary): Promise<KnownVocabulary | string> {
  const { ref, path, file, rows } = vocabulary;
  if (rows === undefined) return `it is not known which tensor of ${ref} is its embedding`;
  if (!file) return `${path} has no ${TOKENIZER_JSON}`;
  try {
    const tokens = await tokensOf(file, path);
    if (tokens.ids.size === 0) return `${path}/${TOKENIZER_JSON} names no tokens`;
    return { ...vocabulary, tokens, rows, ids: idsWithin(tokens, rows) };
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (code === 'Canceled') throw thrown;
    return message.replace(/\.$/, '');
  }
}

function idsWithin(tokens: TokenizerTokens, rows: number): ReadonlyMap<string, number> {
  const known = within.get(tokens);
  if (known?.rows === rows) return known.ids;
  const ids = new Map([...tokens.ids].filter(([, id]) => id < rows));
  within.set(tokens, { rows, ids });
  return ids;
}

/** Whether both have the same tokenizer.json. */
export async function sameTokenizerFile(a: Vocabulary, b: Vocabulary): Promise<boolean> {
  return sameFile(a.file, b.file);
}

/** Whether two files are the same: compared by hashes, read only when the lengths agree and no hash is known. */
async function sameFile(x: ModelFile | undefined, y: ModelFile | undefined): Promise<boolean> {
  if (x === y) return true;
  if (!x || !y || x.byteLength !== y.byteLength) return false;
  if (x.sha256 !== undefined && y.sha256 !== undefined) return x.sha256 === y.sha256;
  if (x.gitSha1 !== undefined && y.gitSha1 !== undefined) return x.gitSha1 === y.gitSha1;
  if (x.byteLength > MAX_JSON_LENGTH) return false;
  const others = compared.get(x) ?? new WeakMap<ModelFile, Promise<boolean>>();
  compared.set(x, others);
  const known = others.get(y) ?? sameBytes(x, y);
  others.set(y, known);
  known.catch(() => others.delete(y));
  return known;
}

async function sameBytes(x: ModelFile, y: ModelFile): Promise<boolean> {
  const [one, two] = await Promise.all([x, y].map((file) => file.open().read(0, file.byteLength)));
  return one!.every((byte, i) => byte === two![i]);
}

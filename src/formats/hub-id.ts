import { AmalgamError } from '../errors';
import { displayName } from './names';

/** The default hub. */
export const DEFAULT_HUB_URL = 'https://huggingface.co';

/** Host names under which the public Hub's own pages are linked. */
const PUBLIC_HOSTS: readonly string[] = ['huggingface.co', 'www.huggingface.co', 'hf.co', 'www.hf.co'];

/** A repository on the Hub and, where the text named one, a branch, tag or commit. */
export interface HubId {
  /** `owner/name`, or a GGUF file of it: `owner/name/file.gguf`. */
  id: string;
  revision?: string;
}

/**
 * Is this a model id the Hub can have: `owner/name`, or one of the old single names such as `gpt2`? Rules of
 * huggingface_hub `utils/_validators.py`: ASCII letters, digits, `-`, `_`, `.`; no `--` or `..`, no `-` or `.` at the
 * ends of a part, at most 96 characters a part, no `.git`.
 */
export function isRepoId(text: string): boolean {
  const parts = text.split('/');
  if (parts.length > 2) return false;
  return parts.every((part) => /^\w(?:[\w.-]{0,94}\w)?$/.test(part)) && !/--|\.\.|\.git$/.test(text);
}

/** The repository, and the GGUF file in it, that an id is of: such repositories hold one model many times. */
export function hubFile(id: string): { repo: string; file?: string } {
  const [, repo, file] = /^([^/]+\/[^/]+)\/([^/]+\.gguf)$/i.exec(id) ?? [];
  return repo !== undefined && file !== undefined && isRepoId(repo) ? { repo, file } : { repo: id };
}

/** Suffixes of the names of quantized copies: GGUF, bitsandbytes, GPTQ, AWQ, MLX, compressed-tensors and the like. */
const FEWER_BITS =
  /(?:[-_.](?:(?:gguf|i?q[2-8](?:_(?:k|0|1|nl|xs))?(?:_(?:s|m|l|xl))?|b?f16|f32)|unsloth|bnb|gptq|awq|hqq|aqlm|exl2|eetq|mlx|nf4|fp8|quantized|int-?[48]|[2-8]-?bits?|w[48]a(?:8|16)))+(?:[-_.]\d+g)?$/i;

/** The name of the model that a copy in fewer bits was made from, without its owner: `acme/llama-bnb-4bit` → `llama`. */
export function fullPrecisionName(id: string): string {
  const name = id.split(/[/\\]/).filter(Boolean).at(-1) ?? id;
  const full = name.replace(FEWER_BITS, '');
  return full === '' ? name : full;
}

/**
 * Whether two names may mean one model: the same but for quantization, and for who republished it. Owners that copy
 * models of others (unsloth, mlx-community) mean theirs; where both have another owner, the names are of two models.
 */
export function namesOneModel(a: string, b: string): boolean {
  const plain = (id: string) =>
    fullPrecisionName(id)
      .toLowerCase()
      .replace(/^meta-/, '');
  if (plain(a) !== plain(b)) return false;
  const owner = (id: string) =>
    id.includes('/') && isRepoId(id) ? id.split('/')[0]!.toLowerCase() : undefined;
  const isCopy = (id: string) =>
    fullPrecisionName(id) !== id.split('/').at(-1) || COPIERS.has(owner(id) ?? '');
  return owner(a) === owner(b) || owner(a) === undefined || owner(b) === undefined || isCopy(a) || isCopy(b);
}

const COPIERS: ReadonlySet<string> = new Set(['unsloth', 'mlx-community', 'thebloke']);

/**
 * Returns the model (`owner/name`) whose copy in the Hub's cache a path leads into, as in
 * `models--owner--name/snapshots/<commit>`, else undefined (huggingface_hub `file_download.py`, `repo_folder_name`).
 */
export function cachedModelId(path: string): string | undefined {
  const [, name] = /(?:^|[/\\])models--([^/\\]+)[/\\]snapshots(?:[/\\]|$)/.exec(path) ?? [];
  return name?.replace('--', '/');
}

/** Is this the full name of a commit: 40 hex digits? */
export function isCommit(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

/**
 * Is this a revision that may go into a Hub URL: a branch, tag, `refs/pr/N` or commit? Follows the rules of
 * `git check-ref-format`.
 */
export function isRevision(text: string): boolean {
  return (
    text.length <= 255 && /^[A-Za-z0-9_][\w./+-]*$/.test(text) && !/\.\.|\/\/|\/\.|\.lock$|[/.]$/.test(text)
  );
}

/**
 * Understands what people paste: `owner/name`, `owner/name@revision`, or the address of a model page with anything
 * behind it (`/tree/rev`, `/blob/rev/file`, `/resolve/rev/file`, `/commit/sha`, `?…`, `#…`) but a folder of it.
 *
 * @param hubUrl the hub in use; addresses of it and of the public Hub are taken
 * @throws AmalgamError `UnsafeName` when no model id can be read from the text
 */
export function parseHubId(text: string, hubUrl = DEFAULT_HUB_URL): HubId {
  const { inside, ...id } = parseRepository(text, hubUrl);
  if (inside === undefined) return id;
  throw notAnId(
    text.trim(),
    `it leads to the folder ${displayName(inside)} inside of ${id.id}, and models are taken from the top of a repository`,
  );
}

/** A repository, and the folder in it that an address leads to. */
function parseRepository(text: string, hubUrl: string): HubId & { inside?: string } {
  const trimmed = text.trim();
  const address = /^https?:\/\//i.test(trimmed) ? trimmed : bareAddress(trimmed, hubUrl);
  return address === undefined ? parsePlainId(trimmed) : parseAddress(address, trimmed, hubUrl);
}

/**
 * The same for a dataset: `owner/name`, `owner/name@revision`, `datasets/owner/name`, or the address of its page or of a folder
 * in it, which is taken for the whole.
 * @throws AmalgamError `UnsafeName` when no dataset id can be read from the text
 */
export function parseDatasetId(text: string, hubUrl = DEFAULT_HUB_URL): HubId {
  const address = /^(https?:\/\/[^/]+\/|[\w.-]+\.\w+\/)?datasets\/(.+)$/i.exec(text.trim());
  try {
    const { inside: _, ...id } = parseRepository(address ? `${address[1] ?? ''}${address[2]}` : text, hubUrl);
    return id;
  } catch (cause) {
    throw new AmalgamError(
      'UnsafeName',
      `“${displayName(text)}” does not name a dataset.`,
      'Paste an id such as Salesforce/wikitext, or the address of the dataset’s page.',
      { cause },
    );
  }
}

/**
 * Returns `owner/name[@revision]` for the address of a model's page, which a revision may follow (`…@v1`), and undefined for a
 * text that is no address.
 * @throws AmalgamError as {@link parseHubId}
 */
export function addressedId(text: string, hubUrl = DEFAULT_HUB_URL): string | undefined {
  const at = text.lastIndexOf('@');
  const address = at < 0 ? text : text.slice(0, at);
  if (!/^https?:\/\//i.test(address) && bareAddress(address, hubUrl) === undefined) return undefined;
  const { id, revision } = parseHubId(address, hubUrl);
  const chosen = at < 0 ? revision : withRevision(id, text.slice(at + 1), text).revision;
  return chosen === undefined ? id : `${id}@${chosen}`;
}

/** Is this an address on the public Hub, with its scheme or without? */
export function isPublicAddress(text: string): boolean {
  const [host = ''] = text.replace(/^https?:\/\//i, '').split('/', 1);
  return text.includes('/') && PUBLIC_HOSTS.includes(host.toLowerCase());
}

/** `huggingface.co/owner/name` without its scheme. */
function bareAddress(text: string, hubUrl: string): string | undefined {
  const host = text.split('/', 1)[0]!.toLowerCase();
  return host !== text && knownHosts(hubUrl).includes(host) ? `https://${text}` : undefined;
}

function knownHosts(hubUrl: string): string[] {
  return [...PUBLIC_HOSTS, new URL(hubUrl).host];
}

function parsePlainId(text: string): HubId {
  const at = text.indexOf('@');
  const id = at < 0 ? text : text.slice(0, at);
  if (!isRepoId(hubFile(id).repo)) throw notAnId(text, 'a model id looks like owner/name');
  return at < 0 ? { id } : withRevision(id, text.slice(at + 1), text);
}

function parseAddress(address: string, text: string, hubUrl: string): HubId & { inside?: string } {
  let url: URL;
  try {
    url = new URL(address);
  } catch (cause) {
    throw notAnId(text, 'this is not a web address', cause);
  }
  if (!knownHosts(hubUrl).includes(url.host)) throw notAnId(text, `${url.host} is not the hub in use`);
  const parts = url.pathname.split('/').filter((part) => part !== '');
  if (parts[0] === 'models') parts.shift();
  if (/^(datasets|spaces|papers|docs|collections|buckets)$/.test(parts[0] ?? '')) {
    throw notAnId(text, `this is an address of the Hub's ${parts[0]}, not of a model`);
  }
  // `gpt2/tree/main` is an old single name; no owner can be called tree, blob, resolve, raw or commit.
  const verbs = ['tree', 'blob', 'resolve', 'raw', 'commit', 'commits', 'discussions'];
  const idLength = parts.length > 1 && !verbs.includes(parts[1]!) ? 2 : 1;
  const id = parts.slice(0, idLength).join('/');
  if (!isRepoId(id)) throw notAnId(text, 'no model id was found in this address');
  const [verb, ...rest] = parts.slice(idLength);
  // A branch with slashes is percent-encoded, but the revision of a pull request may stand there as it is.
  const revisionLength = rest[0] === 'refs' ? 3 : 1;
  const revision = rest.slice(0, revisionLength).join('/');
  if (verb === undefined || verb === 'discussions' || !verbs.includes(verb) || revision === '') return { id };
  const inside = verb === 'tree' ? rest.slice(revisionLength) : rest.slice(revisionLength, -1);
  const file = verb === 'tree' ? undefined : hubFile(`${id}/${rest.slice(revisionLength).join('/')}`).file;
  const named = file === undefined ? id : `${id}/${file}`;
  const found = withRevision(named, decode(revision, text), text);
  return inside.length === 0 || verb.startsWith('commit') ? found : { ...found, inside: inside.join('/') };
}

function decode(part: string, text: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    throw notAnId(text, 'the revision in this address cannot be decoded', cause);
  }
}

function withRevision(id: string, revision: string, text: string): HubId {
  if (!isRevision(revision)) throw notAnId(text, `“${displayName(revision)}” cannot be a revision`);
  return { id, revision };
}

function notAnId(text: string, why: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'UnsafeName',
    `“${displayName(text)}” does not name a model: ${why}.`,
    'Paste an id such as HuggingFaceTB/SmolLM2-135M, or the address of the model’s page.',
    { cause },
  );
}

import { AmalgamError } from '../errors';

/** A model on a hub as a person names it. */
export interface HubReference {
  repo: string;
  /** Branch, tag or commit; absent means the default branch. */
  revision?: string;
}

/**
 * Reads `owner/name`, `owner/name@revision`, or the address of a model's page, of its files (`/tree/rev`) or of one
 * of its files (`/blob/rev/…`, `/resolve/rev/…`) on the hub at `hubUrl` or on huggingface.co.
 * @throws UnsafeName when the text is none of these.
 */
export function parseHubReference(text: string, hubUrl: string): HubReference {
  const trimmed = text.trim();
  if (/^https?:\/\//i.test(trimmed)) return parseAddress(trimmed, hubUrl);
  const at = trimmed.indexOf('@');
  return at < 0 ? checked(text, trimmed) : checked(text, trimmed.slice(0, at), trimmed.slice(at + 1));
}

function parseAddress(address: string, hubUrl: string): HubReference {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const hosts = [new URL(hubUrl).host, 'huggingface.co', 'www.huggingface.co', 'hf.co'];
  if (!url || !hosts.includes(url.host)) throw notAModel(address);
  const [owner, name, view, ...rest] = url.pathname.split('/').filter((part) => part !== '');
  if (owner === undefined || ['datasets', 'spaces', 'api', 'models'].includes(owner))
    throw notAModel(address);
  if (name === undefined) return checked(address, owner);
  const repo = `${owner}/${name}`;
  if (view === undefined || !['tree', 'blob', 'resolve', 'raw', 'commit'].includes(view)) {
    return checked(address, repo);
  }
  // A pull request's revision is `refs/pr/7`; every other one is a single part with `%2F` for slashes.
  const revision = rest[0] === 'refs' ? rest.slice(0, 3).join('/') : (rest[0] ?? '').replace(/%2f/gi, '/');
  return checked(address, repo, revision);
}

/** Names as the Hub allows them (huggingface_hub `utils/_validators.py`): up to 96 of letters, digits, `_`, `-`, `.`. */
function checked(text: string, repo: string, revision?: string): HubReference {
  const parts = repo.split('/');
  const named =
    parts.length <= 2 && parts.every((part) => /^\w[\w.-]{0,95}$/.test(part) && !/--|\.\./.test(part));
  if (!named) throw notAModel(text);
  if (revision === undefined) return { repo };
  if (!/^\w[\w./-]{0,199}$/.test(revision) || revision.includes('..')) throw notAModel(text);
  return { repo, revision };
}

function notAModel(text: string): AmalgamError {
  return new AmalgamError(
    'UnsafeName',
    `${JSON.stringify(text)} does not name a model on the Hub.`,
    'Write owner/name or owner/name@revision, or paste the address of the model page.',
  );
}

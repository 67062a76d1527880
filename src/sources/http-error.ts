import * as v from 'valibot';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';

/** Subject of a request, in words, for the messages of all its errors. */
export interface RequestSubject {
  /** File or question, e.g. `owner/name: model.safetensors`. */
  name: string;
  /** The host that is asked, e.g. `huggingface.co`. */
  host: string;
  /** The model's page, for Hub models: where licenses are accepted. */
  page?: string;
  /** The request writes, so the token needs write access. */
  writes?: true;
  /** A file that the host itself has listed. */
  listed?: true;
}

/** Why the Hub refuses: `X-Error-Code`, and its sentence (`X-Error-Message`, or `error` of a JSON body); empty where it has none. */
interface Reason {
  code: string | null;
  said: string;
}

/** huggingface_hub `utils/_http.py`, `hf_raise_for_status`: said with several statuses, and with no code. */
const DISABLED = 'Access to this resource is disabled.';

export function reasonOf({ headers }: Response, body: string): Reason {
  const said = headers.get('X-Error-Message') ?? errorIn(body);
  return { code: headers.get('X-Error-Code'), said: displayName(said.trim(), 300) };
}

function errorIn(body: string): string {
  try {
    return v.parse(v.object({ error: v.string() }), JSON.parse(body)).error;
  } catch {
    return ''; // a page of a proxy, or of a storage: the status alone has to do
  }
}

/**
 * Error for a response that is neither success nor worth another try. A status alone is no reason: the Hub's message is
 * quoted, and only its codes (`GatedRepo`, `RepoNotFound`, `RevisionNotFound`, `EntryNotFound`) are interpreted.
 * Without a token the Hub answers 401 for private and for missing repositories alike, so these two are not
 * distinguished.
 * @param tokenSent whether the request carried an access token
 * @param place where one is given, after `give an access token`
 */
export function refusal(
  status: number,
  { code, said }: Reason,
  subject: RequestSubject,
  tokenSent: boolean,
  place = '',
): AmalgamError {
  const { name, host, page, writes, listed } = subject;
  const words = quoted(said);
  const unauthorized = (message: string, hint: string) => new AmalgamError('Unauthorized', message, hint);
  const notFound = (message: string, hint: string) => new AmalgamError('NotFound', message, hint);
  const refused = (message: string, hint: string) => new AmalgamError('HubError', message, hint);

  if (code === 'GatedRepo') {
    const license = `accept the license at ${page ?? `https://${host}`}`;
    return new AmalgamError(
      'Gated',
      tokenSent
        ? `${name} is gated, and your access token has not been granted access.`
        : `${name} is gated: its owner asks for a license to be accepted first.`,
      tokenSent
        ? `Sign in to ${host} and ${license}; check that the token may read gated models.`
        : `Sign in to ${host}, ${license}, then give an access token${place}.`,
    );
  }
  if (listed && (status === 404 || status === 410 || code?.endsWith('NotFound'))) {
    return notFound(
      `${name} is not there any more, though ${host} has listed it.${words}`,
      'Its owner may have removed, renamed or closed it meanwhile: open the model again.',
    );
  }
  if (code === 'RevisionNotFound') {
    return notFound(`${name} has no such revision.`, 'Choose a branch, tag or commit that exists.');
  }
  if (code === 'EntryNotFound') return notFound(`${name} does not exist.`, 'Check the spelling of the file.');
  if (said === DISABLED) {
    return refused(
      `${host} has disabled ${name}.${words}`,
      'Choose another model; asking again does not help.',
    );
  }
  if (status === 451) {
    return refused(
      `${host} may not give out ${name} for legal reasons (status 451).${words}`,
      'Choose another model; asking again does not help.',
    );
  }
  if (writes && status === 401) {
    return unauthorized(
      tokenSent
        ? `${host} does not accept your access token for ${name}.${words}`
        : `Pushing to ${host} needs an access token.`,
      `Give a token with write permission${place}${tokenSent ? '; this one may be mistyped, expired or revoked' : ''}.`,
    );
  }
  if (writes && status === 403) {
    return unauthorized(
      said === ''
        ? `Your access token may not write to ${name}.`
        : `${host} does not let you write to ${name}.${words}`,
      `${said === '' ? 'Give' : 'Do what it asks for, or give'} a token with write permission${place}, and choose an owner that is you or an organization you may write to.`,
    );
  }
  if (writes && (status === 409 || status === 412)) {
    return new AmalgamError(
      'FileChanged',
      `${name} was changed by somebody else in the meantime.${words}`,
      'Look at it again and push once more: files that arrived are not sent twice.',
    );
  }
  if (status === 401 && code === null && (tokenSent || page === undefined)) {
    return tokenSent
      ? unauthorized(
          `${host} does not accept your access token.`,
          `It may be mistyped, expired or revoked: give a new one${place}.`,
        )
      : unauthorized(
          `${host} asks for an access token before it shows ${name}.`,
          `Give an access token${place}.`,
        );
  }
  if (page !== undefined && (status === 401 || status === 404)) {
    return new AmalgamError(
      status === 401 && code === null ? 'Unauthorized' : 'NotFound',
      `${name} was not found on ${host}, or it is private.`,
      `Check the spelling; ${tokenSent ? 'check that your token may read it' : `for a private model give an access token${place}`}.`,
    );
  }
  if (code === 'RepoNotFound' || status === 404 || status === 410) {
    return notFound(`${name} does not exist on ${host}.${words}`, 'Check the address.');
  }
  if (status === 401 || status === 403) {
    return unauthorized(
      `${host} does not give out ${name} (status ${status}).${words}`,
      said === ''
        ? `It says no reason: look at ${page ?? host} in a browser. A network in between answers like this too.`
        : `Do what it asks for at ${page ?? host}, or give another access token${place}.`,
    );
  }
  return refused(
    `${host} refused ${name} with status ${status}.${words}`,
    said === ''
      ? `Asking again gives the same answer: look at ${page ?? host} in a browser.`
      : 'Asking again gives the same answer: mend what it says first.',
  );
}

/** Quote of the server's message, behind a sentence of ours. */
export function quoted(said: string): string {
  return said === '' ? '' : ` It says: “${said}”`;
}

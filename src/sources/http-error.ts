import { AmalgamError } from '../errors';

/** What a request is about, in words, for the messages of everything that can go wrong with it. */
export interface RequestSubject {
  /** File or question, e.g. `owner/name: model.safetensors`. */
  name: string;
  /** The host that is asked, e.g. `huggingface.co`. */
  host: string;
  /** The model's page, for Hub models: where licences are accepted. */
  page?: string;
}

/**
 * An answer that is neither success nor worth another try, in words. The Hub says why in `X-Error-Code` and
 * `X-Error-Message` (huggingface_hub `utils/_http.py`, `hf_raise_for_status`): `GatedRepo`, `RepoNotFound`,
 * `RevisionNotFound`, `EntryNotFound`. Without a token it answers 401 for private and for missing repositories
 * alike, so these two cannot be told apart.
 * @param tokenSent whether the request carried an access token.
 */
export function refusal(response: Response, subject: RequestSubject, tokenSent: boolean): AmalgamError {
  const { status } = response;
  const code = response.headers.get('X-Error-Code');
  const { name, host, page } = subject;

  if (code === 'GatedRepo' || (status === 403 && page !== undefined)) {
    const licence = `accept the license at ${page ?? `https://${host}`}`;
    return new AmalgamError(
      'Gated',
      tokenSent
        ? `${name} is gated, and your access token has not been granted access.`
        : `${name} is gated: its owner asks for a license to be accepted first.`,
      tokenSent
        ? `Sign in to ${host} and ${licence}; check that the token may read gated models.`
        : `Sign in to ${host}, ${licence}, then give an access token.`,
    );
  }
  if (status === 401 && tokenSent && code === null) {
    return new AmalgamError(
      'Unauthorized',
      `${host} does not accept your access token.`,
      'It may be mistyped, expired or revoked: give a new one.',
    );
  }
  if (code === 'RevisionNotFound') {
    return new AmalgamError(
      'NotFound',
      `${name} has no such revision.`,
      'Choose a branch, tag or commit that exists.',
    );
  }
  if (code === 'EntryNotFound') {
    return new AmalgamError('NotFound', `${name} does not exist.`, 'Check the spelling of the file.');
  }
  if (page !== undefined && (status === 401 || status === 404)) {
    return new AmalgamError(
      status === 401 && code === null ? 'Unauthorized' : 'NotFound',
      `${name} was not found on ${host}, or it is private.`,
      `Check the spelling; ${tokenSent ? 'check that your token may read it' : 'for a private model give an access token'}.`,
    );
  }
  if (status === 404 || status === 410) {
    return new AmalgamError('NotFound', `${name} does not exist on ${host}.`, 'Check the address.');
  }
  return new AmalgamError(
    'HubError',
    `${host} refused ${name} with status ${status}.`,
    'Try again later; if it goes on, look at the model in a browser.',
  );
}

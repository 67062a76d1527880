/** Messages across the worker boundary when a finished output is pushed to a model repository on the Hub. */
import type { CardResult } from '../formats/card-results';
import type { Progress } from './job';

/** Files of a finished output, where they are. */
export type PushSource =
  /** Stored in the browser. */
  | { kind: 'downloads'; name: string }
  /** Below the folder that the person picked; exactly these files of it. */
  | { kind: 'folder'; handle: FileSystemDirectoryHandle; name: string; files: string[] };

/** Whom the access token belongs to. */
export interface HubAccount {
  name: string;
  /** Organizations of the account. */
  organizations: string[];
  /** False for a token that the hub reports as read-only. */
  mayWrite: boolean;
}

/** A repository as it is before anything is sent. */
export interface PushTarget {
  repo: string;
  /** Its page on the hub. */
  page: string;
  exists: boolean;
  /** The commit its main branch is at; null where it does not exist. */
  commit: string | null;
  files: string[];
  /** Those that the output has too. */
  taken: string[];
}

export interface PushRequest {
  source: PushSource;
  /** `owner/name`. */
  repo: string;
  /** Of a repository that is created; one that exists stays as it is. */
  private: boolean;
  /** Files of the repository that the person agreed to replace. */
  replace: string[];
  /** Title of the commit. */
  summary: string;
  /** Scores of the output since it was written, sent with its model card. */
  results?: CardResult[];
  /** Address of the studio, to which the card has a link. */
  studio?: string;
}

export interface PushProgress extends Omit<Progress, 'phase' | 'finished'> {
  /** `hashing`: the sha256 of large files, by which the hub knows what it has already. */
  phase: 'hashing' | 'sending' | 'committing';
  finished: never[];
}

export interface PushReport {
  repo: string;
  page: string;
  commit: string;
  /** True where the repository was created for it. */
  created: boolean;
  files: { path: string; bytes: number; sent: boolean }[];
  seconds: number;
}

/** Messages across the worker boundary when a person signs in to a hub (no token among them), and when a hub asks to wait. */

export interface SignInRequest {
  /** The hub's name for this installation of Amalgam: public, no secret belongs to it. */
  clientId: string;
  /** Address the hub sends the person back to; registered with the client id. */
  redirectUrl: string;
  /** Asks for the right to create repositories too, and to write to those that were created this way. */
  toPush: boolean;
}

export interface SignInPage {
  /** The hub's page where the person agrees. */
  url: string;
  /** Comes back with the answer, so that a tab knows its own. */
  state: string;
}

/** Query of the address that the hub sent the person back to. */
export interface SignInAnswer {
  state: string;
  code?: string;
  /** Why there is no code, e.g. `access_denied`. */
  error?: string;
}

/** A pause before a hub is asked again. */
export interface HubWait {
  /** `rate-limit`: the hub asks for it. `content`: what arrived was not what was asked for. */
  reason: 'rate-limit' | 'server' | 'connection' | 'content';
  /** Its end, in milliseconds since 1970. */
  until: number;
  host: string;
  /** The file or question, e.g. `owner/name: model.safetensors`. */
  name: string;
  /** The hub has said how long. */
  announced: boolean;
}

/** Why a hub is waited for, how long, and what can be done meanwhile. */
export function waitWords(
  { reason, host, name, until, announced }: HubWait,
  {
    now,
    hasToken,
    online = true,
    tokenFrom,
  }: { now: number; hasToken: boolean; online?: boolean; tokenFrom?: string },
): { title: string; hint: string } {
  const seconds = Math.max(1, Math.ceil((until - now) / 1000));
  const again = `trying again in ${seconds} s`;
  const place = tokenFrom === undefined ? '' : ` in ${tokenFrom}`;
  const token = hasToken ? '' : ` An access token${place} raises the limit.`;
  if (reason === 'rate-limit') {
    const title = announced
      ? `${host} asks to wait ${seconds} s: ${name}`
      : `${host} asks for fewer requests and does not show for how long; ${again}: ${name}`;
    return { title, hint: `Wait, or cancel what asks for it.${token}` };
  }
  const why = !online
    ? 'This device is offline'
    : reason === 'server'
      ? `${host} had a server error`
      : reason === 'connection'
        ? `The connection to ${host} was lost`
        : 'What arrived is not what was asked for';
  return { title: `${why}; ${again}: ${name}`, hint: 'Wait, or cancel what asks for it.' };
}

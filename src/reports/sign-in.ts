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
}

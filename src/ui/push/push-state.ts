/** State of pushing an output to the Hub. Plain, serializable data. */

import type { ErrorReport } from '../../errors';
import type { HubAccount, PushReport, PushTarget } from '../../reports/push';

export interface PushSlice {
  /** Account of the token, once the hub has named it. */
  account: HubAccount | null;
  /** Name of the finished output; null takes the last merge's. */
  output: string | null;
  /** Repository as the user typed it; null while it is proposed. */
  repo: string | null;
  private: boolean;
  /** `asking`: files would be replaced, and the user has to agree. */
  status: 'idle' | 'looking' | 'asking' | 'pushing';
  target: PushTarget | null;
  report: PushReport | null;
  error: ErrorReport | null;
}

export const initialPush: PushSlice = {
  account: null,
  output: null,
  repo: null,
  private: true,
  status: 'idle',
  target: null,
  report: null,
  error: null,
};

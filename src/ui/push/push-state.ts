/** What the studio knows about pushing an output to the Hub. Plain, serializable facts. */

import type { ErrorReport } from '../../errors';
import type { HubAccount, PushReport, PushTarget } from '../../reports/push';

export interface PushSlice {
  /** Whom the token belongs to, once the hub has said. */
  account: HubAccount | null;
  /** Name of the finished output; null takes the last merge's. */
  output: string | null;
  /** What the person typed; null while it is proposed. */
  repo: string | null;
  private: boolean;
  /** `asking`: files would be replaced, and the person has to agree. */
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

import type { Backend } from '../../backend/backend';
import type { MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { openWorkspaceFor } from '../tensor/computation';
import type { Workspace } from '../tensor/workspace';

/**
 * Replacement after a failed computation: an engine and the elements of its tiles. Throws the failure, in words for a person,
 * when there is none.
 * @param tileElements of the workspace that failed
 */
export type Recover = (
  failure: unknown,
  tileElements: number,
) => Promise<{ engine: Backend; tileElements: number }>;

/** The workspace of a run; another takes its place when its device fails. */
export interface RunWorkspace {
  readonly work: Workspace;
  /**
   * Runs `act`, and again on a new workspace for as long as `recover` has one to offer.
   * @param renewed told before the next attempt: whatever else was open on the old workspace is void
   */
  retrying<T>(act: () => Promise<T>, renewed?: () => void): Promise<T>;
  close(): void;
}

export interface RunWorkspaceOptions {
  engine: Backend;
  methods: ReadonlyMap<string, MergeMethod>;
  tileElements?: number;
  recover?: Recover;
  /** Seconds the run stood still for stored bytes. */
  onWait?(seconds: number): void;
}

/** @param tensors everything that will be computed in it */
export function openRunWorkspace(tensors: readonly TensorPlan[], options: RunWorkspaceOptions): RunWorkspace {
  const { methods, recover, onWait } = options;
  const open = (engine: Backend, tileElements?: number): Workspace => {
    const opened = openWorkspaceFor(tensors, methods, engine, tileElements);
    if (onWait) opened.onWait = onWait;
    return opened;
  };
  let work = open(options.engine, options.tileElements);
  return {
    get work() {
      return work;
    },
    async retrying(act, renewed) {
      for (;;) {
        try {
          return await act();
        } catch (failure) {
          if (!recover) throw failure;
          const { engine, tileElements } = await recover(failure, work.stride);
          work = open(engine, tileElements);
          renewed?.();
        }
      }
    },
    close: () => work.close(),
  };
}

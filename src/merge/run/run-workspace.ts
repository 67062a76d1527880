import type { Backend } from '../../backend/backend';
import { AmalgamError } from '../../errors';
import { openRoom, type WorkspaceRoom } from '../tensor/computation';
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
  /** Elements of one tile; the result does not depend on it. */
  tileElements?: number;
  /** Another engine for one whose device failed: the tensor at work is then computed anew. Default: the run fails. */
  recover?: Recover;
  /** Seconds the run stood still for stored bytes. */
  onWait?(seconds: number): void;
}

/** @param room of everything that will be computed in it */
export function openRunWorkspace(room: WorkspaceRoom, options: RunWorkspaceOptions): RunWorkspace {
  const { recover, onWait } = options;
  const open = (engine: Backend, tileElements?: number): Workspace => {
    const opened = openRoom(room, engine, tileElements);
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

/** Browsers forgive one crash of the GPU process in this time; after a second they offer no adapter until a reload. */
const FORGIVEN_MS = 120_000;
/** Tiles are not made smaller than this many elements: 1 MiB of f32. */
const LEAST_TILE = (1024 * 1024) / 4;

interface DeviceRecoveryOptions {
  /** Opens another engine of the same kind. */
  reopen(): Promise<Backend>;
  /** Closes the engine that failed and puts the other in its place. */
  replace(engine: Backend): void;
  /** Reports what happened, in a sentence. */
  tell(note: string): void;
  /** Milliseconds; tests vary it. */
  now?: () => number;
}

/**
 * Recovery of a merge from a failing device. The current tensor is computed again on a new device, which gives the same bytes:
 * - device lost: with half the tile, once in two minutes;
 * - out of memory: with half the tile, down to 1 MiB;
 * - a kernel that did not run: once per merge.
 * Any other failure, and one that comes too often, is thrown.
 */
export function deviceRecovery(options: DeviceRecoveryOptions): Recover {
  const now = options.now ?? (() => performance.now());
  let lostAt = Number.NEGATIVE_INFINITY;
  let unverified = 0;

  return async (failure, tileElements) => {
    if (!(failure instanceof AmalgamError)) throw failure;
    const half = Math.ceil(tileElements / 2);
    switch (failure.code) {
      case 'GpuLost': {
        const again = now() - lostAt < FORGIVEN_MS;
        lostAt = now();
        if (again) throw lostTwice(failure);
        options.tell(`${failure.message} Going on with a new one and half the tile.`);
        return { engine: await renew(failure), tileElements: Math.max(half, LEAST_TILE) };
      }
      case 'GpuOutOfMemory':
        if (half < LEAST_TILE) throw failure;
        options.tell('The graphics device is out of memory. Going on with half the tile.');
        return { engine: await renew(failure), tileElements: half };
      case 'GpuUnverified':
        if (++unverified > 1) throw failure;
        options.tell(`${failure.message} Computing the tensor again.`);
        return { engine: await renew(failure), tileElements };
      default:
        throw failure;
    }
  };

  async function renew(failure: AmalgamError): Promise<Backend> {
    let engine: Backend;
    try {
      engine = await options.reopen();
    } catch (cause) {
      throw lostTwice(failure, cause);
    }
    options.replace(engine);
    return engine;
  }
}

function lostTwice(failure: AmalgamError, cause: unknown = failure): AmalgamError {
  return new AmalgamError(
    'GpuLost',
    'The graphics device was lost, and the browser gives no other one that lasts.',
    'Reload the page and continue: what was merged is kept. If it happens again, choose the CPU engine.',
    { cause },
  );
}

/** One engine of a run with its workspace: computes one tensor at a time, and reads ahead for the one it does next. */

import type { ReadTensor } from '../../inputs/stored-tensor';
import type { MergeMethod } from '../method';
import type { Plan, TensorPlan } from '../plan/plan';
import { computeTensor, openComputed } from '../tensor/computation';
import type { WholeModel } from '../tensor/delta-pipeline';
import type { Prepared } from '../tensor/prepared';
import type { Emit, TensorStatistics } from '../tensor/tensor-outcome';
import type { TensorTask } from '../tensor/tensor-task';
import { openRunWorkspace, type RunWorkspace, type RunWorkspaceOptions } from './run-workspace';

interface MergeThreadOptions extends RunWorkspaceOptions {
  plan: Plan;
  read: ReadTensor;
  prepared?: Prepared;
}

export interface MergeThread {
  readonly run: RunWorkspace;
  /** Opens the tensor and begins to read it; a copied or empty one, or none, is left alone. */
  lookAhead(tensor: TensorPlan | undefined): void;
  /** Computes a tensor, or copies it; its bytes go to `emit`. */
  merge(
    tensor: TensorPlan,
    wholeModel: WholeModel | undefined,
    emit: Emit,
  ): Promise<TensorStatistics | undefined>;
  close(): void;
}

/** Copied tensors move in pieces of this size. */
const COPY_BYTES = 8 * 1024 * 1024;

/** @param tensors everything that will be computed in any thread */
export function openMergeThread(tensors: readonly TensorPlan[], options: MergeThreadOptions): MergeThread {
  const { methods, read, prepared } = options;
  const run = openRunWorkspace(tensors, options);
  let ahead: { tensor: TensorPlan; task: TensorTask } | undefined;
  const open = (t: TensorPlan): TensorTask => openComputed(t, methodOf(t, methods), run.work, read, prepared);
  const lookAhead = (tensor: TensorPlan | undefined) => {
    ahead?.task.close();
    ahead = tensor && isComputed(tensor) ? { tensor, task: open(tensor) } : undefined;
    ahead?.task.prefetch();
  };
  return {
    run,
    lookAhead,
    async merge(tensor, wholeModel, emit) {
      if (!isComputed(tensor)) return copy(tensor, read, emit);
      let task = ahead?.tensor === tensor ? ahead.task : undefined;
      if (task) ahead = undefined;
      const replay = replayable(emit);
      const settings = settingsOf(options, wholeModel);
      return run.retrying(
        () => {
          replay.restart();
          const attempt = task ?? open(tensor);
          task = undefined;
          const method = methodOf(tensor, methods);
          return computeTensor(attempt, method, settings, replay.emit).finally(() => attempt.close());
        },
        // what was read ahead belongs to the workspace that failed
        () => lookAhead(ahead?.tensor),
      );
    },
    close() {
      ahead?.task.close();
      run.close();
    },
  };
}

/** Whether a tensor is computed with: a copy is not, nor is one without elements. */
export function isComputed(tensor: TensorPlan): boolean {
  return tensor.copy === undefined && tensor.elements > 0;
}

function methodOf(tensor: TensorPlan, methods: ReadonlyMap<string, MergeMethod>): MergeMethod {
  const method = methods.get(tensor.method);
  if (!method) throw new Error(`no method ${tensor.method}`);
  return method;
}

function settingsOf({ plan, prepared }: MergeThreadOptions, wholeModel: WholeModel | undefined) {
  const { seed = 0, nonFinite = 'stop' } = plan.recipe.amalgam;
  return {
    seed,
    nonFinite,
    ...(wholeModel ? { wholeModel } : {}),
    ...(prepared ? { prepared } : {}),
  };
}

/** Byte for byte, never through floats. */
async function copy(tensor: TensorPlan, read: ReadTensor, emit: Emit): Promise<undefined> {
  const ref = tensor.copy;
  if (!ref) return undefined; // an empty tensor has no bytes
  const length = ref.end - ref.begin;
  for (let begin = 0; begin < length; begin += COPY_BYTES) {
    await emit(await read(ref, begin, Math.min(begin + COPY_BYTES, length)));
  }
  return undefined;
}

/**
 * An emit that may be fed anew from the start: bytes that went out already are left out. A tensor's bytes do not
 * depend on how often, or in which tiles, it is computed.
 */
function replayable(emit: Emit): { emit: Emit; restart(): void } {
  let sent = 0;
  let at = 0;
  return {
    async emit(bytes) {
      const fresh = bytes.subarray(Math.min(bytes.byteLength, Math.max(0, sent - at)));
      at += bytes.byteLength;
      if (fresh.byteLength === 0) return;
      sent = at;
      await emit(fresh);
    },
    restart() {
      at = 0;
    },
  };
}

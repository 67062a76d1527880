/**
 * A tensor that several threads merge, each some of its tiles. The sums of a tensor are made in the order of its tiles, whoever
 * computed them: what the engines answered on the way is kept, and read once more for the statistics of the whole.
 */
import type { Backend } from '../../backend/backend';
import { CPU_ADAPTER } from '../../reports/backend';
import { giveBack } from '../../sources/spare-arrays';
import type { MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { type ComputeSettings, computeTensor, openComputed } from '../tensor/computation';
import type { TensorStatistics } from '../tensor/tensor-outcome';
import { openWorkspace, type Workspace } from '../tensor/workspace';

/** The answers of an engine to what was read of it, but for merged bytes, and the workspace that it had. */
export interface EngineAnswers extends Pick<Workspace, 'models' | 'stride'> {
  answers: Uint8Array<ArrayBuffer>[][];
}

const NOTHING = new Uint8Array(0);

/** The same workspace with an engine whose answers are kept. */
export function keepingAnswers(work: Workspace): { work: Workspace; kept: EngineAnswers } {
  const { engine, packed, models, stride } = work;
  const kept: EngineAnswers = { models, stride, answers: [] };
  const read: Backend['read'] = async (ranges) => {
    const data = await engine.read(ranges);
    kept.answers.push(data.map((bytes, i) => (ranges[i]!.buffer === packed ? NOTHING : bytes)));
    return data;
  };
  return { work: { ...work, engine: { ...engine, read } }, kept };
}

/** The statistics of a tensor from the answers to all of its parts, in order. */
export function statisticsOf(
  plan: TensorPlan,
  method: MergeMethod,
  settings: ComputeSettings,
  parts: readonly EngineAnswers[],
): Promise<TensorStatistics> {
  const answers = parts.flatMap((part) => part.answers).values();
  const engine: Backend = {
    ...{ kind: 'cpu', adapter: CPU_ADAPTER, software: true, maxBufferBytes: 2 ** 30 },
    seconds: { upload: 0, compute: 0, readback: 0 },
    allocate: (byteLength, label) => ({ byteLength, label }),
    free() {},
    write() {},
    clear() {},
    run() {},
    async read(ranges) {
      for (const { into } of ranges) if (into) giveBack(into);
      return answers.next().value!;
    },
    close() {},
  };
  const work = openWorkspace(engine, parts[0]!.models, parts[0]!.stride);
  const task = openComputed(plan, method, work, async () => NOTHING);
  return computeTensor(task, method, settings, async () => {});
}

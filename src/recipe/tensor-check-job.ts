/** One tensor of a merge, computed on both engines: are the bits the same, and how fast is each? */
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { createGpuBackend } from '../backend/gpu/gpu-backend';
import { AmalgamError } from '../errors';
import { openMerged } from '../evaluate/planned-weights';
import { downloadMeter } from '../evaluate/running-model';
import { isWeightDtype } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import type { OpenModels } from '../host/models';
import { readingClock } from '../host/reading-clock';
import { shareSources } from '../host/shared-source';
import { openInputs } from '../host/weight-inputs';
import type { Plan, TensorPlan } from '../merge/plan/plan';
import { isComputed } from '../merge/run/merge-thread';
import type { Prepared } from '../merge/tensor/prepared';
import type { RunningProgress } from '../reports/evaluate';
import type { VerifyTensorReport } from '../reports/merge';

export interface VerifyTensorOptions {
  plan: Plan;
  prepared?: Prepared;
  models: OpenModels;
  signal: AbortSignal;
  onProgress(progress: RunningProgress): void;
  /** Tests vary them. */
  open?: readonly (() => Backend | Promise<Backend>)[];
}

/** Stored bytes that are kept for the second engine, so that both compute and neither waits for a disk. */
const KEEP_BYTES = 1 << 30;
/** The first run also makes what an engine makes once: pipelines, memory. */
const RUNS = 2;

/**
 * Computes a tensor of a clean plan on every engine.
 * @throws AmalgamError `Usage` for a tensor that the plan does not compute, `NoWebGpu`, `NonFinite`, `Cancelled`, and
 *   what reading throws
 */
export async function runVerifyTensor(
  name: string,
  {
    plan,
    prepared,
    models,
    signal,
    onProgress,
    open = [createCpuBackend, createGpuBackend],
  }: VerifyTensorOptions,
): Promise<VerifyTensorReport> {
  const tensor = plan.tensors.find((t) => t.name === name);
  if (!tensor || !isComputed(tensor)) {
    throw new AmalgamError(
      'Usage',
      tensor ? `${name} is copied, not computed.` : `The merge has no tensor ${name}.`,
      'Choose a tensor that a contributor changes.',
    );
  }
  const shared = shareSources(KEEP_BYTES);
  const inputs = await openInputs(
    plan,
    models,
    signal,
    downloadMeter(plan.bytesToDownload, onProgress),
    shared.share,
  );
  try {
    const engines: VerifyTensorReport['engines'] = [];
    const outputs: Uint8Array<ArrayBuffer>[] = [];
    for (const openBackend of open) {
      const engine = await openBackend();
      try {
        const reading = readingClock(inputs.read);
        const merged = await openMerged(plan, [tensor], [engine], reading.read, prepared);
        let seconds = Number.POSITIVE_INFINITY;
        let bytes: Uint8Array<ArrayBuffer> | undefined;
        for (let run = 0; run < RUNS; run++) {
          const begin = performance.now() / 1000 - reading.seconds;
          bytes = await merged.compute(tensor);
          seconds = Math.min(seconds, performance.now() / 1000 - reading.seconds - begin);
        }
        outputs.push(bytes!);
        engines.push({ engine: engine.kind, adapter: engine.adapter, seconds });
      } finally {
        engine.close();
      }
    }
    return { tensor: name, elements: tensor.elements, ...difference(tensor, outputs), engines };
  } finally {
    inputs.close();
  }
}

function difference({ dtype, elements }: TensorPlan, outputs: readonly Uint8Array<ArrayBuffer>[]) {
  if (!isWeightDtype(dtype)) throw new Error(`${dtype} is no weight`);
  const [first, second] = outputs.map((bytes) => {
    const values = new Float32Array(elements);
    decodeToF32(bytes, dtype, values);
    return { values, bits: new Uint32Array(values.buffer) };
  });
  let differing = 0;
  let largest = 0;
  for (let i = 0; i < elements; i++) {
    // what is stored in 16 bits has the same bits in 32
    if (first!.bits[i] === second!.bits[i]) continue;
    differing++;
    // a number against NaN stays NaN
    largest = Math.max(largest, Math.abs(first!.values[i]! - second!.values[i]!));
  }
  return { differing, largest };
}

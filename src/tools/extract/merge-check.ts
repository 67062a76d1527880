/** Merging an adapter that is about to be written into its base, and measuring how far from the fine-tune it lands. */

import { AmalgamError, errorReport } from '../../errors';
import { openAdapter } from '../../inputs/adapter';
import type { Model } from '../../inputs/model';
import { modelTensors } from '../../inputs/model-tensors';
import { collectProblems } from '../../inputs/problems';
import type { ReadTensor } from '../../inputs/stored-tensor';
import { resolveHeads } from '../../merge/plan/tied-heads';
import { bufferSource } from '../../sources/buffer-source';
import { throwIfCanceled } from '../../sources/cancellation';
import type { ModelFolder } from '../../sources/model-folder';
import { bytesToCompare } from '../difference/compare-tensors';
import { measurePair, openPair, openPairWorkspace } from '../difference/pair-task';
import { pairBytes, pairElements, pairTensors } from '../difference/tensor-pairs';
import { ADAPTER_WEIGHTS, type AdapterFile } from './adapter-file';
import type { ExtractOptions } from './lora-modules';

/** The name of the adapter in messages; no model folder is called so. */
export const ADAPTER = 'the extracted adapter';

export interface MergeCheck {
  /** Name in the base → ‖finetuned − merged‖² and the largest difference. */
  tensors: Map<string, { squares: number; largest: number }>;
  failed: { name: string; message: string }[];
}

/**
 * Opens the adapter by the same code as any adapter, puts it on the base, merges tensor by tensor in f32 and compares
 * with the fine-tune.
 *
 * @throws AmalgamError `Internal` when what is about to be written cannot be read or does not fit; `Canceled`; failures of
 *   the engine
 */
export async function checkMerged(
  file: AdapterFile,
  configText: string,
  options: ExtractOptions,
): Promise<MergeCheck> {
  const { tuned, engine, tileElements, signal } = options;
  const merged = await adaptedBase(file, configText, options.base);
  resolveHeads([merged, tuned], collectProblems());
  const { shared } = pairTensors(merged, tuned);
  options.onPhase?.('checking', bytesToCompare({ shared, raw: [] }), shared.length);
  const read: ReadTensor = (ref, begin, end) =>
    ref.folder === ADAPTER
      ? file.source.read(ref.begin + begin, ref.begin + end)
      : options.read(ref, begin, end);
  const check: MergeCheck = { tensors: new Map(), failed: [] };
  const work = openPairWorkspace(engine, shared, tileElements);
  try {
    for (const pair of shared) {
      throwIfCanceled(signal);
      if (pairElements(pair) > 0) {
        const open = openPair(pair, work, read);
        try {
          const { squares, largest: most } = await measurePair(open, 0);
          check.tensors.set(pair.name, { squares, largest: most });
        } catch (thrown) {
          const { code, message } = errorReport(thrown);
          if (code !== 'NonFinite') throw thrown;
          check.failed.push({ name: pair.name, message });
        } finally {
          open.close();
        }
      }
      options.onBytes?.(pairBytes(pair), pair.name);
      options.onTensor?.();
    }
  } finally {
    work.close();
  }
  return check;
}

async function adaptedBase(file: AdapterFile, configText: string, base: Model): Promise<Model> {
  const problems = collectProblems();
  let why: string | undefined;
  try {
    const adapter = await openAdapter(adapterFolder(file, configText), ADAPTER);
    const model = modelTensors(base.ref, base.checkpoint, adapter, problems);
    why = problems.list().find(({ severity }) => severity === 'error')?.message;
    if (why === undefined) return model;
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (code === 'Canceled') throw thrown;
    why = message;
  }
  throw new AmalgamError(
    'Internal',
    `The extracted adapter does not fit its own base: ${why}`,
    'This is a fault in Amalgam; nothing was saved. Please report it.',
  );
}

/** An adapter that is not written yet, as a folder like any other. */
export function adapterFolder(file: AdapterFile, configText: string): ModelFolder {
  const config = new TextEncoder().encode(configText);
  return {
    path: ADAPTER,
    origin: { kind: 'local' },
    files: [
      { path: 'adapter_config.json', byteLength: config.length, open: () => bufferSource(config) },
      { path: ADAPTER_WEIGHTS, byteLength: file.source.byteLength, open: () => file.source },
    ],
  };
}

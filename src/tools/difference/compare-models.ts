/** A whole comparison: tensors, configs, architectures and tokenizers of two models. */

import { compareConfigs } from '../../inputs/config-difference';
import { AMALGAM_VERSION } from '../../merge/version';
import { compareArchitectures } from './architecture-difference';
import { type CompareOptions, compareTensors } from './compare-tensors';
import { findingsOf } from './findings';
import type { CompareReport } from './report';
import { compareTokenizerFiles } from './tokenizer-difference';

export interface Comparison {
  report: Omit<CompareReport, 'files' | 'stages'>;
  /** Name → ‖Δ‖ of every row. */
  rowNorms: Map<string, Float32Array>;
}

/**
 * Compares two models.
 *
 * @param notes sentences about how the models were put together
 * @param top rows of the tables of most changed tensors
 * @throws AmalgamError see {@link compareTensors}
 */
export async function compareModels(
  options: CompareOptions,
  notes: readonly string[],
  top: number,
): Promise<Comparison> {
  const begin = performance.now();
  const { base, tuned, engine, signal } = options;
  const { rowNorms, ...tensors } = await compareTensors(options);
  const found = {
    base: base.ref,
    finetuned: tuned.ref,
    engine: engine.kind,
    adapter: engine.adapter,
    version: AMALGAM_VERSION,
    threshold: options.threshold,
    top,
    ...tensors,
    config: compareConfigs(base.checkpoint.config, tuned.checkpoint.config),
    architecture: compareArchitectures(base, tuned),
    tokenizer: await compareTokenizerFiles(base.checkpoint, tuned.checkpoint, signal),
  };
  const words = [...findingsOf(found), ...notes];
  return { report: { ...found, words, seconds: (performance.now() - begin) / 1000 }, rowNorms };
}

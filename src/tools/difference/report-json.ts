/** The JSON files of a comparison. Numbers with full precision, names as they are. */
import type { CompareReport, TensorDifference } from './report';

type Report = Omit<CompareReport, 'files' | 'stages'>;

/** `weight_differences.json`: every figure of every tensor, with ‖Δ‖ of each row in f32 precision. */
export function weightDifferencesJson(report: Report, rowNorms: ReadonlyMap<string, Float32Array>): string {
  const { total } = report;
  return json({
    base: report.base,
    finetuned: report.finetuned,
    definition:
      'delta = finetuned - base in float32; relative_diff = norm(delta) / (norm(base) + 1e-10); changed_ratio = mean(|delta| > threshold); modified = changed_ratio > 0.01 or relative_diff > 0.01; stable_rank = norm(delta)^2 / sigma_1^2',
    threshold: report.threshold,
    engine: report.engine,
    adapter: report.adapter,
    amalgam_version: report.version,
    seconds: report.seconds,
    total: {
      numel: total.elements,
      norm_base: total.normBase,
      norm_delta: total.normDelta,
      relative_diff: total.relative,
      changed_ratio: total.changedRatio,
      bit_different_ratio: total.bitDifferentRatio,
      compared: total.compared,
      modified: total.modified,
      identical: total.identical,
    },
    ranking_by_relative_diff: report.ranking,
    only_in_base: report.onlyInBase,
    only_in_finetuned: report.onlyInFinetuned,
    shape_mismatches: report.shapeMismatches,
    compared_byte_by_byte: report.raw,
    failed: report.failed,
    ...(report.timing ? { engine_timing: report.timing } : {}),
    tensors: entries(report.tensors, (t) => ({
      ...figures(t),
      row_norms: shortNumbers(rowNorms.get(t.name)),
    })),
  });
}

function figures(t: TensorDifference) {
  return {
    layer: t.layer,
    module: t.module,
    shape: t.shape,
    dtype: t.dtype,
    numel: t.elements,
    mean_abs: t.meanAbs,
    max_abs: t.maxAbs,
    norm_base: t.normBase,
    norm_finetuned: t.normFinetuned,
    norm_delta: t.normDelta,
    relative_diff: t.relative,
    changed_ratio: t.changedRatio,
    bit_different_ratio: t.bitDifferentRatio,
    sign_flip_ratio: t.signFlipRatio,
    cosine: t.cosine,
    stable_rank: t.stableRank,
    modified: t.modified,
    seconds: t.seconds,
  };
}

/** `lora_analysis.json`: the spectra of all modified matrices. */
export function loraAnalysisJson(report: Report): string {
  const analysed = report.tensors.filter(({ lora }) => lora !== undefined);
  return json({
    base: report.base,
    finetuned: report.finetuned,
    definition:
      'effective_rank = #{sigma > 1e-5}; rank95 = smallest k with cumulative sigma^2 >= 0.95 norm(delta)^2; potential_lora = rank95 < 64 and rank95 < 0.1 min(shape); an is_bound number is at least what is given',
    analysed: analysed.length,
    potential_lora: analysed.filter(({ lora }) => lora!.potentialLora).map(({ name }) => name),
    failed: entries(
      report.tensors.filter(({ spectrumFailed }) => spectrumFailed !== undefined),
      ({ spectrumFailed }) => spectrumFailed!,
    ),
    tensors: entries(analysed, ({ lora, shape, normDelta, stableRank }) => ({
      shape,
      norm_delta: normDelta,
      stable_rank: stableRank,
      rank95: lora!.rank95,
      rank95_is_bound: lora!.rank95IsBound,
      effective_rank: lora!.effectiveRank,
      effective_rank_is_bound: lora!.effectiveRankIsBound,
      potential_lora: lora!.potentialLora,
      method: lora!.exact ? 'one-sided Jacobi' : 'randomized',
      singular_values: lora!.singularValues,
    })),
  });
}

/** `config_comparison.json`: configs and tokenizers. */
export function configComparisonJson({ base, finetuned, config, tokenizer }: Report): string {
  return json({ base, finetuned, config, tokenizer });
}

/** `architecture_comparison.json` */
export function architectureComparisonJson(report: Report): string {
  const { base, finetuned, architecture, onlyInBase, onlyInFinetuned, shapeMismatches } = report;
  return json({
    models: { base, finetuned },
    ...architecture,
    only_in_base: onlyInBase,
    only_in_finetuned: onlyInFinetuned,
    shape_mismatches: shapeMismatches,
  });
}

/** An object by name in which names such as `__proto__` are plain keys. */
function entries<T extends { name: string }, V>(
  items: readonly T[],
  value: (item: T) => V,
): Record<string, V> {
  return Object.fromEntries(items.map((item) => [item.name, value(item)]));
}

/** f32 values with the fewest digits that distinguish them from their neighbors. */
function shortNumbers(values: Float32Array | undefined): number[] {
  return Array.from(values ?? [], (x) => Number(x.toPrecision(7)));
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

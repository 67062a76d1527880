/** Experts of a running mixture: what each gives to a text, and which of a layer go. */
import { AmalgamError } from '../../errors';
import type { Sequence } from '../../forward/chunk';
import { readRows } from '../../forward/queue';
import type { Runner } from '../../forward/runner';
import { type Architecture, type Experts, partOf } from '../../models/architecture';
import { layersToRemove } from './choose-layers';
import { groupSequences } from './measures';
import { type CollapseSettings, variantOf } from './options';
import type { CollapsedExpert } from './report';
import { type Stack, wholeStack } from './stack';

/** Figures of the experts of a layer. */
export interface ExpertMeasure {
  /** Mean of share · ‖output‖ over the tokens that take it (REAP: Lasby et al. 2025, arXiv 2510.13999); 0 where none does. */
  saliency: Float64Array;
  /** Tokens that take it. */
  tokens: Float64Array;
  /** Inner products of the router's scores over all tokens, [experts, experts]. */
  alike: Float64Array;
}

/** By layer; undefined for a layer without experts. @throws what running throws */
export async function measureExperts(
  runner: Runner,
  sequences: readonly Sequence[],
  signal?: AbortSignal,
  onStep?: () => void,
): Promise<(ExpertMeasure | undefined)[]> {
  const measures = runner.architecture.blocks.map((block) => {
    const count = partOf(block, 'experts')?.experts.length;
    if (count === undefined) return undefined;
    const zeros = () => new Float64Array(count);
    return { saliency: zeros(), tokens: zeros(), alike: new Float64Array(count * count) };
  });
  for (const group of groupSequences(sequences, runner.rowsPerPass)) {
    const taps = {
      experts: (layer: number) => {
        // asked of every layer, told of those with experts
        return {
          scores(scores: Float32Array, rows: number, stride: number) {
            const { alike, tokens } = measures[layer]!;
            const count = tokens.length;
            for (let r = 0; r < rows; r++) {
              const row = scores.subarray(r * stride, r * stride + count);
              for (let i = 0; i < count; i++)
                for (let j = 0; j < count; j++) alike[i * count + j]! += row[i]! * row[j]!;
            }
          },
          async outputs(expert: number, factors: Float32Array, rows: Parameters<typeof readRows>[0]) {
            const { saliency, tokens } = measures[layer]!;
            const values = await readRows(rows);
            for (const [r, factor] of factors.entries()) {
              const output = values.subarray(r * rows.width, (r + 1) * rows.width);
              saliency[expert]! += factor * Math.sqrt(output.reduce((sum, x) => sum + x * x, 0));
              tokens[expert]!++;
            }
          },
        };
      },
    };
    await runner.pass({ sequences: group, output: 'none', taps, ...(signal && { signal }) }, onStep);
  }
  return measures.map(
    (of) => of && { ...of, saliency: of.saliency.map((sum, e) => sum / Math.max(1, of.tokens[e]!)) },
  );
}

/** How many experts every layer keeps. @throws AmalgamError `Usage`, `NothingToCollapse` */
export function expertsToKeep(settings: CollapseSettings, { blocks }: Architecture): number {
  const parts = blocks.flatMap((block) => partOf(block, 'experts') ?? []);
  const [first] = parts;
  if (!first) {
    throw new AmalgamError(
      'NothingToCollapse',
      'The model has no experts, so there is nothing to do.',
      'Choose a mixture of experts, or another planner.',
    );
  }
  const { router, experts } = first;
  const keep = experts.length - layersToRemove(settings, experts.length, 'expert')!;
  const groups = router.groups?.count ?? 1;
  if (keep >= router.chosen && keep % groups === 0) return keep;
  throw new AmalgamError(
    'Usage',
    keep < router.chosen
      ? `A token takes ${router.chosen} experts, and ${keep} would be left.`
      : `The experts are in ${groups} groups, which ${keep} do not fill alike.`,
    'Remove another number.',
  );
}

/** The stack in which every layer keeps so many experts. */
export function expertStack(
  settings: CollapseSettings,
  architecture: Architecture,
  measures: readonly (ExpertMeasure | undefined)[],
): Stack {
  const keep = expertsToKeep(settings, architecture);
  return wholeStack(architecture.blocks.length).map((layer, i) => {
    const measure = measures[i];
    const part = partOf(architecture.blocks[i]!, 'experts');
    if (!measure || !part) return layer;
    const kept = keptExperts(measure.saliency, keep, part);
    const isMean = variantOf(settings) === 'mean';
    return { ...layer, experts: isMean ? means(kept, measure) : kept.map((expert) => alone(expert)) };
  });
}

const alone = (expert: number): CollapsedExpert => ({ terms: [{ expert, coefficient: 1 }] });

/** Of every group the most salient, of equal ones the lower; ascending. */
function keptExperts(saliency: Float64Array, keep: number, { router }: Experts): number[] {
  const groups = router.groups?.count ?? 1;
  const size = saliency.length / groups;
  return Array.from({ length: groups }, (_, group) =>
    Array.from({ length: size }, (_, i) => group * size + i)
      .sort((a, b) => saliency[b]! - saliency[a]! || a - b)
      .slice(0, keep / groups),
  )
    .flat()
    .sort((a, b) => a - b);
}

/**
 * Each expert that goes is averaged into the one that stays whose scores are most alike, by the tokens that take them (Li et al. 2024,
 * arXiv 2310.01334, without its permutation of neurons).
 */
function means(kept: readonly number[], { tokens, alike }: ExpertMeasure): CollapsedExpert[] {
  const count = tokens.length;
  const cosine = (a: number, b: number) =>
    alike[a * count + b]! / Math.max(1e-30, Math.sqrt(alike[a * count + a]! * alike[b * count + b]!));
  const joined = new Map(kept.map((expert) => [expert, [expert]]));
  for (let expert = 0; expert < count; expert++) {
    if (joined.has(expert)) continue;
    const nearest = kept.reduce((best, other) =>
      cosine(expert, other) > cosine(expert, best) ? other : best,
    );
    joined.get(nearest)!.push(expert);
  }
  return [...joined].map(([expert, all]) => {
    const total = all.reduce((sum, e) => sum + tokens[e]!, 0);
    if (total === 0) return alone(expert);
    const terms = all.map((e) => ({ expert: e, coefficient: tokens[e]! / total }));
    // the first gives the row of the router
    return { terms: terms.filter(({ coefficient }, i) => i === 0 || coefficient > 0) };
  });
}

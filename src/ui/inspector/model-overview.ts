/** The whole model in a few numbers, from the reports of its tensors. Pure. */
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { changing } from '../charts/measured';

interface ContributorTotals {
  id: string;
  /** Tensors it changes. */
  tensors: number;
  /** Elements kept; null before a merge that cannot be predicted. */
  kept: number | null;
  elements: number;
  /** ‖τ‖ over all tensors, before selection. */
  norm: number;
  /** Share of ‖τ‖² kept, in [0, 1]; null where it is not measured, or not yet. */
  keptEnergy: number | null;
}

/** Sums over all tensors a contributor changes; norms add as squares. */
export function contributorTotals(
  reports: Iterable<TensorReport>,
  ids: readonly string[],
): ContributorTotals[] {
  const all = [...reports];
  return ids.map((id) => {
    let tensors = 0;
    let kept: number | null = 0;
    let elements = 0;
    let square = 0;
    let keptSquare = 0;
    for (const report of all) {
      const c = changing(report).find((c) => c.id === id);
      if (!c) continue;
      tensors += 1;
      const isOpen = awaitsMerge(report);
      kept = kept === null || isOpen ? null : kept + c.kept;
      elements += report.elements;
      square += c.norm ** 2;
      keptSquare += c.keptNorm === null || isOpen ? Number.NaN : c.keptNorm ** 2;
    }
    const keptEnergy = Number.isNaN(keptSquare) ? null : square > 0 ? keptSquare / square : 0;
    return { id, tensors, kept, elements, norm: Math.sqrt(square), keptEnergy };
  });
}

/** The tensors with the largest values, largest first. */
export function largest<T>(tensors: Iterable<T>, value: (tensor: T) => number, count: number): T[] {
  return [...tensors]
    .filter((t) => value(t) > 0)
    .sort((a, b) => value(b) - value(a))
    .slice(0, count);
}

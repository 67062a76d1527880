import type { StageSeconds } from '../../reports/job';

/** The stages of a run in the order bytes pass them. */
export const STAGES = ['read', 'upload', 'compute', 'readback', 'write'] as const;
export type Stage = (typeof STAGES)[number];

/** Each stage's seconds and its share of all of them, in [0, 1]; shares are 0 while nothing was measured. */
export function stageShares(stages: StageSeconds): { stage: Stage; seconds: number; share: number }[] {
  const total = STAGES.reduce((sum, stage) => sum + stages[stage], 0);
  return STAGES.map((stage) => ({
    stage,
    seconds: stages[stage],
    share: total > 0 ? stages[stage] / total : 0,
  }));
}

/** What the Collapse tab knows: the model, how layers are chosen, what was measured and written. Plain facts. */

import { calibrationOptions, kindOptions, LACO_THRESHOLD, lacoOptions } from '../../collapse/options';
import type {
  CollapseParts,
  CollapseReport,
  CollapseStep,
  CollapseVariant,
  MeasureDepthReport,
} from '../../reports/collapse';
import { defaultsOf } from '../../reports/option';
import type { ToolRun, WritingRun } from '../state/job-state';

export interface CollapseSlice {
  /** Reference as the person chose it; null: the recipe's base. */
  model: string | null;
  /** Tokens run at once. */
  window: number;
  planner: PlannerKind;
  targetBy: 'remove' | 'ratio' | 'threshold';
  remove: number;
  ratio: number;
  /** Of block influence; of angular distance. */
  influence: number;
  angle: number;
  tokens: 'last' | 'all';
  laco: LacoChoices;
  /** Layers chosen on the map. */
  manual: readonly number[];
  /** null: what suits the planner. */
  variant: CollapseVariant | null;
  parts: CollapseParts;
  /** Layers of the block whose similarity curve is measured; 0: no curve. */
  curveBlock: number;
  perplexity: boolean;
  /** Name of the output, once the person chose one. */
  name: string | null;
  survey: Survey | null;
  outcome: Collapsed | null;
}

export type PlannerKind = 'laco' | 'influence' | 'angular' | 'manual';

export interface LacoChoices {
  block: number;
  interval: number;
  threshold: number;
  lowest: number;
  /** null: the last layer. */
  highest: number | null;
  /** Stops when as many layers are gone as the target says. */
  stops: boolean;
}

export interface Survey extends ToolRun<MeasureDepthReport> {
  model: string;
}

export interface Collapsed extends WritingRun<CollapseReport> {
  model: string;
  steps: CollapseStep[];
}

export const initialCollapse: CollapseSlice = {
  model: null,
  window: calibrationOptions.window.default,
  // by what the survey beside it shows
  planner: 'influence',
  targetBy: 'remove',
  remove: 1,
  ratio: 0.25,
  influence: 0.1,
  angle: 0.1,
  tokens: 'last',
  laco: { ...defaultsOf(lacoOptions), threshold: LACO_THRESHOLD, highest: null, stops: true },
  manual: [],
  variant: null,
  parts: kindOptions.parts.default,
  // a curve of its own, of the smallest block
  curveBlock: lacoOptions.block.min,
  perplexity: true,
  name: null,
  survey: null,
  outcome: null,
};

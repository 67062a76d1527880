/** State of the tools: their models, their forms, their jobs at work or last. Plain data. */
import {
  initialValues,
  type ProgressOf,
  type ReportOf,
  type RequestOf,
  type ToolCall,
  type ToolValues,
} from '../../tools';
import type { WritingRun } from './job-state';

/** A tool's job, or the last one of its kind. */
export interface ToolJob<K extends ToolCall> extends WritingRun<ReportOf<K>> {
  request: RequestOf<K>;
  /** Reports of finished items so far, in order. */
  finished: readonly ProgressOf<K>['finished'][number][];
}

export interface ToolsSlice {
  /** Models as the user chose them; null: by the recipe. */
  models: { model: string | null; base: string | null; finetuned: string | null };
  values: ToolValues;
  jobs: { readonly [K in ToolCall]?: ToolJob<K> };
}

export const initialTools: ToolsSlice = {
  models: { model: null, base: null, finetuned: null },
  values: initialValues,
  jobs: {},
};

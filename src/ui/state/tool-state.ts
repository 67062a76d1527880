/** What the tools know: the models they are given, their forms, their jobs at work or last. Plain facts. */
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
  /** What it told of so far, in order. */
  finished: readonly ProgressOf<K>['finished'][number][];
}

export interface ToolsSlice {
  /** Models as the person chose them; null: what the recipe suggests. */
  models: { model: string | null; base: string | null; finetuned: string | null };
  values: ToolValues;
  jobs: { readonly [K in ToolCall]?: ToolJob<K> };
}

export const initialTools: ToolsSlice = {
  models: { model: null, base: null, finetuned: null },
  values: initialValues,
  jobs: {},
};

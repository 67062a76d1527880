/** What jobs and their phases are called. */
import type { CollapseProgress } from '../../reports/collapse';
import type { CompareProgress } from '../../reports/compare';
import type { PushProgress } from '../../reports/push';
import type { JobKind } from './job-state';
import type { Tab } from './tabs';

/** By kind of job: its title, why another button waits for it, and the tab that shows it. */
export const JOB_WORDS: Readonly<Record<JobKind, { title: string; busy: string; tab: Tab }>> = {
  merge: { title: 'Merging', busy: 'A merge is running.', tab: 'run' },
  evaluation: { title: 'Measuring', busy: 'Models are being measured.', tab: 'evaluate' },
  tasks: { title: 'Scoring', busy: 'Models are being scored on tasks.', tab: 'evaluate' },
  search: { title: 'Searching', busy: 'Settings are being searched for.', tab: 'evaluate' },
  generation: { title: 'Generating', busy: 'Models are generating text.', tab: 'evaluate' },
  comparison: {
    title: 'Measuring difference',
    busy: 'The difference of two models is being measured.',
    tab: 'compare',
  },
  extraction: { title: 'Extracting', busy: 'A LoRA is being extracted.', tab: 'compare' },
  survey: { title: 'Measuring layers', busy: 'Layers are being measured.', tab: 'collapse' },
  collapse: { title: 'Collapsing', busy: 'Layers are being collapsed.', tab: 'collapse' },
  push: { title: 'Pushing', busy: 'An output is being pushed to the Hub.', tab: 'output' },
  verification: { title: 'Verifying', busy: 'A merge is being verified.', tab: 'output' },
  overlap: {
    title: 'Comparing masks',
    busy: 'The masks of two runs are being compared.',
    tab: 'layers',
  },
  check: { title: 'Computing a tensor', busy: 'A tensor is being computed on both engines.', tab: 'layers' },
};

/** The phases that a tool with a bar of its own tells. */
interface ToolPhases {
  comparison: CompareProgress['phase'];
  extraction: CompareProgress['phase'];
  survey: CollapseProgress['phase'];
  collapse: CollapseProgress['phase'];
  push: PushProgress['phase'];
  search: 'searching';
  verification: 'downloading' | 'checking';
  check: 'downloading' | 'measuring';
}

export type ToolKind = keyof ToolPhases;

export const PHASE_WORDS: Readonly<Record<ToolPhases[ToolKind], string>> = {
  downloading: 'downloading',
  comparing: 'comparing',
  extracting: 'extracting',
  checking: 'checking the adapter',
  measuring: 'running the model',
  searching: 'searching',
  evaluating: 'measuring perplexity',
  hashing: 'hashing',
  writing: 'writing',
  sending: 'sending',
  committing: 'committing',
};

/** The tabs of the studio, in their order, and the jobs that each shows. What is in them stands in `tab-parts`. */
import { type JobWords, TOOLS } from '../../tools';

/** Tabs before those of the tools, and behind them: their jobs by their kinds. */
const BEFORE = [
  { id: 'recipe', text: 'Recipe', jobs: {} },
  { id: 'plan', text: 'Plan', jobs: {} },
  {
    id: 'layers',
    text: 'Layers',
    jobs: {
      overlap: { title: 'Comparing masks', busy: 'The masks of two runs are being compared.' },
    },
  },
  { id: 'run', text: 'Run', jobs: { merge: { title: 'Merging', busy: 'A merge is running.' } } },
  {
    id: 'evaluate',
    text: 'Evaluate',
    jobs: {
      evaluation: { title: 'Measuring', busy: 'Models are being measured.' },
      tasks: { title: 'Scoring', busy: 'Models are being scored on tasks.' },
      search: { title: 'Searching', busy: 'Settings are being searched for.' },
      generation: { title: 'Generating', busy: 'Models are generating text.' },
    },
  },
] as const satisfies readonly TabRow[];
const BEHIND = [
  {
    id: 'output',
    text: 'Output',
    jobs: {
      push: { title: 'Pushing', busy: 'An output is being pushed to the Hub.' },
      verification: { title: 'Verifying', busy: 'A merge is being verified.' },
    },
  },
] as const satisfies readonly TabRow[];

export const TABS = [...BEFORE, ...TOOLS, ...BEHIND] as const;

interface TabRow {
  id: string;
  text: string;
  jobs: Readonly<Record<string, JobWords>>;
}

export type Tab = (typeof TABS)[number]['id'];

type KeyOf<T> = T extends unknown ? keyof T : never;
export type JobKind = KeyOf<(typeof TABS)[number]['jobs']>;

/** By kind of job: what it is called, and the tab that shows it. */
export const JOB_WORDS = Object.fromEntries(
  TABS.flatMap(({ id, jobs }) => Object.entries(jobs).map(([kind, words]) => [kind, { ...words, tab: id }])),
) as Readonly<Record<JobKind, JobWords & { tab: Tab }>>;

/** Phases of jobs that are called otherwise on screen than in reports. */
export const PHASE_WORDS: Readonly<Record<string, string>> = {
  checking: 'checking the adapter',
  measuring: 'running the model',
  evaluating: 'measuring perplexity',
};

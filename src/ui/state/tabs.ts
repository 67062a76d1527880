/** The places of the studio and the tabs of Merge, in their order, and the jobs that each shows. */
import { type JobWords, TOOLS } from '../../tools';

/** Tabs of the place *Merge*; the recipe is one only where there is no room beside the others. */
export const TABS = [
  { id: 'recipe', text: 'Recipe', jobs: {} },
  {
    id: 'layers',
    text: 'Layers',
    jobs: {
      merge: { title: 'Merging', busy: 'A merge is running.' },
      effects: { title: 'Measuring effects', busy: 'Effects on a text are being measured.' },
    },
  },
  {
    id: 'try',
    text: 'Try',
    jobs: { generation: { title: 'Generating', busy: 'Models are generating text.' } },
  },
  {
    id: 'measure',
    text: 'Measure',
    jobs: {
      evaluation: { title: 'Measuring', busy: 'Models are being measured.' },
      search: { title: 'Searching', busy: 'Settings are being searched for.' },
    },
  },
  {
    id: 'files',
    text: 'Files',
    jobs: {
      push: { title: 'Pushing', busy: 'An output is being pushed to the Hub.' },
    },
  },
] as const satisfies readonly TabRow[];

interface TabRow {
  id: string;
  text: string;
  jobs: Readonly<Record<string, JobWords>>;
}

const SCREENS = [...TABS, ...TOOLS] as const;

/** What the middle shows: a tab of Merge, or another place, which is a tool. */
export type Tab = (typeof SCREENS)[number]['id'];

/** The places of the top bar; Merge stands for all of its tabs. */
export const PLACES = [{ id: 'merge', text: 'Merge' }, ...TOOLS] as const;

export type Place = (typeof PLACES)[number]['id'];

/** The place of a tab. */
export function placeOf(tab: Tab): Place {
  return TOOLS.find(({ id }) => id === tab)?.id ?? 'merge';
}

export const TAB_IDS: readonly Tab[] = SCREENS.map(({ id }) => id);

type KeyOf<T> = T extends unknown ? keyof T : never;
export type JobKind = KeyOf<(typeof SCREENS)[number]['jobs']>;

/** By kind of job: what it is called, and the tab that shows it. */
export const JOB_WORDS = Object.fromEntries(
  SCREENS.flatMap(({ id, jobs }) =>
    Object.entries(jobs).map(([kind, words]) => [kind, { ...words, tab: id }]),
  ),
) as Readonly<Record<JobKind, JobWords & { tab: Tab }>>;

/** Phases of jobs that are called otherwise on screen than in reports. */
export const PHASE_WORDS: Readonly<Record<string, string>> = {
  merging: 'writing',
  checking: 'checking the adapter',
  measuring: 'running the model',
  evaluating: 'measuring perplexity',
};

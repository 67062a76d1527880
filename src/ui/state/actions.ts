/** What can be done by name, one object each: its button, its keys, its row of the palette and the tests are made of it. */
import { TOOLS } from '../../tools';
import { cancelJob, whyBusy } from './job';
import { mergeGate } from './merge-gate';
import { openSampleFamily, whyNotOpen } from './named-models';
import { sameMerge } from './past-runs';
import { copyShareLink, redo, undo } from './recipe-draft';
import { emptyRecipe } from './recipe-state';
import { cancelMerge, pauseMerge, startMerge } from './run';
import { currentRun } from './runs';
import {
  editRecipe,
  noticed,
  notify,
  type Studio,
  type StudioState,
  setView,
  showTab,
  type Theme,
} from './studio';
import { placeOf, TABS } from './tabs';

export interface Action {
  /** What it does, as an order. */
  name: string;
  keys?: readonly Keys[];
  /** Why it cannot be done now, or null. */
  whyNot?(state: StudioState): string | null;
  perform(studio: Studio): unknown;
}

/** A key with Ctrl or ⌘. */
interface Keys {
  key: string;
  shift?: boolean;
  /** Without Ctrl and ⌘. */
  alone?: boolean;
  /** Fields that leave the key to it: `none` of those that are typed in, `lines` those of one line, or `all`. */
  fields: 'none' | 'lines' | 'all';
}

/** Themes in the order of the button: first the one that the system does not show now. */
function nextTheme(theme: Theme): Theme {
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)').matches;
  const order: Theme[] = systemIsDark ? ['system', 'light', 'dark'] : ['system', 'dark', 'light'];
  return order[(order.indexOf(theme) + 1) % order.length]!;
}

const isEmpty = ({ recipe }: StudioState) => recipe.base === null && recipe.contributors.length === 0;

export const ACTIONS = {
  merge: {
    name: 'Merge this recipe',
    keys: [{ key: 'Enter', fields: 'lines' }],
    whyNot(state) {
      const gate = mergeGate(state);
      return gate.open ? null : gate.why;
    },
    async perform(studio) {
      const { tab } = studio.store.getState().view;
      if (placeOf(tab) !== 'merge') showTab(studio, 'layers');
      // the finished run that it would only repeat is named first
      const same = await sameMerge(studio);
      const isNamed = same?.id === studio.store.getState().view.repeated;
      setView(studio, { repeated: same?.id ?? null });
      if (!same || isNamed) return startMerge(studio);
      const message = `This recipe is merged already, as ${same.destination.name}.`;
      notify(studio, 'note', message, 'Its files are under Files; pressed again, Merge makes another.');
    },
  },
  findTheBest: {
    name: 'Find the best',
    whyNot(state) {
      const { base, contributors } = state.recipe;
      if (base === null) return 'Choose a base first.';
      if (!contributors.some((c) => c.enabled)) return 'Add a model first.';
      return whyNotOpen(state)?.why ?? whyBusy(state)?.why ?? null;
    },
    async perform(studio) {
      const { findTheBest } = await import('./measure');
      await findTheBest(studio);
    },
  },
  pause: {
    name: 'Pause',
    whyNot(state) {
      const { job } = state;
      if (job?.kind !== 'merge') return 'No merge is running.';
      if (job.canceling) return 'Stopping…';
      return currentRun(state)?.recipe.amalgam.combination === 'merged_svd'
        ? 'A merge that is cut to a LoRA is written at its end: it cannot go on later.'
        : null;
    },
    perform: pauseMerge,
  },
  cancel: {
    name: 'Cancel',
    whyNot: ({ job }) => (!job ? 'Nothing is at work.' : job.canceling ? 'Canceling…' : null),
    perform: (studio) =>
      studio.store.getState().job?.kind === 'merge' ? cancelMerge(studio) : cancelJob(studio),
  },
  undo: {
    name: 'Undo',
    keys: [{ key: 'z', fields: 'none' }],
    whyNot: ({ history }) => (history.past.length === 0 ? 'Nothing to undo.' : null),
    perform: undo,
  },
  redo: {
    name: 'Redo',
    keys: [
      { key: 'z', shift: true, fields: 'none' },
      { key: 'y', fields: 'none' },
    ],
    whyNot: ({ history }) => (history.future.length === 0 ? 'Nothing to redo.' : null),
    perform: redo,
  },
  chooseBase: { name: 'Choose the base', perform: (studio) => setView(studio, { dialog: 'base' }) },
  addContributor: {
    name: 'Add a contributor',
    perform: (studio) => setView(studio, { dialog: 'contributor' }),
  },
  begin: {
    name: 'New recipe',
    whyNot: (state) => (isEmpty(state) ? 'The recipe is empty already.' : null),
    perform: (studio) => editRecipe(studio, () => emptyRecipe),
  },
  sample: { name: 'Open the sample', perform: (studio) => openSampleFamily(studio, true) },
  examples: { name: 'Open an example', perform: (studio) => setView(studio, { dialog: 'examples' }) },
  saved: { name: 'Save or open a recipe', perform: (studio) => setView(studio, { dialog: 'saved' }) },
  share: {
    name: 'Copy a link to this recipe',
    whyNot: ({ recipe }) => (recipe.contributors.length === 0 ? 'There is no recipe yet.' : null),
    perform: copyShareLink,
  },
  asForm: { name: 'Show the recipe as a form', perform: (studio) => setView(studio, { recipeAs: 'form' }) },
  asText: { name: 'Show the recipe as YAML', perform: (studio) => setView(studio, { recipeAs: 'text' }) },
  theme: {
    name: 'Change the theme',
    perform: (studio) => setView(studio, { theme: nextTheme(studio.store.getState().view.theme) }),
  },
  palette: {
    name: 'Actions and keys',
    keys: [
      { key: 'k', fields: 'all' },
      { key: '?', alone: true, fields: 'none' },
    ],
    perform: (studio) => setView(studio, { dialog: 'palette' }),
  },
} satisfies Record<string, Action>;

/** Every action: those with names of their own, then the places and tabs to go to. */
export const allActions: readonly Action[] = [
  ...Object.values<Action>(ACTIONS).filter((action) => action !== ACTIONS.palette),
  ...[...TABS, ...TOOLS]
    .filter(({ id }) => id !== 'recipe')
    .map(({ id, text }): Action => {
      const name = placeOf(id) === 'merge' ? `Merge, ${text}` : text;
      return { name: `Go to ${name}`, perform: (studio) => showTab(studio, id) };
    }),
];

/** Does it, where it can be done; a failure becomes a notice. Never rejects. */
export async function perform(studio: Studio, action: Action): Promise<void> {
  if (action.whyNot?.(studio.store.getState())) return;
  await noticed(studio, async () => action.perform(studio));
}

/** Takes the keys of the actions; returns a function that stops. A dialog has its own. */
export function watchKeys(studio: Studio): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented) return;
    const action = Object.values<Action>(ACTIONS).find(({ keys = [] }) =>
      keys.some((own) => isKey(own, event)),
    );
    if (!action) return;
    event.preventDefault();
    void perform(studio, action);
  };
  addEventListener('keydown', onKey);
  return () => removeEventListener('keydown', onKey);
}

function isKey({ key, shift = false, alone = false, fields }: Keys, event: KeyboardEvent): boolean {
  if (event.key.toLowerCase() !== key.toLowerCase() || event.altKey) return false;
  if ((event.ctrlKey || event.metaKey) === alone || (!alone && event.shiftKey !== shift)) return false;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return true;
  if (target.closest('[role="dialog"]')) return false;
  // text fields undo their own typing, and a prompt begins to generate
  const isLine =
    target instanceof HTMLInputElement && !['checkbox', 'radio', 'range', 'button'].includes(target.type);
  const isText = target instanceof HTMLTextAreaElement || target.isContentEditable;
  return fields === 'all' || (!isText && (fields === 'lines' || !isLine));
}

const MAC = /Mac|iPhone|iPad/.test(globalThis.navigator?.userAgent ?? '');

/** The keys in words: `Ctrl+Shift+Z`. */
export function keysText({ keys }: Pick<Action, 'keys'>): string | undefined {
  const [first] = keys ?? [];
  if (!first) return undefined;
  const { key, shift, alone } = first;
  const parts = [
    ...(alone ? [] : [MAC ? '⌘' : 'Ctrl']),
    ...(shift ? ['Shift'] : []),
    key.length === 1 ? key.toUpperCase() : key,
  ];
  return parts.join(MAC ? ' ' : '+');
}

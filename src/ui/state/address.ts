/**
 * The view in the page's address, behind `#`, which browsers never send anywhere: the tab and what Layers shows. Back
 * goes to the view before.
 */
import { metrics } from '../charts/metrics';
import { initialState, type Studio, setView, type ViewSlice } from './studio';
import { TAB_IDS } from './tabs';

const PARTS = ['tab', 'metric', 'subject', 'runs', 'expanded', 'filter', 'selected'] as const;

/** Part of the view that is in the address. */
export type AddressedView = Pick<ViewSlice, (typeof PARTS)[number]>;

const FIRST: AddressedView = initialState.view;
const METRIC_IDS = metrics.map(({ id }) => id);

/** The view as parts of an address; defaults are left out. Pure. */
export function viewParameters(view: AddressedView): URLSearchParams {
  const asked: Record<(typeof PARTS)[number], string | null> = {
    ...view,
    runs: view.runs.join(','),
  };
  const first: typeof asked = { ...FIRST, runs: FIRST.runs.join(',') };
  const parameters = new URLSearchParams();
  for (const part of PARTS) {
    const value = asked[part];
    if (value !== null && value !== first[part]) parameters.set(part, value);
  }
  return parameters;
}

/** The view in an address; missing and unknown parts are as on a first visit. Pure. */
export function viewIn(hash: string): AddressedView {
  const asked = new URLSearchParams(hash.slice(1));
  const among = <T extends string>(all: readonly T[], name: string) =>
    all.find((value) => value === asked.get(name));
  const runs = (asked.get('runs') ?? '').split(',').filter((id) => /^[\w-]+$/.test(id));
  return {
    tab: among(TAB_IDS, 'tab') ?? FIRST.tab,
    metric: among(METRIC_IDS, 'metric') ?? FIRST.metric,
    subject: asked.get('subject'),
    runs: runs.length > 0 ? [...new Set(runs)].slice(0, 4) : FIRST.runs,
    expanded: asked.get('expanded'),
    filter: asked.get('filter') ?? '',
    selected: asked.get('selected'),
  };
}

/** Puts the view that the address asks for in place. */
export function readAddress(studio: Studio): void {
  setView(studio, viewIn(location.hash));
}

/** Writes the view into the address. @param entry a new one, or the present one changed */
export function writeAddress(view: AddressedView, entry: 'push' | 'replace' = 'replace'): void {
  const parameters = viewParameters(view).toString();
  const url = `${location.pathname}${location.search}${parameters === '' ? '' : `#${parameters}`}`;
  if (entry === 'push') history.pushState(null, '', url);
  else history.replaceState(null, '', url);
}

/** Milliseconds without a change before the address is written: browsers limit the number of writes. */
const REST_MS = 300;

/** Syncs address and view; returns a function that stops. @param onLink an address was entered */
export function watchAddress(studio: Studio, onLink: () => void): () => void {
  let following = false;
  let timer: number | undefined;
  const view = () => studio.store.getState().view;
  const commit = (of: AddressedView) => {
    clearTimeout(timer);
    if (timer !== undefined) writeAddress(of);
    timer = undefined;
  };
  const stop = studio.store.subscribe(({ view: now }, { view: before }) => {
    if (following || PARTS.every((part) => now[part] === before[part])) return;
    if (isAnotherView(now, before)) {
      commit(before);
      writeAddress(now, 'push');
      return;
    }
    clearTimeout(timer);
    timer = window.setTimeout(() => commit(view()), REST_MS);
  });
  const follow = () => {
    clearTimeout(timer);
    timer = undefined;
    following = true;
    readAddress(studio);
    following = false;
    onLink();
  };
  addEventListener('popstate', follow);
  writeAddress(view());
  return () => {
    commit(view());
    stop();
    removeEventListener('popstate', follow);
  };
}

/** Whether Back should return from one to the other: going from one selected tensor to the next is no step. */
function isAnotherView(now: AddressedView, before: AddressedView): boolean {
  return (
    (['tab', 'metric', 'subject', 'runs', 'expanded'] as const).some((part) => now[part] !== before[part]) ||
    (now.selected === null) !== (before.selected === null)
  );
}

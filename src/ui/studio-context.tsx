import {
  createContext,
  type DependencyList,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useState,
  useSyncExternalStore,
} from 'react';
import { useStore } from 'zustand';
import { useShallow } from 'zustand/react/shallow';
import { notifyError, type Studio, type StudioState, type StudioWorker } from './state/studio';

const StudioContext = createContext<Studio | null>(null);

export function StudioProvider({ studio, children }: { studio: Studio; children: ReactNode }) {
  return <StudioContext value={studio}>{children}</StudioContext>;
}

/** The studio, for actions. State comes through `useStudioState`, so that a component redraws only for what it shows. */
export function useStudio(): Studio {
  const studio = useContext(StudioContext);
  if (!studio) throw new Error('useStudio outside StudioProvider');
  return studio;
}

/** A part of the state. The selector returns an object of the state, or a primitive. */
export function useStudioState<T>(select: (state: StudioState) => T): T {
  return useStore(useStudio().store, select);
}

/** Parts of the state, by name. */
export function useParts<K extends keyof StudioState>(...names: readonly K[]): Pick<StudioState, K> {
  return useStudioState(useShallow((s) => picked(s, names)));
}

/** Fields of a slice of the state, by name. */
export function useSlice<S extends 'view' | 'measure' | 'generation', K extends keyof StudioState[S]>(
  slice: S,
  ...names: readonly K[]
): Pick<StudioState[S], K> {
  return useStudioState(useShallow((s) => picked(s[slice], names)));
}

/** Does it once the engine is ready. @param act the same function every time */
export function useReady(act: (studio: Studio) => Promise<void>): void {
  const studio = useStudio();
  const isReady = useStudioState((s) => s.engine.info !== null);
  useEffect(() => {
    if (isReady) void act(studio);
  }, [studio, isReady, act]);
}

const picked = <T extends object, K extends keyof T>(of: T, names: readonly K[]) =>
  Object.fromEntries(names.map((name) => [name, of[name]])) as Pick<T, K>;

/**
 * The engine's answer to a question, `first` until it comes; a failure becomes a notice.
 * @param deps values the question depends on: it is asked again when one changes
 * @returns the answer, and a function that asks again
 */
export function useAnswer<T>(
  first: T,
  ask: (worker: StudioWorker) => Promise<T>,
  deps: DependencyList,
): [T, () => void] {
  const studio = useStudio();
  const [answer, setAnswer] = useState(first);
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the caller names what the question depends on.
  useEffect(() => {
    let late = false;
    ask(studio.worker).then(
      (found) => late || setAnswer(found),
      (thrown: unknown) => notifyError(studio, thrown),
    );
    return () => {
      late = true;
    };
  }, [studio, round, ...deps]);
  return [answer, useCallback(() => setRound((n) => n + 1), [])];
}

/** Whether a media query matches, now and from now on. */
export function useMedia(query: string): boolean {
  const list = mediaList(query);
  return useSyncExternalStore(
    useCallback(
      (changed: () => void) => {
        list.addEventListener('change', changed);
        return () => list.removeEventListener('change', changed);
      },
      [list],
    ),
    () => list.matches,
  );
}

const mediaLists = new Map<string, MediaQueryList>();

/** One list a query: making one for every look costs more than the look. */
function mediaList(query: string): MediaQueryList {
  const known = mediaLists.get(query) ?? matchMedia(query);
  mediaLists.set(query, known);
  return known;
}

/** One column instead of two: the recipe becomes a tab. Same width as in `workbench.css`. */
export function useNarrow(): boolean {
  return useMedia('(max-width: 759px)');
}

/** The theme the page shows, for colors that are computed. */
export function useShownTheme(): 'light' | 'dark' {
  const theme = useStudioState((s) => s.view.theme);
  const dark = useMedia('(prefers-color-scheme: dark)');
  return theme === 'system' ? (dark ? 'dark' : 'light') : theme;
}

import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { TOOLS, type ToolId, toolCallsOf } from '../tools';
import { Announcer, RunBar } from './bars/RunBar';
import { TopBar } from './bars/TopBar';
import { droppedFiles, remember } from './local/local-files';
import { Button, FolderButton, SearchIcon } from './parts/Button';
import { PART_MISSING, PartBoundary } from './parts/Message';
import { Notices } from './parts/Notices';
import { Tabbed } from './parts/TabList';
import { RecipePanel } from './recipe/RecipePanel';
import { mergeGate } from './state/merge-gate';
import { addFiles } from './state/models';
import { openSampleFamily } from './state/named-models';
import { isRecipeOf } from './state/recipe-identity';
import { isUntouched } from './state/roles';
import { startMerge } from './state/run';
import { currentRun, isFinished } from './state/runs';
import { type Dialog, noticed, notify, type StudioState, setView, showTab } from './state/studio';
import { placeOf, TABS, type Tab } from './state/tabs';
import { useMedia, useNarrow, useStudio, useStudioState } from './studio-context';
import { detailOf } from './tool-details';

/** The first paint needs none of them; they come right after it, so that no click ever waits. */
const load = {
  layers: () => import('./layers/LayersTab').then((m) => m.LayersTab),
  try: () => import('./try/TryTab').then((m) => m.TryTab),
  files: () => import('./screens/FilesTab').then((m) => m.FilesTab),
};

const SCREENS = import.meta.glob<{ Screen: ComponentType }>('../tools/*/Screen.tsx');

const screens: Readonly<Record<Tab, ReactNode>> = {
  recipe: <RecipePanel />,
  layers: part(load.layers),
  try: part(load.try),
  measure: part(() => import('./measure/MeasureTab').then((m) => m.MeasureTab)),
  files: part(load.files),
  ...(Object.fromEntries(
    TOOLS.map(({ id }) => [id, part(async () => (await SCREENS[`../tools/${id}/Screen.tsx`]!()).Screen)]),
  ) as Record<ToolId, ReactNode>),
};

/** A screen in a script of its own, with a placeholder of its size while it loads. */
function part(load: () => Promise<ComponentType>): ReactNode {
  const Screen = lazy(async () => ({ default: await load() }));
  return (
    <PartBoundary>
      <Suspense fallback={<div className="stack loose screen" aria-busy="true" />}>
        <Screen />
      </Suspense>
    </PartBoundary>
  );
}

/** In the tab itself: errors of the plan, else its warnings. */
function TabMark({ tab }: { tab: Tab }) {
  const countOf = (severity: string) => (s: StudioState) =>
    tab === 'files' ? (s.plan.report?.problems.filter((p) => p.severity === severity).length ?? 0) : 0;
  const warnings = useStudioState(countOf('warning'));
  const errors = useStudioState(countOf('error'));
  const [count, tone, word] = errors > 0 ? [errors, 'bad', 'error'] : [warnings, 'warn', 'warning'];
  return count === 0 ? null : (
    <>
      {' '}
      <small className="tag" data-tone={tone}>
        <span aria-hidden="true">{count}</span>
        <span className="visually-hidden">{count === 1 ? `1 ${word}` : `${count} ${word}s`}</span>
      </small>
    </>
  );
}

const loadInspector = () => import('./inspector/Inspector').then((m) => ({ default: m.Inspector }));
const Inspector = lazy(loadInspector);

const AddModelDialog = lazy(() =>
  import('./add-model/AddModelDialog').then((m) => ({ default: m.AddModelDialog })),
);

const RecipesDialog = lazy(() =>
  import('./gallery/RecipesDialog').then((m) => ({ default: m.RecipesDialog })),
);

const ResultCard = lazy(() => import('./screens/ResultCard').then((m) => ({ default: m.ResultCard })));

const Palette = lazy(() => import('./bars/Palette').then((m) => ({ default: m.Palette })));
const RunReport = lazy(() => import('./screens/RunReport').then((m) => ({ default: m.RunReport })));

const dialogs: Readonly<Record<Dialog, ReactNode>> = {
  base: <AddModelDialog target="base" />,
  contributor: <AddModelDialog target="contributor" />,
  library: <AddModelDialog target="library" />,
  examples: <RecipesDialog tab="examples" />,
  saved: <RecipesDialog tab="saved" />,
  hub: <RecipesDialog tab="hub" />,
  report: <RunReport />,
  palette: <Palette />,
};

/** The one screen: places on top; in Merge the recipe left and tabs beside it, in each tool its own screen. */
export function Workbench() {
  const studio = useStudio();
  const narrow = useNarrow();
  const chosen = useStudioState((s) => s.view.tab);
  const dialog = useStudioState((s) => s.view.dialog);
  const tab: Tab = chosen === 'recipe' && !narrow ? 'layers' : chosen;
  const merges = placeOf(tab) === 'merge';
  const side = useSide(tab);
  useEffect(() => {
    // a failed part is loaded again when it is shown, and reports its failure then
    for (const soon of [...Object.values(load), loadInspector]) soon().catch(() => undefined);
  }, []);
  return (
    <div className="workbench" data-place={merges ? 'merge' : 'tool'} data-side={side}>
      <SkipLinks merges={merges} />
      <TopBar />
      {merges && !narrow ? (
        <aside className="recipe" aria-label="Recipe">
          <div className="stack roomy scroll recipe-form">
            <PartBoundary>
              <RecipePanel />
            </PartBoundary>
          </div>
          <RunBar />
        </aside>
      ) : null}
      <main className="main">
        {merges ? <MergePlace tab={tab} /> : <div className="place">{screens[tab]}</div>}
      </main>
      {side === 'none' ? null : (
        <PartBoundary>
          <Suspense fallback={<aside className="stack roomy scroll inspector" aria-hidden="true" />}>
            <Inspector />
          </Suspense>
        </PartBoundary>
      )}
      {merges && narrow ? <RunBar /> : null}
      <Announcer />
      <Notices />
      <DropZone />
      {dialog ? (
        <PartBoundary
          onMissing={() => {
            setView(studio, { dialog: null });
            notify(studio, 'error', PART_MISSING.title, PART_MISSING.hint);
          }}
        >
          <Suspense>{dialogs[dialog]}</Suspense>
        </PartBoundary>
      ) : null}
    </div>
  );
}

/** The tabs of Merge, what stands above them included. */
function MergePlace({ tab }: { tab: Tab }) {
  const studio = useStudio();
  const narrow = useNarrow();
  const shown = TABS.filter(({ id }) => id !== 'recipe' || narrow);
  return (
    <>
      <StartDoors />
      <Result />
      <Tabbed<Tab>
        label="Views"
        className="stack head-rows main-tabs"
        chosen={tab}
        tabs={shown.map(({ id, text }) => ({
          ...{ id, text, mark: <TabMark tab={id} />, content: screens[id] },
          className: id === 'recipe' ? 'tab-content stack roomy recipe-tab' : 'tab-content',
        }))}
        onChoose={(next) => showTab(studio, next)}
      />
    </>
  );
}

/** The merge that has just ended, as long as the recipe is its own. */
function Result() {
  const [closed, setClosed] = useState('');
  const run = useStudioState((s) => {
    const last = currentRun(s);
    return last && isFinished(last) && !last.again && isRecipeOf(last.recipe, s.recipe, s.models)
      ? last
      : null;
  });
  if (!run || run.id === closed) return null;
  return (
    <PartBoundary>
      <Suspense fallback={<div className="row wrap apart strip" aria-busy="true" />}>
        <ResultCard run={run} onClose={() => setClosed(run.id)} />
      </Suspense>
    </PartBoundary>
  );
}

/** Place of the inspector, there for a selection only: a panel where there is room, else a drawer. */
function useSide(tab: Tab): 'panel' | 'drawer' | 'none' {
  const narrow = useMedia('(max-width: 1199px)');
  const isTool = detailOf(tab) !== undefined;
  const hasWorked = useStudioState(({ tools }) => toolCallsOf(tab).some((kind) => tools.jobs[kind]));
  const selected = useStudioState((s) => s.view.selected !== null);
  const fits = isTool ? hasWorked : tab === 'layers';
  if (!fits || !selected) return 'none';
  return narrow ? 'drawer' : 'panel';
}

const SKIPS = [
  { label: 'Skip to the views', selector: '.tabs [aria-selected="true"], .places [aria-current]' },
  { label: 'Skip to Merge', selector: '.merge-button' },
];

/** Seen only while they have the focus: the first stops of the page. */
function SkipLinks({ merges }: { merges: boolean }) {
  return (
    <div className="row skip-links">
      {SKIPS.slice(0, merges ? 2 : 1).map(({ label, selector }) => (
        <button
          key={label}
          type="button"
          className="button"
          onClick={() => document.querySelector<HTMLElement>(selector)?.focus()}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** The whole page takes model folders and files; a frame shows it while something is dragged over it. */
function DropZone() {
  const studio = useStudio();
  const [over, setOver] = useState(false);
  useEffect(() => {
    // Every element under the pointer fires enter and leave: count them.
    let depth = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
    const onEnter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const onOver = (event: DragEvent) => {
      if (hasFiles(event)) event.preventDefault();
    };
    const onLeave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      if (!event.dataTransfer || !hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      const dropped = droppedFiles(event.dataTransfer);
      void noticed(studio, async () => addFiles(studio, await dropped));
    };
    const stop = new AbortController();
    const { signal } = stop;
    addEventListener('dragenter', onEnter, { signal });
    addEventListener('dragover', onOver, { signal });
    addEventListener('dragleave', onLeave, { signal });
    addEventListener('drop', onDrop, { signal });
    return () => stop.abort();
  }, [studio]);
  return over ? (
    <div className="drop-frame">
      <p>
        <strong className="title">Drop models, LoRAs, or a recipe</strong>
        <br />
        They are read in place; nothing is copied or uploaded.
      </p>
    </div>
  ) : null;
}

/** Introduction and the three ways in; gone once a recipe is begun, or the sample was merged. */
function StartDoors() {
  const studio = useStudio();
  const empty = useStudioState((s) => s.recipe.base === null && s.recipe.contributors.length === 0);
  const untouched = useStudioState((s) => currentRun(s) === null && isUntouched(s.recipe, s.models));
  const gate = useStudioState(useShallow(mergeGate));
  if (!empty && !untouched) return null;
  return (
    <section className="row wrap apart strip" aria-label="Start here">
      <p>
        <strong>Merge language models and LoRAs into one, in this browser.</strong>
        <br />
        <span className="small quiet">
          Nothing is uploaded. Drop folders on this page, or begin with a very small sample.
        </span>
      </p>
      <div className="row wrap">
        <FolderButton
          label="Folder with models"
          onPick={(pick) =>
            void noticed(studio, async () => {
              const picked = await pick();
              if (picked) await addFiles(studio, picked);
            })
          }
        >
          Open models or LoRAs…
        </FolderButton>
        <Button
          icon={SearchIcon}
          tip="A base, then adapters made for it"
          onClick={() => {
            remember('models-from', 'hub');
            setView(studio, { dialog: 'base' });
          }}
        >
          Search the Hub
        </Button>
        {empty ? (
          <Button onClick={() => void openSampleFamily(studio, true)}>Try the sample</Button>
        ) : (
          <Button why={gate.open ? null : gate.why} onClick={() => void startMerge(studio)}>
            Merge the sample
          </Button>
        )}
      </div>
    </section>
  );
}

import './styles/screens.css';
import { Tabs } from 'radix-ui';
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { formatCount } from '../formats/quantity';
import { TOOLS, type ToolId, toolCallsOf } from '../tools';
import { RunBar } from './bars/RunBar';
import { TopBar } from './bars/TopBar';
import { FolderButton } from './local/FolderButton';
import { droppedFiles } from './local/local-files';
import { remember } from './local/remembered-choices';
import { Button } from './parts/Button';
import { SearchIcon } from './parts/icons';
import { Notices } from './parts/Notices';
import { PART_MISSING, PartBoundary } from './parts/PartBoundary';
import { TabLabel, TabList } from './parts/TabList';
import { RecipePanel, RecipeTextPanel } from './recipe/RecipePanel';
import { addFiles } from './state/models';
import { openSampleFamily } from './state/named-models';
import { isUntouched } from './state/roles';
import { startMerge } from './state/run';
import { currentRun, runShare } from './state/runs';
import { notify, notifyError, setView, showTab } from './state/studio';
import type { StudioState } from './state/studio-state';
import { JOB_WORDS, TABS, type Tab } from './state/tabs';
import { useMedia, useNarrow, useRecipeAs, useStudio, useStudioState } from './studio-context';
import { detailOf } from './tool-details';

/* Mark and screen of each tab. */

const loadPlan = () => import('./screens/PlanTab').then((m) => m.PlanTab);
const loadLayers = () => import('./layers/LayersTab').then((m) => m.LayersTab);
const loadRun = () => import('./screens/RunTab').then((m) => m.RunTab);
const loadOutput = () => import('./screens/OutputTab').then((m) => m.OutputTab);

/** The first paint needs none of them; they come right after it, so that no click ever waits. */
const loadSoon: readonly (() => Promise<unknown>)[] = [loadLayers, loadPlan, loadRun, loadOutput];

interface TabParts {
  mark?: ReactNode;
  screen: ReactNode;
}

const SCREENS = import.meta.glob<{ Screen: ComponentType }>('../tools/*/Screen.tsx');
const toolParts = Object.fromEntries(
  TOOLS.map(({ id }) => [id, tool(id, async () => (await SCREENS[`../tools/${id}/Screen.tsx`]!()).Screen)]),
) as Record<ToolId, TabParts>;

const tabParts: Readonly<Record<Tab, TabParts>> = {
  recipe: { screen: <RecipePanel /> },
  plan: { mark: <PlanCount />, screen: part(loadPlan) },
  layers: { screen: part(loadLayers) },
  run: { mark: <RunMark />, screen: part(loadRun) },
  evaluate: {
    mark: <ToolMark tab="evaluate" />,
    screen: part(() => import('./measure/MeasureTab').then((m) => m.MeasureTab)),
  },
  ...toolParts,
  output: { screen: part(loadOutput) },
};

/** A screen in a script of its own, with a placeholder of its size while it loads. */
function part(load: () => Promise<ComponentType>): ReactNode {
  const Screen = lazy(async () => ({ default: await load() }));
  return (
    <PartBoundary>
      <Suspense fallback={<div className="screen" aria-busy="true" />}>
        <Screen />
      </Suspense>
    </PartBoundary>
  );
}

/** A tool of its own: how far it is stands in the tab. */
function tool(tab: Tab, load: () => Promise<ComponentType>): TabParts {
  return { mark: <ToolMark tab={tab} />, screen: part(load) };
}

/** Tensors of the plan, or the number of its errors, else of its warnings. */
function PlanCount() {
  const count = useStudioState((s) => s.plan.report?.tensors.length);
  const countOf = (severity: string) => (s: StudioState) =>
    s.plan.report?.problems.filter((p) => p.severity === severity).length ?? 0;
  const warnings = useStudioState(countOf('warning'));
  const errors = useStudioState(countOf('error'));
  if (errors > 0) {
    return (
      <small className="tag" data-tone="bad">
        {errors} {errors === 1 ? 'error' : 'errors'}
      </small>
    );
  }
  if (warnings > 0) {
    return (
      <small className="tag" data-tone="warn">
        <span aria-hidden="true">⚠ {warnings}</span>
        <span className="visually-hidden">{warnings === 1 ? '1 warning' : `${warnings} warnings`}</span>
      </small>
    );
  }
  return count === undefined ? null : <small>{formatCount(count)} tensors</small>;
}

/** How far the run is, in the tab itself. */
function RunMark() {
  const text = useStudioState((s) => {
    const run = currentRun(s);
    if (run?.status === 'failed') return 'failed';
    if (run?.status !== 'running' || !run.progress) return '';
    return `${Math.floor(100 * runShare(run.progress))}\u00a0%`;
  });
  return text === '' ? null : <small>{text}</small>;
}

function ToolMark({ tab }: { tab: Tab }) {
  const text = useStudioState(({ job }) =>
    job && JOB_WORDS[job.kind].tab === tab ? `${Math.floor(100 * (job.progress?.share ?? 0))}\u00a0%` : '',
  );
  return text === '' ? null : <small>{text}</small>;
}

const loadInspector = () => import('./inspector/Inspector').then((m) => ({ default: m.Inspector }));
const Inspector = lazy(loadInspector);

const AddModelDialog = lazy(() =>
  import('./add-model/AddModelDialog').then((m) => ({ default: m.AddModelDialog })),
);

const RecipesDialog = lazy(() =>
  import('./gallery/RecipesDialog').then((m) => ({ default: m.RecipesDialog })),
);

/** The one screen: recipe left, tabs in the middle, inspector right, run bar below. */
export function Workbench() {
  const studio = useStudio();
  const narrow = useNarrow();
  const chosen = useStudioState((s) => s.view.tab);
  const adding = useStudioState((s) => s.view.adding);
  const recipes = useStudioState((s) => s.view.recipes);
  const tab: Tab = chosen === 'recipe' && !narrow ? 'plan' : chosen;
  const beside = useRecipeAs() === 'both';
  const side = useSide(tab, beside);
  const shown = TABS.filter(({ id }) => id !== 'recipe' || narrow);
  useEffect(() => {
    // a failed part is loaded again when it is shown, and reports its failure then
    for (const load of [...loadSoon, loadInspector]) load().catch(() => undefined);
  }, []);
  const dialogMissing = () => {
    setView(studio, { adding: null, recipes: null });
    notify(studio, 'error', PART_MISSING.title, PART_MISSING.hint);
  };
  return (
    <div className="workbench" data-side={side} data-text={beside || undefined}>
      <SkipLinks />
      <TopBar />
      {narrow ? null : (
        <aside className="recipe" aria-label="Recipe">
          <PartBoundary>
            <RecipePanel />
          </PartBoundary>
        </aside>
      )}
      {beside ? (
        <aside className="recipe-beside" aria-label="Recipe as text">
          <RecipeTextPanel />
        </aside>
      ) : null}
      <main className="main">
        <StartDoors />
        <Tabs.Root className="main-tabs" value={tab} onValueChange={(next) => showTab(studio, next as Tab)}>
          <div className="tabs-bar">
            <TabList label="Views" chosen={tab}>
              {shown.map(({ id, text }) => (
                <Tabs.Trigger key={id} className="tab" value={id}>
                  <TabLabel text={text} />
                  {tabParts[id].mark ? <> {tabParts[id].mark}</> : null}
                </Tabs.Trigger>
              ))}
            </TabList>
          </div>
          {shown.map(({ id }) => (
            <Tabs.Content
              key={id}
              className={id === 'recipe' ? 'tab-content recipe-tab' : 'tab-content'}
              value={id}
            >
              {tabParts[id].screen}
            </Tabs.Content>
          ))}
        </Tabs.Root>
      </main>
      {side === 'none' ? null : (
        <PartBoundary>
          <Suspense fallback={<aside className="inspector" aria-hidden="true" />}>
            <Inspector />
          </Suspense>
        </PartBoundary>
      )}
      <RunBar />
      <Notices />
      <DropZone />
      {adding ? (
        <PartBoundary onMissing={dialogMissing}>
          <Suspense>
            <AddModelDialog target={adding} />
          </Suspense>
        </PartBoundary>
      ) : null}
      {recipes ? (
        <PartBoundary onMissing={dialogMissing}>
          <Suspense>
            <RecipesDialog tab={recipes} />
          </Suspense>
        </PartBoundary>
      ) : null}
    </div>
  );
}

/**
 * Place of the inspector: a panel where there is room, else a drawer for the selection. Tabs without tensors get all the
 * room.
 */
function useSide(tab: Tab, beside: boolean): 'panel' | 'drawer' | 'none' {
  const narrow = useMedia('(max-width: 1199px)');
  const isTool = detailOf(tab) !== undefined;
  const hasWorked = useStudioState(({ tools }) => toolCallsOf(tab).some((kind) => tools.jobs[kind]));
  const fits = isTool ? hasWorked : tab === 'plan' || tab === 'layers' || tab === 'run';
  // below it the middle needs the room more than a summary does
  const roomy = useMedia('(min-width: 1360px)');
  const selected = useStudioState((s) => s.view.selected !== null);
  if (!fits || (!roomy && !narrow && !selected && !isTool)) return 'none';
  return narrow || beside ? 'drawer' : 'panel';
}

const PLACES = [
  { label: 'Skip to the views', selector: '.main-tabs [role="tab"][aria-selected="true"]' },
  { label: 'Skip to Merge', selector: '.merge-button' },
];

/** Seen only while they have the focus: the first stops of the page. */
function SkipLinks() {
  return (
    <div className="skip-links">
      {PLACES.map(({ label, selector }) => (
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
      droppedFiles(event.dataTransfer).then(
        (picked) => addFiles(studio, picked),
        (thrown: unknown) => notifyError(studio, thrown),
      );
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
        <strong>Drop models, LoRAs, or a recipe</strong>
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
  if (!empty && !untouched) return null;
  return (
    <section className="start-doors" aria-label="Start here">
      <p>
        <strong>Merge language models and LoRAs into one, in this browser.</strong>{' '}
        <span className="quiet">They stay on this computer; nothing is uploaded.</span>
      </p>
      <ul>
        <li>
          <FolderButton
            label="Folder with models"
            onPick={(pick) =>
              void pick().then(
                (picked) => picked && addFiles(studio, picked),
                (thrown: unknown) => notifyError(studio, thrown),
              )
            }
          >
            Open models or LoRAs…
          </FolderButton>
          <span className="small quiet">or drop folders on this page</span>
        </li>
        <li>
          <Button
            onClick={() => {
              remember('models-from', 'hub');
              setView(studio, { adding: 'base' });
            }}
          >
            <SearchIcon />
            Search the Hub
          </Button>
          <span className="small quiet">a base, then adapters made for it</span>
        </li>
        <li>
          {empty ? (
            <Button onClick={() => void openSampleFamily(studio, true)}>Try the sample</Button>
          ) : (
            <Button onClick={() => void startMerge(studio)}>Merge the sample</Button>
          )}
          <span className="small quiet">
            a very small family, {empty ? 'to try things out' : 'loaded already'}
          </span>
        </li>
      </ul>
    </section>
  );
}

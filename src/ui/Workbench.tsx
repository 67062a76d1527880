import { Tabs } from 'radix-ui';
import { lazy, type ReactNode, Suspense, useEffect } from 'react';
import { RunBar } from './bars/RunBar';
import { TopBar } from './bars/TopBar';
import { formatCount } from './format/quantity';
import { DropZone } from './local/DropZone';
import { Notices } from './parts/Notices';
import { PART_MISSING, PartBoundary } from './parts/PartBoundary';
import { SkipLinks } from './parts/SkipLinks';
import { TabLabel, TabList } from './parts/TabList';
import { RecipePanel, RecipeTextPanel } from './recipe/RecipePanel';
import { StartDoors } from './screens/StartDoors';
import type { Tab } from './state/facts';
import { JOB_WORDS } from './state/job';
import { runShare } from './state/run-log';
import { notify, setView, showTab } from './state/studio';
import { useFacts, useMedia, useNarrow, useRecipeAs, useStudio } from './studio-context';

// The first paint needs none of them; they come right after it, so that no click ever waits.
const parts = {
  layers: () => import('./layers/LayersTab'),
  inspector: () => import('./inspector/Inspector'),
  plan: () => import('./screens/PlanTab'),
  run: () => import('./screens/RunTab'),
  output: () => import('./screens/OutputTab'),
};
const LayersTab = lazy(() => parts.layers().then((m) => ({ default: m.LayersTab })));
const Inspector = lazy(() => parts.inspector().then((m) => ({ default: m.Inspector })));
const PlanTab = lazy(() => parts.plan().then((m) => ({ default: m.PlanTab })));
const RunTab = lazy(() => parts.run().then((m) => ({ default: m.RunTab })));
const OutputTab = lazy(() => parts.output().then((m) => ({ default: m.OutputTab })));

const AddModelDialog = lazy(() =>
  import('./add-model/AddModelDialog').then((m) => ({ default: m.AddModelDialog })),
);

const RecipesDialog = lazy(() =>
  import('./gallery/RecipesDialog').then((m) => ({ default: m.RecipesDialog })),
);

const CollapseTab = lazy(() => import('./collapse/CollapseTab').then((m) => ({ default: m.CollapseTab })));

const CompareTab = lazy(() => import('./compare/CompareTab').then((m) => ({ default: m.CompareTab })));

const EvaluateTab = lazy(() => import('./evaluate/EvaluateTab').then((m) => ({ default: m.EvaluateTab })));

/** The one screen: recipe left, tabs in the middle, inspector right, run bar below. */
export function Workbench() {
  const studio = useStudio();
  const narrow = useNarrow();
  const chosen = useFacts((s) => s.view.tab);
  const adding = useFacts((s) => s.view.adding);
  const recipes = useFacts((s) => s.view.recipes);
  const tab: Tab = chosen === 'recipe' && !narrow ? 'plan' : chosen;
  const beside = useRecipeAs() === 'both';
  const side = useSide(tab, beside);
  useEffect(() => {
    // one that cannot be loaded now is asked for again when its tab is shown, which says so
    for (const load of Object.values(parts)) load().catch(() => undefined);
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
            <TabList label="Views">
              {narrow ? (
                <Tabs.Trigger className="tab" value="recipe">
                  <TabLabel text="Recipe" />
                </Tabs.Trigger>
              ) : null}
              <Tabs.Trigger className="tab" value="plan">
                <TabLabel text="Plan" /> <PlanCount />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="layers">
                <TabLabel text="Layers" />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="run">
                <TabLabel text="Run" /> <RunMark />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="evaluate">
                <TabLabel text="Evaluate" /> <EvaluateMark />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="compare">
                <TabLabel text="Difference" /> <ToolMark tab="compare" />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="collapse">
                <TabLabel text="Collapse" /> <ToolMark tab="collapse" />
              </Tabs.Trigger>
              <Tabs.Trigger className="tab" value="output">
                <TabLabel text="Output" />
              </Tabs.Trigger>
            </TabList>
          </div>
          {narrow ? (
            <Tabs.Content className="tab-content recipe-tab" value="recipe">
              <RecipePanel />
            </Tabs.Content>
          ) : null}
          <Tabs.Content className="tab-content" value="plan">
            <Part>
              <PlanTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="layers">
            <Part>
              <LayersTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="run">
            <Part>
              <RunTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="evaluate">
            <Part>
              <EvaluateTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="compare">
            <Part>
              <CompareTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="collapse">
            <Part>
              <CollapseTab />
            </Part>
          </Tabs.Content>
          <Tabs.Content className="tab-content" value="output">
            <Part>
              <OutputTab />
            </Part>
          </Tabs.Content>
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
 * The inspector: a panel where there is room, else a drawer for what is selected. Tabs that are not about tensors have
 * the room for themselves.
 */
function useSide(tab: Tab, beside: boolean): 'panel' | 'drawer' | 'none' {
  const narrow = useMedia('(max-width: 1199px)');
  const compared = useFacts(({ comparison: c }) => c.found !== null || c.extraction !== null);
  const fits = tab === 'compare' ? compared : tab === 'plan' || tab === 'layers' || tab === 'run';
  // below it the middle needs the room more than a summary does
  const roomy = useMedia('(min-width: 1360px)');
  const selected = useFacts((s) => s.view.selected !== null);
  if (!fits || (!roomy && !narrow && !selected && tab !== 'compare')) return 'none';
  return narrow || beside ? 'drawer' : 'panel';
}

/** A tab that is being loaded keeps its place. */
function Part({ children }: { children: ReactNode }) {
  return (
    <PartBoundary>
      <Suspense fallback={<div className="screen" aria-busy="true" />}>{children}</Suspense>
    </PartBoundary>
  );
}

/** Tensors of the plan, or the number of its errors, else of its warnings. */
function PlanCount() {
  const count = useFacts((s) => s.plan.facts?.tensors.length);
  const warnings = useFacts(
    (s) => s.plan.facts?.problems.filter((p) => p.severity === 'warning').length ?? 0,
  );
  const errors = useFacts((s) => s.plan.facts?.problems.filter((p) => p.severity === 'error').length ?? 0);
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
  const text = useFacts(({ run }) => {
    if (run?.status === 'failed') return 'failed';
    if (run?.status !== 'running' || !run.progress) return '';
    return `${Math.floor(100 * runShare(run.progress))}\u00a0%`;
  });
  return text === '' ? null : <small>{text}</small>;
}

/** How far measuring is, in the tab itself. */
function EvaluateMark() {
  const text = useFacts(({ job }) => {
    if (job?.kind === 'generation') return 'generating';
    return job?.kind === 'evaluation' ? `${Math.floor(100 * (job.progress?.share ?? 0))}\u00a0%` : '';
  });
  return text === '' ? null : <small>{text}</small>;
}

/** How far comparing or collapsing is, in the tab itself. */
function ToolMark({ tab }: { tab: Tab }) {
  const text = useFacts(({ job }) =>
    job && JOB_WORDS[job.kind].tab === tab ? `${Math.floor(100 * (job.progress?.share ?? 0))}\u00a0%` : '',
  );
  return text === '' ? null : <small>{text}</small>;
}

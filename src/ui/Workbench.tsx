import { Tabs } from 'radix-ui';
import { lazy, Suspense, useEffect } from 'react';
import { toolCallsOf } from '../tools';
import { RunBar } from './bars/RunBar';
import { TopBar } from './bars/TopBar';
import { DropZone } from './local/DropZone';
import { Notices } from './parts/Notices';
import { PART_MISSING, PartBoundary } from './parts/PartBoundary';
import { TabLabel, TabList } from './parts/TabList';
import { RecipePanel, RecipeTextPanel } from './recipe/RecipePanel';
import { StartDoors } from './screens/StartDoors';
import { notify, setView, showTab } from './state/studio';
import { TABS, type Tab } from './state/tabs';
import { useMedia, useNarrow, useRecipeAs, useStudio, useStudioState } from './studio-context';
import { loadSoon, tabParts } from './tab-parts';
import { detailOf } from './tool-details';

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
    // one that cannot be loaded now is asked for again when it is shown, which says so
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
            <TabList label="Views">
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
 * The inspector: a panel where there is room, else a drawer for what is selected. Tabs that are not about tensors have
 * the room for themselves.
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

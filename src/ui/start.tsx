import './styles/tokens.css';
import './styles/base.css';
import './styles/controls.css';
import './styles/overlays.css';
import './styles/runbar.css';
import './styles/workbench.css';
import './styles/recipe.css';
import './styles/charts.css';
import './styles/plot.css';
import './styles/screens.css';
import './styles/layers.css';
import './styles/outputs.css';
import { Tooltip } from 'radix-ui';
import { Component, type ErrorInfo, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { errorReport } from '../errors';
import { takeLaunches } from './launched';
import { hasDirectoryPicker, remember, remembered } from './local/local-files';
import { ErrorCard } from './parts/Message';
import { watchKeys } from './state/actions';
import { readAddress, watchAddress } from './state/address';
import { watchDeltas } from './state/delta-statistics';
import { whileOpening } from './state/models';
import { openSampleFamily, retryUnreached, watchNamedModels } from './state/named-models';
import { loadInterrupted, watchRuns } from './state/past-runs';
import { watchPlan } from './state/plan';
import { openLink, restoreRecipe, watchDraft, watchHistory } from './state/recipe-draft';
import type { RecipeState } from './state/recipe-state';
import { isUntouched } from './state/roles';
import { watchOtherTabs } from './state/run';
import { watchSampleTexts } from './state/sample-texts';
import {
  createStudio,
  editSlice,
  noticed,
  notify,
  type Studio,
  type StudioWorker,
  setView,
  type Theme,
} from './state/studio';
import { StudioProvider } from './studio-context';
import { Workbench } from './Workbench';

// Brings a studio to life: asks the engine what it is, opens the sample, follows the network and the theme.

/** Starts everything; returns a function that stops watching. */
function bootStudio(studio: Studio): () => void {
  const stops = [
    watchNamedModels(studio),
    watchPlan(studio),
    watchDeltas(studio),
    watchRuns(studio),
    watchSampleTexts(studio),
    watchTheme(studio),
    watchNetwork(studio),
    watchKeys(studio),
  ];
  let stopped = false;
  readAddress(studio);
  void startEngine(studio);
  takeLaunches(studio);
  const watchEdits = (saved?: RecipeState) => {
    if (stopped) return;
    const open = () => void noticed(studio, () => openLink(studio));
    stops.push(watchDraft(studio, saved), watchHistory(studio), watchAddress(studio, open));
  };
  void whileOpening(studio, 'the last recipe', async () => {
    await restoreHub(studio);
    const restored = await restoreRecipe(studio);
    // a person may edit what is there while the sample is still opened
    if (restored) watchEdits();
    const { recipe: before } = studio.store.getState();
    await openSampleFamily(studio, !restored);
    if (restored) return;
    // the sample in the recipe is no edit
    const { recipe, models } = studio.store.getState();
    watchEdits(isUntouched(recipe, models) ? recipe : before);
  });
  return () => {
    stopped = true;
    for (const stop of stops) stop();
  };
}

/** Takes up the hub that was chosen on an earlier visit. Never rejects. */
async function restoreHub(studio: Studio): Promise<void> {
  const url = remembered('hub');
  if (url === null) return;
  editSlice(studio, 'hub', { url });
  // a dead engine shows its own error
  await studio.worker.setHub({ url }).catch(() => undefined);
}

async function startEngine(studio: Studio): Promise<void> {
  try {
    const info = await studio.worker.info();
    editSlice(studio, 'engine', { status: 'ready', info });
    watchOtherTabs(studio);
    // lasts as long as the engine
    studio.worker
      .hubWaits((hubWaits) => studio.store.setState({ hubWaits }))
      .catch((thrown: unknown) => showStopped(studio, thrown));
    await loadInterrupted(studio);
    // No storage for downloads: a folder works.
    if (!info.storage.available && hasDirectoryPicker()) {
      editSlice(studio, 'output', { kind: 'folder' });
    }
  } catch (thrown) {
    const error = errorReport(thrown);
    editSlice(studio, 'engine', { status: 'failed', error });
  }
}

/** The engine's worker died: every part of the page that needs it shows that, and only the running job is lost. */
function showStopped(studio: Studio, thrown: unknown): void {
  const error = errorReport(thrown);
  editSlice(studio, 'engine', { status: 'failed', error });
  notify(studio, 'error', error.message, error.hint);
}

function watchNetwork(studio: Studio): () => void {
  const follow = () => {
    const { online } = studio.store.getState().hub;
    editSlice(studio, 'hub', { online: navigator.onLine });
    if (!online && navigator.onLine) retryUnreached(studio);
  };
  follow();
  const stop = new AbortController();
  const { signal } = stop;
  addEventListener('online', follow, { signal });
  addEventListener('offline', follow, { signal });
  return () => stop.abort();
}

const KEY = 'theme';

/** Takes the remembered theme and puts every change onto the page; returns a function that stops. */
function watchTheme(studio: Studio): () => void {
  const kept = remembered(KEY);
  setView(studio, { theme: kept === 'light' || kept === 'dark' ? kept : 'system' });
  apply(studio.store.getState().view.theme);
  return studio.store.subscribe((now, before) => {
    if (now.view.theme === before.view.theme) return;
    apply(now.view.theme);
    remember(KEY, now.view.theme === 'system' ? null : now.view.theme);
  });
}

function apply(theme: Theme): void {
  const root = document.documentElement;
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
}

/** The studio's page. */
function App({ studio }: { studio: Studio }) {
  return (
    <StudioProvider studio={studio}>
      <FaultBoundary>
        <Tooltip.Provider delayDuration={350} skipDelayDuration={150}>
          <Workbench />
        </Tooltip.Provider>
      </FaultBoundary>
    </StudioProvider>
  );
}

/** A fault in rendering: the page shows it and offers the data for a report, instead of going blank. */
class FaultBoundary extends Component<{ children: ReactNode }, { thrown: unknown }> {
  override state: { thrown: unknown } = { thrown: null };

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidCatch(thrown: unknown, info: ErrorInfo) {
    console.error(thrown, info.componentStack);
  }

  override render() {
    if (this.state.thrown === null) return this.props.children;
    return (
      <div className="stack loose fault">
        <h1 className="title">The studio stopped drawing</h1>
        <p className="quiet">Files already saved are safe. Reload the page to go on.</p>
        <ErrorCard error={errorReport(this.state.thrown)} />
      </div>
    );
  }
}

/** Draws the studio into an element, with this worker behind it; returns the studio and a way to take it down. */
export function startStudio(worker: StudioWorker, element: HTMLElement): { studio: Studio; stop(): void } {
  const studio = createStudio(worker);
  const stopBoot = bootStudio(studio);
  const root = createRoot(element);
  root.render(<App studio={studio} />);
  return {
    studio,
    stop() {
      stopBoot();
      root.unmount();
    },
  };
}

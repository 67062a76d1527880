/** What each tab shows: a mark beside its name, and its screen. */

import { type ComponentType, lazy, type ReactNode, Suspense } from 'react';
import { formatCount } from '../formats/quantity';
import { TOOLS, type ToolId } from '../tools';
import { PartBoundary } from './parts/PartBoundary';
import { RecipePanel } from './recipe/RecipePanel';
import { runShare } from './state/run-log';
import { currentRun } from './state/runs';
import { JOB_WORDS, type Tab } from './state/tabs';
import { useStudioState } from './studio-context';

const loadPlan = () => import('./screens/PlanTab').then((m) => m.PlanTab);
const loadLayers = () => import('./layers/LayersTab').then((m) => m.LayersTab);
const loadRun = () => import('./screens/RunTab').then((m) => m.RunTab);
const loadOutput = () => import('./screens/OutputTab').then((m) => m.OutputTab);

/** The first paint needs none of them; they come right after it, so that no click ever waits. */
export const loadSoon: readonly (() => Promise<unknown>)[] = [loadLayers, loadPlan, loadRun, loadOutput];

interface TabParts {
  mark?: ReactNode;
  screen: ReactNode;
}

const SCREENS = import.meta.glob<{ Screen: ComponentType }>('../tools/*/Screen.tsx');
const toolParts = Object.fromEntries(
  TOOLS.map(({ id }) => [id, tool(id, async () => (await SCREENS[`../tools/${id}/Screen.tsx`]!()).Screen)]),
) as Record<ToolId, TabParts>;

export const tabParts: Readonly<Record<Tab, TabParts>> = {
  recipe: { screen: <RecipePanel /> },
  plan: { mark: <PlanCount />, screen: part(loadPlan) },
  layers: { screen: part(loadLayers) },
  run: { mark: <RunMark />, screen: part(loadRun) },
  evaluate: {
    mark: <EvaluateMark />,
    screen: part(() => import('./evaluate/EvaluateTab').then((m) => m.EvaluateTab)),
  },
  ...toolParts,
  output: { screen: part(loadOutput) },
};

/** A screen in a script of its own; while it is being loaded it keeps its place. */
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
  const warnings = useStudioState(
    (s) => s.plan.report?.problems.filter((p) => p.severity === 'warning').length ?? 0,
  );
  const errors = useStudioState(
    (s) => s.plan.report?.problems.filter((p) => p.severity === 'error').length ?? 0,
  );
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

/** How far measuring is, in the tab itself. */
function EvaluateMark() {
  const text = useStudioState(({ job }) => {
    if (job?.kind === 'generation') return 'generating';
    return job?.kind === 'evaluation' ? `${Math.floor(100 * (job.progress?.share ?? 0))}\u00a0%` : '';
  });
  return text === '' ? null : <small>{text}</small>;
}

function ToolMark({ tab }: { tab: Tab }) {
  const text = useStudioState(({ job }) =>
    job && JOB_WORDS[job.kind].tab === tab ? `${Math.floor(100 * (job.progress?.share ?? 0))}\u00a0%` : '',
  );
  return text === '' ? null : <small>{text}</small>;
}

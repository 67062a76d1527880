/** Holding what the Layers tab shows, to see another setting or merge beside it. */

import { plainReport } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import type { PlanTensorFacts } from '../../reports/plan';
import { methodTitle, recipeTitle } from './recipe-build';
import type { Contributor } from './run-facts';
import { methodOf, type Studio } from './studio';

interface Shown {
  state: string;
  contributors: readonly Contributor[];
  tensors: readonly PlanTensorFacts[];
  reports: ReadonlyMap<string, TensorReport>;
}

/** Pins what is shown now. */
export function pinLayers(studio: Studio, shown: Shown): void {
  const { recipe, run } = studio.store.getState();
  const merged = shown.state === 'predicted' ? null : run;
  const title = merged
    ? `${merged.title} · ${merged.methodTitle}, merged`
    : `${recipeTitle(recipe)} · ${methodTitle(recipe, methodOf(recipe))}, predicted`;
  const reports = [...shown.reports.values()].map(plainReport);
  studio.store.setState({
    pinned: { title, contributors: shown.contributors, tensors: shown.tensors, reports },
  });
}

export function unpinLayers(studio: Studio): void {
  studio.store.setState({ pinned: null });
}

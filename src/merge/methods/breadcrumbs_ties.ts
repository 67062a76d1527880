import { defineMethod } from '../method';
import { breadcrumbs } from './breadcrumbs';
import { withSignElection } from './parameters';

/** Model Breadcrumbs, Davari and Belilovsky 2023 (see breadcrumbs.ts), with the sign election of TIES. */
export const breadcrumbsTies = defineMethod({
  ...breadcrumbs,
  id: 'breadcrumbs_ties',
  title: 'Breadcrumbs + TIES — drop outliers and noise, elect sign',
  summary:
    'Drops the largest and the smallest changes of each model, then keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢτ̂ᵢ,  τ̂ᵢ without the ⌊γn⌋ largest, ⌊ρn⌋ kept below them',
  compute: withSignElection(breadcrumbs),
});

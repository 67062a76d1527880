import { defineMethod } from '../method';
import { dellaLinear } from './della_linear';
import { normalize, withSignElection } from './parameters';

/** DELLA, Deep et al. 2024 (see della_linear.ts), with the sign election of TIES. */
export const della = defineMethod({
  ...dellaLinear,
  id: 'della',
  title: 'DELLA — drop by rank, elect sign',
  summary:
    'Drops small changes more often than large ones, scales up the rest, keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢsᵢτ̂ᵢ / Σ mᵢwᵢ,  P(keep) = ρ − ε + 2ε · rank / (n − 1)',
  parameters: { ...dellaLinear.parameters, normalize: normalize(true) },
  compute: withSignElection(dellaLinear),
});

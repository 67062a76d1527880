import { defineMethod } from '../method';
import { angle, norm } from '../tensor/products';
import { interpolationFactor } from './parameters';

/** Vectors closer than this are interpolated on a straight line (mergekit 0.1.4, `slerp.py`). */
const NEARLY_PARALLEL = 0.9995;
/** Norms up to this are not divided by. */
const NO_NORM = 1e-8;

/** Spherical interpolation between the base and one model, each tensor one vector: Shoemake 1985; mergekit 0.1.4. */
export const slerp = defineMethod({
  id: 'slerp',
  title: 'SLERP — along the arc between two models',
  summary: 'Goes from the base to another model along the arc between them instead of the straight line.',
  formula: 'W = sin((1 − t)θ) / sin θ · W₀ + sin(tθ) / sin θ · W₁',
  reference: { label: 'Shoemake 1985', url: 'https://dl.acm.org/doi/10.1145/325165.325242' },
  base: 'required',
  models: { min: 1, max: 1 },
  parameters: { t: interpolationFactor },
  modelParameters: {},
  compute: {
    kind: 'products',
    vectors: 'weights',
    coefficients(products, _, parameters) {
      const t = parameters.t;
      const [a, b] = [norm(products, 0), norm(products, 1)];
      const cosine = products.at(0, 1) / ((a > NO_NORM ? a : 1) * (b > NO_NORM ? b : 1));
      if (Math.abs(cosine) > NEARLY_PARALLEL) return [1 - t, t];
      const theta = angle(cosine);
      return [Math.sin((1 - t) * theta) / Math.sin(theta), Math.sin(t * theta) / Math.sin(theta)];
    },
  },
});

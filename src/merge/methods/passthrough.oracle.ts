import type { Oracle } from './oracle';

export const oracle: Oracle = ({ models: [model] }) =>
  model!.weights.map((w) => w * Number(model!.parameters.scale));

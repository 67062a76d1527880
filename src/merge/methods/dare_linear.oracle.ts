import { addUp, changes, draws, masked, matchL1, numbers, type Oracle, type OracleTensor } from './oracle';

export const oracle: Oracle = (tensor) =>
  addUp(tensor, dropped(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });

/** Task vectors after dropout and rescaling. */
export function dropped(tensor: OracleTensor): Float64Array[] {
  const { semantics, rescale } = tensor.parameters;
  return changes(tensor).map((tau, i) => {
    const { id, parameters } = tensor.models[i]!;
    const density = Number(parameters.density);
    if (density >= 1) return tau;
    const words = draws(tensor, id, tau.length);
    const kept = masked(
      tau,
      words.map((w) => (w < Math.floor(density * 2 ** 32) ? 1 : 0)),
    );
    if (rescale === 'none' || density === 0) return kept;
    const byDensity = rescale === '1/density' || (rescale === 'on' && semantics !== 'mergekit');
    const factor = byDensity ? 1 / density : matchL1(tau, kept);
    return kept.map((t) => t * factor);
  });
}

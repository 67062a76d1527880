import { changes, dot, length, type MethodContract, numbers, type Oracle, scaled } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'bytes',
  spread: 'tensor',
  settings: [{ parameters: { eps: 0 } }],
};

export const oracle: Oracle = (tensor) => {
  const { base, models, parameters } = tensor;
  const vectors = base ? changes(tensor) : models.map((m) => m.weights);
  const given = numbers(models, 'weight');
  const total = parameters.normalize_weights ? given.reduce((a, b) => a + b, 0) : 1;
  const weights = given.map((w) => w / total);
  const eps = Number(parameters.eps);
  const n = vectors[0]!.length;
  const sum = (terms: Float64Array[]) =>
    Float64Array.from({ length: n }, (_, e) => terms.reduce((s, v) => s + v[e]!, 0));
  const units = vectors.map((v) => scaled(v, 1 / (length(v) + eps || 1)));
  let result: Float64Array;
  if (vectors.length === 1) result = vectors[0]!;
  else {
    const direction = sum(units.map((u, i) => scaled(u, weights[i]!)));
    if (length(direction) <= eps) result = sum(vectors.map((v, i) => scaled(v, weights[i]!)));
    else {
      const mean = scaled(direction, 1 / length(direction));
      const tangent = sum(
        units.map((u, i) => {
          const along = dot(u, mean);
          return u.map((x, e) => weights[i]! * (x - along * mean[e]!));
        }),
      );
      const step = length(tangent) + eps;
      const size = vectors.reduce((s, v, i) => s + weights[i]! * length(v), 0);
      const bend = step > 0 ? Math.sin(step) / step : 1;
      result = mean.map((m, e) => size * (Math.cos(step) * m + bend * tangent[e]!));
    }
  }
  return base ? result.map((x, e) => base[e]! + x) : result;
};

import { dot, length, type MethodContract, type Oracle, scaled } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'tensor',
  settings: [{ parameters: { max_iter: 1 } }],
};

export const oracle: Oracle = ({ models, parameters }) => {
  const vectors = models.map((m) => m.weights);
  const n = vectors[0]!.length;
  const tolerance = Number(parameters.tol);
  const units = vectors.filter((v) => length(v) > 0).map((v) => scaled(v, 1 / length(v)));
  if (vectors.length === 1 || units.length === 0) return vectors[0]!;
  let mean: Float64Array = Float64Array.from(
    { length: n },
    (_, e) => units.reduce((s, u) => s + u[e]!, 0) / units.length,
  );
  mean = length(mean) < tolerance ? units[0]! : scaled(mean, 1 / length(mean));
  for (let step = 0; step < Number(parameters.max_iter); step++) {
    const tangent = new Float64Array(n);
    for (const unit of units) {
      const cosine = Math.max(-1, Math.min(1, dot(mean, unit)));
      const theta = Math.acos(cosine);
      if (theta < tolerance || theta === 0) continue;
      unit.forEach((x, e) => {
        tangent[e]! += ((theta / Math.sin(theta)) * (x - cosine * mean[e]!)) / units.length;
      });
    }
    const size = length(tangent);
    if (size < tolerance || size === 0) break;
    mean = mean.map((x, e) => Math.cos(size) * x + (Math.sin(size) * tangent[e]!) / size);
    mean = scaled(mean, 1 / length(mean));
  }
  const size = vectors.reduce((s, v) => s + length(v), 0) / vectors.length;
  return scaled(mean, size);
};

import { changes, dot, length, type MethodContract, numbers, type Oracle, vectorsOf } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'bytes',
  spread: 'tensor',
  settings: [
    { parameters: { nuslerp_flatten: false } },
    { parameters: { nuslerp_flatten: false, nuslerp_row_wise: true } },
  ],
};

export const oracle: Oracle = (tensor) => {
  const { base, models, parameters, shape } = tensor;
  const [w0, w1] = numbers(models, 'weight');
  const t = w1! / (w0! + w1!);
  const [a, b] = base ? changes(tensor) : models.map((m) => m.weights);
  const groups = parameters.nuslerp_flatten ? 'tensor' : parameters.nuslerp_row_wise ? 'columns' : 'rows';
  const out = new Float64Array(a!.length);
  for (const vector of vectorsOf(shape, groups)) {
    const x = vector.map((e) => a![e]!);
    const y = vector.map((e) => b![e]!);
    const cosine = dot(x, y) / (Math.max(length(x), 1e-7) * Math.max(length(y), 1e-7));
    const theta = Math.acos(Math.max(-1, Math.min(1, cosine)));
    const sine = Math.sin(theta);
    vector.forEach((e, i) => {
      out[e] =
        Math.abs(sine) < 1e-8
          ? (1 - t) * x[i]! + t * y[i]!
          : (Math.sin((1 - t) * theta) * x[i]! + Math.sin(t * theta) * y[i]!) / sine;
    });
  }
  return base ? out.map((x, e) => base[e]! + x) : out;
};

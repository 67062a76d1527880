import { dot, length, type MethodContract, type Oracle, scaled } from './oracle';

export const contract: MethodContract = {
  permutation: 'ordered',
  single: 'none',
  spread: 'tensor',
  settings: [{ parameters: { t: 0 } }, { parameters: { t: 1 } }, { parameters: { t: 0.35 } }],
};

export const oracle: Oracle = ({ base, models: [model], parameters }) => {
  const t = Number(parameters.t);
  const [a, b] = [base!, model!.weights];
  const unit = (v: Float64Array) => (length(v) > 1e-8 ? scaled(v, 1 / length(v)) : v);
  const cosine = dot(unit(a), unit(b));
  if (Math.abs(cosine) > 0.9995) return a.map((x, e) => (1 - t) * x + t * b[e]!);
  const theta = Math.acos(cosine);
  const sine = Math.sin(theta);
  return a.map((x, e) => (Math.sin((1 - t) * theta) * x + Math.sin(t * theta) * b[e]!) / sine);
};

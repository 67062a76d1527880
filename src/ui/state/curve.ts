/** A parameter as a curve over the layers: equally spaced points, straight lines between them. Pure. */
import type { NumberSpec } from '../../merge/method';

/** As many points as the form offers; a recipe may have more. */
export const MOST_POINTS = 17;

interface CurvePreset {
  label: string;
  points: number[];
}

/** Where the editor begins and ends: the slider's range, widened to what the points are. */
export function curveRange(spec: NumberSpec, points: readonly number[]): { min: number; max: number } {
  const { min, max } = spec.slider ?? { min: Math.max(spec.min, 0), max: Math.min(spec.max, 1) };
  const finite = points.filter(Number.isFinite);
  return { min: Math.min(min, ...finite), max: Math.max(max, ...finite) };
}

/** The least difference between two positions of a point. */
export function curveStep(spec: NumberSpec): number {
  return spec.slider?.step ?? 0.01;
}

/** A value on the steps of the parameter and within its bounds. */
export function snapped(value: number, spec: NumberSpec): number {
  const step = curveStep(spec);
  const bounded = Math.min(spec.cap ?? spec.max, Math.max(spec.min, Math.round(value / step) * step));
  return Number(bounded.toFixed(10));
}

/** The same curve with a point more between every two: only so does its shape stay. */
export function withMorePoints(points: readonly number[]): number[] {
  return points.flatMap((point, i) => {
    const next = points[i + 1];
    return next === undefined ? [point] : [point, Number(((point + next) / 2).toFixed(10))];
  });
}

/** The curve without a point; the others spread out again. Two are left at least. */
export function withoutPoint(points: readonly number[], index: number): number[] {
  return points.length <= 2 ? [...points] : points.filter((_, i) => i !== index);
}

/** Shapes to begin with, between the least useful value and the height that the curve has now. */
export function curvePresets(points: readonly number[], spec: NumberSpec): CurvePreset[] {
  const { max } = curveRange(spec, []);
  const highest = Math.max(...points);
  const low = snapped(Math.max(0, spec.min), spec);
  const high = snapped(highest > low ? highest : max, spec);
  const half = snapped((low + high) / 2, spec);
  return [
    { label: 'flat', points: [high, high, high] },
    { label: 'ramp up', points: [low, half, high] },
    { label: 'ramp down', points: [high, half, low] },
    { label: 'middle', points: [low, high, low] },
    { label: 'ends', points: [high, low, high] },
  ];
}

/** May this parameter be drawn over the layers? */
export function mayCurve(spec: { kind: string; integer?: boolean; slider?: object }): boolean {
  return spec.kind === 'number' && spec.integer !== true && spec.slider !== undefined;
}

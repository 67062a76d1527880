/**
 * From what a recipe says to one value per tensor: scalars, gradients over the layers and filters by name, with the
 * semantics of mergekit 0.1.4 (`config.py`: evaluate_setting, ConfigReader.parameter).
 */
import {
  curveAt,
  type ParameterScalar,
  type ParameterSetting,
  type RecipeParameters,
} from '../../formats/recipe';
import { matchesTensor } from '../../formats/tensor-pattern';
import type { Place } from '../../models/tensor-role';
import type { ParameterSpec } from '../method';
import type { ResolvedParameters } from './plan';

/**
 * Position of a layer on its gradient: i / (count − 1) within the slice, and 1 in a slice of one layer.
 *
 * @param index layer within the slice, from 0
 * @param count layers of the slice
 */
export function layerPosition(index: number, count: number): number {
  return count > 1 ? index / (count - 1) : 1;
}

/**
 * Position of a tensor outside the blocks. mergekit puts embeddings, final norm and head at 0; `nearest` puts what
 * comes behind the blocks at 1, where the last layer is.
 */
export function outsidePosition(place: Exclude<Place, 'layer'>, ends: 'mergekit' | 'nearest'): number {
  return ends === 'nearest' && place === 'after' ? 1 : 0;
}

/**
 * The value of a setting for one tensor, or undefined where no filter matches.
 *
 * @param t position on a gradient, in [0, 1]
 * @returns NaN for a gradient without points: the caller's range check refuses it
 */
export function evaluateSetting(
  setting: ParameterSetting,
  tensorName: string,
  t: number,
): ParameterScalar | undefined {
  if (!Array.isArray(setting)) return setting;
  if (setting.every((entry) => typeof entry === 'number')) return curveAt(setting, t);
  for (const entry of setting) {
    if (typeof entry === 'number') continue;
    if (entry.filter === undefined || matchesTensor(entry.filter, tensorName)) {
      return evaluateSetting(entry.value, tensorName, t);
    }
  }
  return undefined;
}

/** Stands for a number that is searched for before the merge (`NumberSpec.auto`). */
export const AUTO = 'auto';

/** A parameter that has no usable value for a tensor. */
interface ParameterFault {
  parameter: string;
  /** What is wrong, as the end of a sentence: `must lie between 0 and 1, not 1.5`. */
  reason: string;
}

/**
 * Resolves every parameter of `specs` for one tensor.
 *
 * @param levels where the recipe may say it, nearest first: source, slice, whole recipe. A level whose filters all
 *   miss is passed over, as in mergekit.
 * @param tensorName name that filters are matched against
 * @param t position on a gradient
 */
export function resolveParameters(
  specs: Readonly<Record<string, ParameterSpec>>,
  levels: readonly RecipeParameters[],
  tensorName: string,
  t: number,
): { values: ResolvedParameters; faults: ParameterFault[] } {
  const values: Record<string, ParameterScalar> = {};
  const faults: ParameterFault[] = [];
  for (const [parameter, spec] of Object.entries(specs)) {
    const given = firstValue(parameter, levels, tensorName, t);
    const checked = given === undefined ? defaultOf(spec) : checkValue(spec, given);
    if ('reason' in checked) faults.push({ parameter, reason: checked.reason });
    else values[parameter] = checked.value;
  }
  return { values, faults };
}

function firstValue(
  parameter: string,
  levels: readonly RecipeParameters[],
  tensorName: string,
  t: number,
): ParameterScalar | undefined {
  for (const level of levels) {
    if (!Object.hasOwn(level, parameter)) continue;
    const value = evaluateSetting(level[parameter]!, tensorName, t);
    if (value !== undefined) return value;
  }
  return undefined;
}

type Checked = { value: ParameterScalar } | { reason: string };

function defaultOf(spec: ParameterSpec): Checked {
  return spec.default === undefined ? { reason: 'is missing and has no default' } : { value: spec.default };
}

/** The value in the type of its parameter: for mergekit, booleans are the numbers 1 and 0, and every other number is true. */
function checkValue(spec: ParameterSpec, given: ParameterScalar): Checked {
  switch (spec.kind) {
    case 'number': {
      // the plan is made with the default, until the value is found
      if (given === AUTO && spec.auto && spec.default !== undefined) return { value: spec.default };
      const value = typeof given === 'boolean' ? Number(given) : given;
      if (typeof value !== 'number' || Number.isNaN(value))
        return { reason: `must be a number, not ${show(given)}` };
      if (spec.integer && !Number.isInteger(value)) return { reason: `must be a whole number, not ${value}` };
      if (value < spec.min || value > spec.max) {
        return { reason: `must lie between ${spec.min} and ${spec.cap ?? spec.max}, not ${value}` };
      }
      return { value: spec.cap === undefined ? value : Math.min(value, spec.cap) };
    }
    case 'boolean':
      return typeof given === 'string'
        ? { reason: `must be true or false, not ${show(given)}` }
        : { value: Boolean(given) };
    case 'choice': {
      const value = typeof given === 'string' ? given : spec.booleans?.[`${Boolean(given)}`];
      const values = spec.choices.map((c) => c.value);
      const refused = typeof value === 'string' ? spec.refused?.[value] : undefined;
      if (refused !== undefined) return { reason: refused };
      return typeof value === 'string' && values.includes(value)
        ? { value }
        : { reason: `must be one of ${values.join(', ')}, not ${show(given)}` };
    }
    case 'text':
      return typeof given === 'string' && given !== ''
        ? { value: given }
        : { reason: `must be ${spec.values}, not ${show(given)}` };
  }
}

function show(value: ParameterScalar): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

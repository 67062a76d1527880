import type { MergeMethod } from '../method';
import { dareLinear } from './dare_linear';
import { dareTies } from './dare_ties';
import { linear } from './linear';
import { passthrough } from './passthrough';
import { taskArithmetic } from './task_arithmetic';
import { ties } from './ties';

/** Every merge method, in the order the picker shows them. Adding one is one file and one line here. */
export const methods: readonly MergeMethod[] = [
  ties,
  taskArithmetic,
  linear,
  dareTies,
  dareLinear,
  passthrough,
];

export const methodById: ReadonlyMap<string, MergeMethod> = new Map(methods.map((m) => [m.id, m]));

import type { MergeMethod } from '../method';
import { arceeFusion } from './arcee_fusion';
import { breadcrumbs } from './breadcrumbs';
import { breadcrumbsTies } from './breadcrumbs_ties';
import { consensus } from './consensus';
import { dareLinear } from './dare_linear';
import { dareTies } from './dare_ties';
import { della } from './della';
import { dellaLinear } from './della_linear';
import { gram } from './gram';
import { isoC } from './iso_c';
import { isoCts } from './iso_cts';
import { karcher } from './karcher';
import { linear } from './linear';
import { localizeAndStitch } from './localize_and_stitch';
import { modelStock } from './model_stock';
import { multislerp } from './multislerp';
import { nearswap } from './nearswap';
import { nuslerp } from './nuslerp';
import { passthrough } from './passthrough';
import { pcb } from './pcb';
import { ram } from './ram';
import { ramplusTl } from './ramplus_tl';
import { sce } from './sce';
import { slerp } from './slerp';
import { taskArithmetic } from './task_arithmetic';
import { ties } from './ties';
import { tsvM } from './tsv_m';

/** Every merge method, in the order the picker shows them. Adding one is one file, its oracle and one line here. */
export const methods: readonly MergeMethod[] = [
  ties,
  taskArithmetic,
  gram,
  linear,
  slerp,
  nuslerp,
  multislerp,
  karcher,
  modelStock,
  dareTies,
  dareLinear,
  della,
  dellaLinear,
  breadcrumbs,
  breadcrumbsTies,
  sce,
  consensus,
  localizeAndStitch,
  pcb,
  ram,
  ramplusTl,
  tsvM,
  isoC,
  isoCts,
  nearswap,
  arceeFusion,
  passthrough,
];

export const methodById: ReadonlyMap<string, MergeMethod> = new Map(methods.map((m) => [m.id, m]));

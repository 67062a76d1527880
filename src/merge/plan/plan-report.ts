import { ggufName } from '../../formats/gguf-type';
import { HASHES_FILE } from '../../formats/output-hashes';
import { SHARD_INDEX } from '../../formats/shard-index';
import type { PlanReport, PlanTensor } from '../../reports/plan';
import { indexedFiles } from '../../write/shard-plan';
import { exportWarnings } from '../method-export';
import { methodById } from '../methods';
import { writtenExtras } from './gguf-plan';
import { type Plan, type TensorPlan, tensorOutline } from './plan';

/** A plan as the studio and the command show it. */
export function planReport(plan: Plan): PlanReport {
  const { problems, contributors, base, bytesToDownload, bytesToRead, bytesToWrite, layers } = plan;
  const shardFiles = plan.shards.map((shard) => shard.file);
  return {
    problems,
    elsewhere: exportWarnings(plan.recipe, methodById),
    clean: problems.every((problem) => problem.severity !== 'error'),
    tensors: plan.tensors.map((tensor) => plannedTensor(tensor, contributors)),
    contributors,
    ...(base === undefined ? {} : { base }),
    bytesToDownload,
    bytesToRead,
    bytesToWrite,
    peakBytes: plan.peakBytes,
    outputFiles: [
      ...shardFiles,
      ...(plan.gguf ? [ggufName(plan.recipe.name, plan.gguf.type)] : []),
      ...writtenExtras(plan).map((extra) => extra.path),
      HASHES_FILE,
      ...(!plan.places && indexedFiles(plan.shards).length > 0 ? [SHARD_INDEX] : []),
    ],
    layers,
    ...(plan.vocabulary ? { vocabulary: plan.vocabulary } : {}),
  };
}

function plannedTensor(tensor: TensorPlan, contributors: readonly string[]): PlanTensor {
  const changing = tensor.models.filter(({ view }) =>
    tensor.copy
      ? tensor.copy !== tensor.base?.origin && view.origin === tensor.copy
      : !view.onBase || view.lowRank !== undefined || view.addend !== undefined,
  );
  return {
    ...tensorOutline(tensor),
    copied: tensor.copy !== undefined,
    ...(tensor.leftOut ? { leftOut: true } : {}),
    contributors: (tensor.madeOf ?? changing.map(({ id }) => id)).map((id) => contributors.indexOf(id)),
  };
}

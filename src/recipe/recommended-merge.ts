/** The recommended merge: the best is found, then merged. A merge that was cut off is resumed as any other, and still has its table. */
import type { Recipe } from '../formats/recipe';
import { copyOf } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import type { BestStep, FindBestProgress, FindBestReport } from '../reports/find-best';
import type { DestinationSpec, Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import { deleteMasks, openRecords, type RecordHeader } from '../store/masks';
import { type BestHost, runFindBest } from './best-bench';
import { runMerge } from './job';

export interface RecommendedHost extends Omit<BestHost, 'onProgress'> {
  onProgress(progress: Progress): void;
}

/** @throws AmalgamError as `findBest` and `runMerge` */
export async function runRecommended(
  request: MergeRequest & Required<Pick<MergeRequest, 'recommended'>>,
  host: RecommendedHost,
): Promise<MergeReport> {
  const { recommended: wanted, ...rest } = request;
  const { engine, recipe: given, destination } = request;
  const steps = ['writing', ...wanted.steps] as const;
  const report = await runFindBest(
    { ...wanted, recipe: given, engine },
    { ...host, onProgress: (progress) => host.onProgress(asOfMerge(progress, steps)) },
  );
  const { target } = report.rows.find(({ id }) => id === report.best)!;
  const { outDtype, amalgam } = given;
  const recipe: Recipe =
    'recipe' in target ? target.recipe : { ...copyOf(target.model), ...(outDtype && { outDtype }), amalgam };
  const { plan } = await host.plan({ recipe });
  const folder = await folderOf(destination, plan.recipe);
  await folder.write<TableHeader>({ name: NAME, report }, []);
  const merged = await runMerge(plan, { ...rest, recipe }, host.models, host.signal, (progress) =>
    host.onProgress({ ...progress, step: { name: 'Merge', at: steps.length, of: steps.length + 1 } }),
  );
  await deleteMasks(folder.id);
  return { ...merged, recommended: report };
}

const PHASES = {
  writing: 'writing',
  downloading: 'downloading',
  methods: 'searching',
  gram: 'calibrating',
  search: 'searching',
} as const;
const TITLES = {
  downloading: 'Text',
  writing: 'Text',
  methods: 'Methods',
  gram: 'Gram merges',
  search: 'Search',
} as const;

/** Progress of the search for the best as that of a merge. */
function asOfMerge(
  { step, item, done, total, secondsLeft }: FindBestProgress,
  steps: readonly ('writing' | BestStep)[],
): Progress {
  const isBytes = step === 'downloading';
  const at = isBytes ? 0 : steps.indexOf(step);
  const of = steps.length + 1;
  const unit = step === 'writing' ? 'tokens' : step === 'search' ? 'generations' : 'merges';
  return {
    ...{ phase: PHASES[step], item, secondsLeft, tensorsDone: 0, tensors: 0 },
    ...{ bytesDone: isBytes ? done : 0, bytes: isBytes ? total : 0, bytesPerSecond: 0, finished: [] },
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
    ...(!isBytes && { counted: { done: Math.round(done), total, unit } }),
    step: { name: TITLES[step], at, of, share: total > 0 ? Math.min(1, (at + done / total) / of) : 0 },
  };
}

interface TableHeader extends RecordHeader {
  report: FindBestReport;
}

const NAME = 'table';

function folderOf(destination: DestinationSpec, recipe: Recipe) {
  const name = 'name' in destination ? destination.name : destination.kind;
  return openRecords(
    JSON.stringify(['recommended', 2, destination.kind, name, formatRecipe(recipe)]),
    `Table of the recommended merge ${name}, until it is finished`,
  );
}

/** The report of a merge that was resumed, with its table where it was a recommended one. */
export async function withTable(
  report: MergeReport,
  { destination }: Pick<MergeRequest, 'destination'>,
): Promise<MergeReport> {
  const folder = await folderOf(destination, report.recipe);
  const found = await folder.find<TableHeader>(NAME);
  await deleteMasks(folder.id);
  return found ? { ...report, recommended: found.header.report } : report;
}

/** Result of the recommended merge, stored while its merge runs: one that is resumed after a reload still has it. */
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import type { DestinationSpec } from '../reports/job';
import type { MergeReport, MergeRequest, RecommendedReport } from '../reports/merge';
import { deleteMasks, openRecords, type RecordHeader } from '../store/masks';

interface ComparisonHeader extends RecordHeader {
  report: RecommendedReport;
}

const NAME = 'comparison';

function folderOf(destination: DestinationSpec, recipe: Recipe) {
  const name = 'name' in destination ? destination.name : destination.kind;
  return openRecords(
    JSON.stringify(['recommended', 1, destination.kind, name, formatRecipe(recipe)]),
    `Comparison of the recommended merge ${name}, until it is finished`,
  );
}

/** Stores the comparison of a merge that begins. @throws AmalgamError `StorageUnavailable`, `StorageFull`, `StorageFailed` */
export async function storeComparison(
  destination: DestinationSpec,
  recipe: Recipe,
  report: RecommendedReport,
): Promise<void> {
  await (await folderOf(destination, recipe)).write<ComparisonHeader>({ name: NAME, report }, []);
}

/** Forgets it. */
export async function forgetComparison(destination: DestinationSpec, recipe: Recipe): Promise<void> {
  await deleteMasks((await folderOf(destination, recipe)).id);
}

/** The report of a merge that was resumed, with its comparison where it was a recommended one. */
export async function withComparison(
  report: MergeReport,
  { destination }: Pick<MergeRequest, 'destination'>,
): Promise<MergeReport> {
  const folder = await folderOf(destination, report.recipe);
  const found = await folder.find<ComparisonHeader>(NAME);
  await deleteMasks(folder.id);
  return found ? { ...report, recommended: found.header.report } : report;
}

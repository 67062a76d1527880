/** A verification in words, and as data. */
import { longerThanRuns, markdownText } from '../formats/model-card';
import { displayName } from '../formats/names';
import { HASHES_ABOUT } from '../formats/output-hashes';
import { formatCount, formatCounted, formatSeconds } from '../formats/quantity';
import type { TensorComparison, VerifyReport, WrittenFiles } from '../reports/merge';
import { MOST_NAMES, problemLines, someNames } from './print';

/** Result of hashing the written files: one line, or one for each kind of difference. */
export function writtenText(written: WrittenFiles): string {
  const differences = writtenLines(written);
  if (differences.length > 0) return ['The files are not as they were written.', ...differences].join('\n');
  return `The files are as they were written: ${formatCounted(written.listed, 'file')}`;
}

function writtenLines({ missing, differing, unlisted }: WrittenFiles): string[] {
  const line = (names: string[], what: string) =>
    names.length === 0 ? [] : [`${formatCounted(names.length, 'file')} ${what}: ${someNames(names)}`];
  return [
    ...line(missing, 'missing'),
    ...line(differing, 'with other bytes than were written'),
    ...line(unlisted, 'that the merge did not write'),
  ];
}

/** Result of a verification: one line, or one per shard and per input that differs. */
export function verifyText(report: VerifyReport): string {
  const where = `(merged again in ${formatSeconds(report.seconds)} on ${report.engine})`;
  const { files } = report;
  const shards = formatCounted(report.shards.length, 'shard');
  const changed = [
    ...report.changedInputs.map((name) => `input ${displayName(name)} is not the file that was merged`),
    ...(report.uncheckedInputs.length > 0
      ? [`not looked at, since the recipe here reads no such file: ${someNames(report.uncheckedInputs)}`]
      : []),
    ...problemLines(report.licenses).slice(1),
  ];
  if (report.agrees) {
    const others = files && formatCounted(files.listed - report.shards.length, 'other file');
    const beside = others ? `; ${others} as written` : '; there is no list of hashes for the other files';
    return [`The bytes agree with its recipe: ${shards}${beside} ${where}`, ...changed].join('\n');
  }
  const headers = report.shards.flatMap(({ file, isHeaderSame }) =>
    isHeaderSame === false
      ? [`${file}: its header (names, places, metadata) is not what the recipe gives`]
      : [],
  );
  const written = files ? writtenLines(files) : [];
  return [differenceText(report), ...written, ...changed, ...headers, where].join('\n');
}

/** How near the stored tensors are to those that the recipe gives, and the names of those that are not. */
function differenceText(report: VerifyReport): string {
  const { verdict, tensors } = verdictOf(report);
  const differing = report.shards.flatMap((shard) => shard.differing);
  if (verdict === 'other files') return 'The bytes differ, but those of no tensor.';
  const far = differing.filter(isFar);
  const of = `in ${formatCount(tensors.near)} of ${formatCounted(tensors.all, 'tensor')}, ${formatCount(tensors.same)} of them to the bit`;
  const isOther = verdict === 'another recipe';
  const named = isOther ? far : [...far, ...differing.filter((tensor) => !far.includes(tensor))];
  const rest = named.map(({ name, steps }) =>
    steps === null
      ? `${displayName(name)} is not there in that shape and dtype`
      : `${displayName(name)} by up to ${formatCounted(steps, 'step')} of its dtype`,
  );
  const more = rest.length > MOST_NAMES ? [`${formatCount(rest.length - MOST_NAMES)} more`] : [];
  const words = [...rest.slice(0, MOST_NAMES), ...more].join('; ');
  if (isOther)
    return `Not ${report.changedInputs.length > 0 ? 'of these inputs' : 'this recipe'}: other weights in ${formatCount(far.length)} of ${formatCounted(tensors.all, 'tensor')}: ${words}.`;
  return `The bytes differ: within one rounding ${of}${words ? `; ${words}` : ''}.`;
}

function isFar({ steps }: TensorComparison): boolean {
  return steps === null || steps > 1;
}

/** `some other weights`: of fewer than half of the tensors. */
type Verdict = 'same bytes' | 'other files' | 'within one rounding' | 'some other weights' | 'another recipe';

function verdictOf({ agrees, shards }: VerifyReport): {
  verdict: Verdict;
  tensors: { all: number; near: number; same: number };
} {
  const all = shards.reduce((sum, shard) => sum + shard.tensors, 0);
  const differing = shards.flatMap((shard) => shard.differing);
  const near = all - differing.filter(isFar).length;
  const nearly = near === all ? 'within one rounding' : 'some other weights';
  const verdict = differing.length === 0 ? 'other files' : near < all / 2 ? 'another recipe' : nearly;
  return { verdict: agrees ? 'same bytes' : verdict, tensors: { all, near, same: all - differing.length } };
}

/**
 * A verification as data that others can check: the tree hashes of what the recipe gives, of what it was read from, and the
 * family with what its licenses say.
 * @param of the model, by the name that it was opened by
 */
export function verifiedMerge(report: VerifyReport, of: { model: string; recipe: string; version: string }) {
  const { shards, outputs, inputs, changedInputs, uncheckedInputs, files, family, licenses } = report;
  return {
    ...{ model: of.model, ...verdictOf(report) },
    differing: shards.flatMap(({ differing }) => differing),
    ...{ recipe: of.recipe, amalgam: of.version, engine: report.engine, hashes: HASHES_ABOUT },
    ...{ outputs, inputs, changedInputs, uncheckedInputs, files },
    ...(family.length > 0 && { family, licenses: licenses.map(({ code, message }) => ({ code, message })) }),
  };
}

/** A model card with the result as its last section, in place of an earlier one. */
export function withVerification(
  card: string,
  report: VerifyReport,
  result: ReturnType<typeof verifiedMerge>,
): string {
  const before = card.replace(/\n## Verified\n[\s\S]*?\n(`{3,})\n(?=$|\n## )/, '');
  const text = JSON.stringify(result, null, 2);
  const fence = longerThanRuns(text, 3);
  const [line = ''] = verifyText(report).split('\n');
  return `${before.trimEnd()}\n\n## Verified\n\n${markdownText(line)}\n\n${fence}json\n${text}\n${fence}\n`;
}

/** Parts of an output, each in a folder beside it until all are there. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { version } from '../../package.json';
import { AmalgamError } from '../errors';
import { textSha256 } from '../formats/hashes';
import { displayName } from '../formats/names';
import { type OutputPart, PART_FILE, type PartRecord, parsePart } from '../formats/output-part';
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import type { PlanReport } from '../reports/plan';
import { usage } from './arguments';

/** What the person asked for: part `index` of `of`. */
type ChosenPart = Pick<OutputPart, 'index' | 'of'>;

/**
 * The part that `--part` names: `2/4`; `auto` in a Slurm job array, whose tasks count from its first; `auto/4` in an indexed Job
 * of Kubernetes.
 * @throws AmalgamError `Usage`
 */
export function chosenPart(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): ChosenPart {
  const [first = '', last] = text.split('/');
  const number = (value: string | undefined) =>
    value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN;
  const of = (name: string) => number(environment[name]);
  const part =
    first !== 'auto'
      ? { index: number(first), of: number(last) }
      : last !== undefined
        ? { index: of('JOB_COMPLETION_INDEX') + 1, of: number(last) }
        : {
            index:
              1 +
              (of('SLURM_ARRAY_TASK_ID') - of('SLURM_ARRAY_TASK_MIN')) /
                number(environment.SLURM_ARRAY_TASK_STEP ?? '1'),
            of: of('SLURM_ARRAY_TASK_COUNT'),
          };
  if (Number.isInteger(part.index) && part.index >= 1 && part.index <= part.of) return part;
  throw usage(
    `--part is ${text}; it is i/n with i from 1 to n, auto in a Slurm job array, or auto/n in an indexed Job of Kubernetes${first === 'auto' ? ', and this is none' : ''}.`,
  );
}

/** Folder of a part of the output in `folder`. */
export function partFolder(folder: string, { index, of }: ChosenPart): string {
  return `${folder}.part-${index}-of-${of}`;
}

/** What an output comes from, short of the bytes of its inputs. */
export async function runOf(recipe: Recipe, { tensors, outputFiles }: PlanReport): Promise<string> {
  const outline = tensors.map(({ name, dtype, shape }) => [name, dtype, shape]);
  return textSha256(JSON.stringify([version, formatRecipe(recipe), outline, outputFiles]));
}

/** A finished part beside an output. */
export interface FoundPart {
  folder: string;
  record: PartRecord;
}

/** Finished parts of the output in `folder`, in order. @throws AmalgamError `JsonInvalid` */
export async function findParts(folder: string): Promise<FoundPart[]> {
  const stem = `${basename(folder)}.part-`;
  const found: FoundPart[] = [];
  for (const name of await readdir(dirname(folder)).catch((): string[] => [])) {
    if (!name.startsWith(stem) || !/^\d+-of-\d+$/.test(name.slice(stem.length))) continue;
    const part = join(dirname(folder), name);
    const text = await readFile(join(part, PART_FILE), 'utf8').catch(() => undefined);
    if (text !== undefined) found.push({ folder: part, record: parsePart(text) });
  }
  return found.sort((a, b) => a.record.index - b.record.index);
}

/**
 * Sees that all parts are of one output, whatever has computed each.
 * @throws AmalgamError `RunChanged` naming one that is not
 */
export function requireSameRun(
  found: readonly FoundPart[],
  { of, run }: Pick<OutputPart, 'of' | 'run'>,
): void {
  for (const { folder, record } of found) {
    const why =
      record.of !== of
        ? `is one of ${record.of} parts, not of ${of}`
        : record.run !== run && 'is a part of another merge';
    if (!why) continue;
    throw new AmalgamError(
      'RunChanged',
      `${displayName(folder)} ${why}: its recipe, the shapes of its models or the version of Amalgam were others.`,
      'Remove that folder, or give another --out.',
    );
  }
}
